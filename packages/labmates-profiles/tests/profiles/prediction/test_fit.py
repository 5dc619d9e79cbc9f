"""The model that predicts lab outcomes: its density, its fits, and what simulated truth says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag

from labmates.games.base import Array
from labmates_profiles.bayes.evidence import PermutationTest
from labmates_profiles.bayes.posterior import adjusted
from labmates_profiles.curves import reliabilities, variance_between
from labmates_profiles.prediction import FORMS, Form
from labmates_profiles.prediction import fit as fitting
from labmates_profiles.prediction.data import PredictionData, Runs, standardised
from labmates_profiles.prediction.density import CENTRE, COVARIATE, INTERCEPT, Collapsed, Hyper
from labmates_profiles.prediction.design_matrix import CONTROLS, GAME_ORDER
from labmates_profiles.prediction.dispositions import correlations
from labmates_profiles.prediction.evidence import Evidence, evidence, verdict
from labmates_profiles.prediction.fit import PredictionFit, find_modes, fit_prediction, search_box
from labmates_profiles.prediction.published import PUBLISHED
from tests.profiles.simulated_prediction import COLUMNS, published, simulate_prediction


def small(models: int = 7, rows: int = 30, games: int = 3, seed: int = 5) -> PredictionData:
    rng = np.random.default_rng(seed)
    model_of = np.concatenate([np.arange(models), rng.integers(models, size=rows - models)])
    levels, _ = standardised(rng.normal(size=(models, games)))
    outcome = 0.5 + (0.2 * levels[:, 0] + rng.normal(0, 0.1, models))[model_of] + rng.normal(0, 0.1, rows)
    return PredictionData(
        tuple(f"m{i}" for i in range(models)),
        tuple(f"g{i}" for i in range(games)),
        ("size",),
        ("task", "budget"),
        levels,
        rng.uniform(0.05, 0.4, (models, games)),
        standardised(rng.normal(size=(models, 1)))[0],
        model_of,
        rng.normal(size=(rows, 2)),
        outcome,
    )


def with_data_sets(models: int = 7, rows: int = 30, games: int = 3, *, most: int = 4) -> PredictionData:
    """Return data with three tasks, a budget, theory of mind, and runs on six data sets that models share."""
    rng = np.random.default_rng(models)
    data = small(models, rows, games)
    task = rng.integers(3, size=rows)
    columns = np.column_stack([task == 1, task == 2, rng.normal(size=rows), rng.random(rows) < 0.4]).astype(float)
    observation = np.repeat(np.arange(rows), rng.integers(1, most + 1, rows))
    number = rng.integers(3, size=len(observation))
    data_set = np.where(number < 2, task[observation] * 2 + number, 6)  # a third is on data sets of one model alone
    values = data.outcome[observation] + rng.normal(0, 0.1, len(observation))
    counts = np.bincount(observation)
    return replace(
        data,
        columns=("task: a", "task: b", "budget", "theory of mind"),
        factors=("task", "task", "budget", "theory of mind"),
        conditions=columns,
        outcome=np.bincount(observation, values) / counts,
        runs=Runs(tuple(f"d{at}" for at in range(6)), observation, data_set, values),
    )


def random_terms(data: PredictionData, hyper: Hyper) -> Array:
    """Return the covariance of observations, then of runs within them, that reactions and data sets make.

    It is written down level by level and run by run, without the contrasts and sums of the package.
    """
    n, same = len(data.outcome), data.model_of[:, None] == data.model_of[None]
    covariance = np.zeros((n, n))
    for at, factor in enumerate(dict.fromkeys(data.factors)):
        values = data.conditions[:, [place for place, name in enumerate(data.factors) if name == factor]]
        if values.shape[1] > 1:  # a departure of each level, less the mean of all
            levels = np.column_stack([1 - values.sum(axis=1), values])
            values = levels - 1 / levels.shape[1]
        else:
            values = values - (0.5 if np.isin(values, (0, 1)).all() else values.mean())
        covariance += hyper.reactions[0, at] ** 2 * (values @ values.T) * same
    if data.runs is None:
        return covariance
    runs, blocks = data.runs, []
    member = np.eye(len(runs.data_sets) + 1)[runs.data_set][:, :-1]
    for at in range(n):
        count = int((runs.observation == at).sum())
        blocks.append(np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, : count - 1]]))[0][:, 1:].T)
    within = block_diag(*blocks)
    mean = np.array([member[runs.observation == at].mean(axis=0) for at in range(n)])
    order = np.argsort(runs.observation, kind="stable")
    shifts = hyper.shift[0] ** 2 * (both := np.vstack([mean, within @ member[order]])) @ both.T
    shifts[n:, n:] += hyper.run[0] ** 2 * np.eye(len(within))
    shifts[:n, :n] += covariance
    return np.asarray(shifts)


def of_rows(model: Collapsed, point: Array) -> float:
    """Return the log density with every row and every observed metric, all that is normal integrated at once."""
    data, hyper = model.data, model.parts(point[None])
    m, g = data.levels.shape
    n = len(data.outcome)
    effect, spread = hyper.effect[0], hyper.spread[0]
    correlation = np.eye(g) if model.correlation is None else model.correlation
    theta = np.kron(np.eye(m), np.diag(spread) @ correlation @ np.diag(spread))
    # What is observed, as a linear function of (θ - μ, μ, α, γ, δ, u) and of noise.
    of_model = np.eye(m)[data.model_of]
    to_theta = np.vstack([np.eye(m * g), np.kron(of_model, effect)])
    to_mu = np.vstack([np.tile(np.eye(g), (m, 1)), np.tile(effect, (n, 1))])
    rest = np.column_stack([np.ones(n), data.conditions, data.benchmarks[data.model_of]])
    to_rest = np.vstack([np.zeros((m * g, rest.shape[1])), rest])
    to_u = np.vstack([np.zeros((m * g, m)), of_model])
    prior = np.diag([INTERCEPT[1] ** 2] + [COVARIATE**2] * (rest.shape[1] - 1))
    covariance = to_theta @ theta @ to_theta.T + CENTRE**2 * to_mu @ to_mu.T + to_rest @ prior @ to_rest.T
    covariance += hyper.between[0] ** 2 * to_u @ to_u.T
    covariance += np.diag(np.concatenate([data.errors.ravel() ** 2, np.full(n, hyper.noise[0] ** 2)]))
    mean = np.concatenate([np.zeros(m * g), np.full(n, INTERCEPT[0])])
    seen = np.concatenate([data.levels.ravel(), data.outcome])
    priors = stats.norm(0, 1).logpdf(effect).sum() + stats.halfnorm(0, 2).logpdf(spread).sum()
    priors += stats.halfnorm(0, 0.5).logpdf(hyper.noise[0]) + np.log(hyper.noise[0])
    if model.form != "paper":
        more = random_terms(data, hyper)
        extra = len(more) - n
        covariance = np.pad(covariance, (0, extra))
        covariance[m * g :, m * g :] += more
        if data.runs is not None:
            runs = data.runs
            for at in range(n):
                own = runs.outcome[runs.observation == at]
                blocks = np.column_stack([np.ones(len(own)), np.eye(len(own))[:, : len(own) - 1]])
                seen = np.concatenate([seen, np.linalg.qr(blocks)[0][:, 1:].T @ own])
            priors += stats.halfnorm(0, 0.5).logpdf([hyper.shift[0], hyper.run[0]]).sum()
            priors += np.log(hyper.run[0]) if extra else 0
        mean = np.pad(mean, (0, extra))
        priors += stats.halfnorm(0, 0.5).logpdf([hyper.between[0], *hyper.reactions[0]]).sum()
    return float(stats.multivariate_normal(mean, covariance).logpdf(seen) + priors)


@pytest.mark.parametrize("data", [small(), with_data_sets(), with_data_sets(most=1)], ids=["plain", "runs", "single"])
@pytest.mark.parametrize("form", FORMS)
def test_the_collapsed_density_is_that_of_all_rows(form: Form, data: PredictionData) -> None:
    model = Collapsed(data, form)
    rng = np.random.default_rng(2)
    points = np.abs(rng.normal(0.5, 0.4, (6, model.size)))
    points[:, model.logarithms] = rng.normal(-1.5, 0.5, (6, int(model.logarithms.sum())))
    whole = np.array([of_rows(model, point) for point in points])
    differences = model.log_density(points) - whole
    assert differences == pytest.approx(np.full(6, differences[0]), abs=1e-10)


def test_what_is_integrated_out_is_drawn_from_where_rows_put_it() -> None:
    data = small(rows=400, models=40)
    model = Collapsed(data, "robust")
    point = np.concatenate([np.zeros(3), np.ones(3), [np.log(0.1), 0.05, 0.03, 0.02]])
    drawn = model.coefficients(np.repeat(point[None], 4000, axis=0), np.random.default_rng(0))
    design = np.column_stack([np.ones(400), data.conditions, data.benchmarks[data.model_of]])
    same = data.model_of[:, None] == data.model_of[None]
    own = random_terms(data, model.parts(point[None]))
    weight = np.linalg.inv(0.1**2 * np.eye(400) + 0.05**2 * same + own)
    prior = np.diag([4.0] * design.shape[1])
    precision = design.T @ weight @ design + prior
    mean = np.linalg.solve(precision, design.T @ weight @ data.outcome + prior @ [0.5, 0, 0, 0])
    spread = np.sqrt(np.diag(np.linalg.inv(precision)))
    assert (np.abs(drawn[:, 3:].mean(axis=0) - mean) < 0.1 * spread).all()
    assert drawn[:, 3:].std(axis=0) == pytest.approx(spread, rel=0.1)


def test_the_published_coefficients_come_back() -> None:
    held = []
    for outcome in PUBLISHED:
        truth = published(outcome)
        study = simulate_prediction(np.random.default_rng([1, 1]), outcome, between=0.25)
        fit = fit_prediction(study.data, "robust", draws=3000, starts=1)
        found = fit.posterior.summaries
        names = (*GAME_ORDER, *CONTROLS, *COLUMNS)
        true = (*truth.games, *truth.controls, *truth.columns)
        held += [found[name].low <= value <= found[name].high for name, value in zip(names, true, strict=True)]
        assert found["tau"].mean == pytest.approx(truth.noise, rel=0.1)
        largest = [game for game, value in zip(GAME_ORDER, truth.games, strict=True) if abs(value) > 4 * found[game].sd]
        assert all(found[game].credible for game in largest)
        assert fit.posterior.diagnostics.k_hat is not None
        assert fit.posterior.diagnostics.k_hat <= 0.7
        assert fit.warnings == ()
    assert sum(held) >= 46, "of 54"


def test_chance_is_seldom_called_credible_and_far_too_often_in_the_papers_form() -> None:
    forms: tuple[Form, ...] = ("paper", "robust")
    false = dict.fromkeys(forms, 0)
    for seed in range(5):
        study = simulate_prediction(np.random.default_rng([seed, 3]), effects=[0] * 6, between=0.5)
        for form in forms:
            fit = fit_prediction(study.data, form, draws=500, starts=1)
            false[form] += sum(fit.posterior.summaries[game].credible for game in GAME_ORDER)
    assert false["robust"] <= 5, "of 30, of which 1 or 2 are expected"
    assert false["paper"] >= 10


def test_the_second_mode_of_the_papers_form_is_found_and_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    study = simulate_prediction(np.random.default_rng(2), "quality", between=0.5)
    model = Collapsed(study.data, "paper")
    (best, height), (other, lower), *_ = find_modes(model)
    assert height - lower > 100
    assert np.abs(best[:6] - study.truth.games).max() < 0.2
    assert np.abs(other[:6]).max() > 2
    monkeypatch.setattr(fitting, "COMPETING", 10_000)
    fit = fit_prediction(study.data, "paper", draws=500)
    assert any("modes compete" in warning for warning in fit.warnings)
    assert fit.modes[0].below == 0


def test_correlations_are_freed_of_noise() -> None:
    rng = np.random.default_rng(4)
    truth = np.array([[1, 0.9, 0.2], [0.9, 1, 0.2], [0.2, 0.2, 1]])
    errors = np.full((400, 3), 0.6)
    levels = rng.multivariate_normal(np.zeros(3), truth, 400) + rng.standard_normal((400, 3)) * errors
    assert np.corrcoef(levels.T)[0, 1] < 0.75
    assert correlations(levels, errors) == pytest.approx(truth, abs=0.12)
    assert correlations(levels[:, :1], errors[:, :1]).tolist() == [[1.0]]


def test_the_simulator_gives_what_it_is_asked_for() -> None:
    study = simulate_prediction(np.random.default_rng(0), "accuracy", models=400, observations=4000, correlation=0.95)
    assert np.corrcoef(study.dispositions[:, 3:5].T)[0, 1] > 0.9
    assert len(study.data.outcome) >= 4000
    left = study.data.outcome - study.expected[study.data.model_of] - study.data.conditions @ study.truth.columns
    assert left.std() == pytest.approx(0.05, rel=0.05)
    assert study.data.levels.mean(axis=0) == pytest.approx(np.zeros(6), abs=0.05)
    counted = simulate_prediction(np.random.default_rng(0), models=3, observations=[2, 3, 4])
    assert np.bincount(counted.data.model_of).tolist() == [2, 3, 4]


def _verdict(fits: Mapping[Form, PredictionFit], found: Evidence) -> list[str]:
    """The verdict on quality, with p values that are not adjusted."""
    alone = {form: adjusted([fit.posterior], *([[game]] for game in fit.data.games))[0] for form, fit in fits.items()}
    return verdict("quality", fits, found, alone, found.permutation.p)


def test_a_verdict_says_when_data_are_too_few_and_what_the_papers_form_alone_claims() -> None:
    null = simulate_prediction(np.random.default_rng(5), effects=[0] * 6, between=1.0).data
    fits = {form: fit_prediction(null, form, draws=500, starts=1) for form in FORMS[:2]}
    found = evidence(null)
    said = " ".join(_verdict(fits, found))
    assert isinstance(found.permutation, PermutationTest)
    assert "can't tell whether the games predict quality beyond IFEval" in said
    assert "Credible only in the paper's form:" in said
    real = simulate_prediction(np.random.default_rng(5), between=0.25).data
    sure = _verdict({"robust": fit_prediction(real, draws=500, starts=1)}, evidence(real))
    assert sure[0].startswith("The games predict quality")
    assert "common-pool +0." in sure[1]
    assert sum(evidence(real).leverage.values()) == pytest.approx(11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("data", [small(), with_data_sets()], ids=["plain", "runs"])
def test_wherever_a_search_for_modes_may_step_to_the_density_is_a_number(form: Form, data: PredictionData) -> None:
    model = Collapsed(data, form)
    least, most = search_box(model)
    shares = np.random.default_rng(0).choice([0, 1, 0.5, 0.51, 0.8], size=(400, model.size))
    points = least + shares * (most - least)
    assert np.isfinite(model.log_density(np.where(model.nonnegative, np.abs(points), points))).all()


def test_the_robust_form_says_where_dispositions_go_too_much_together_for_it() -> None:
    fitted: PredictionFit | None = None

    def said(correlation: float, *forms: Form) -> str:
        nonlocal fitted
        data = simulate_prediction(np.random.default_rng(1), between=0.5, correlation=correlation).data
        # What is said of dispositions follows from the data alone, so one fit stands for all.
        fitted = fitted or fit_prediction(data, "robust", draws=500, starts=1)
        fits = dict.fromkeys(forms, replace(fitted, data=data))
        return " ".join(_verdict(fits, evidence(data)))

    assert "Correlated dispositions: common-pool-sanctions and common-pool (+0.9" in said(0.95, "robust")
    assert "Correlated dispositions" not in said(0.95, "robust", "correlated")
    assert "Correlated dispositions" not in said(0.5, "robust")


def test_the_reliability_of_a_game_is_that_of_convergence() -> None:
    data = simulate_prediction(np.random.default_rng(5), models=13).data
    found = evidence(data).reliability
    for at, game in enumerate(data.games):
        levels, errors = data.levels[:, at], data.errors[:, at]
        noise = float((errors**2).mean())
        expected = reliabilities(np.sqrt(variance_between(levels, errors)), np.sqrt(noise), [1])
        assert found[game] == pytest.approx(expected[0])
