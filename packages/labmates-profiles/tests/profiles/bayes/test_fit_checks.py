"""Checks of fits: densities against dense ones, what wrong models look like, left-out models, and priors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from labmates_profiles.bayes.blocks import Evaluated
from labmates_profiles.bayes.fit_checks import (
    comparison_table,
    left_out,
    p_values,
    sensitivity_table,
    statistics_table,
    verdict,
)
from labmates_profiles.prediction import evaluated as prediction
from labmates_profiles.prediction.fit import fit_prediction
from labmates_profiles.proximity import evaluated as proximity
from labmates_profiles.proximity.cells import Cells
from labmates_profiles.proximity.fit import Fit, Specification, fit
from tests.profiles.bayes.studies import small_design
from tests.profiles.simulated_prediction import simulate_prediction
from tests.profiles.simulated_proximity import CLUSTERED, simulated_cells

DRAWS = 500


@pytest.fixture(scope="module")
def cells() -> Cells:
    return simulated_cells(small_design(12, 2000), CLUSTERED, seed=1)


@pytest.fixture(scope="module")
def fits(cells: Cells) -> dict[Specification, Fit]:
    names: tuple[Specification, ...] = ("paper", "robust")
    return {name: fit(cells, name, draws=DRAWS) for name in names}


@pytest.fixture(scope="module")
def robust(fits: dict[Specification, Fit]) -> Evaluated:
    return proximity.evaluated(fits["robust"], "cooperation", draws=DRAWS)


def test_the_density_of_a_model_is_that_of_its_joint_normal(fits: dict[Specification, Fit], cells: Cells) -> None:
    for one in fits.values():
        block = proximity.block(one, cells, 2)
        for at in (0, 20):
            covariance = block.terms @ np.diag(block.variance[at]) @ block.terms.T + np.diag(block.noise[at])
            dense = multivariate_normal(block.fixed[at], covariance).logpdf(block.outcome)
            assert block.log_density()[at] == pytest.approx(dense, abs=1e-9)
    study = simulate_prediction(np.random.default_rng(0), models=14, observations=140, between=0.5)
    lab = fit_prediction(study.data, "correlated", draws=DRAWS, starts=1)
    block = prediction.block(lab, study.data, 3)
    covariance = block.terms @ np.diag(block.variance[7]) @ block.terms.T + np.diag(block.noise[7])
    dense = multivariate_normal(block.fixed[7], covariance).logpdf(block.outcome)
    assert block.log_density()[7] == pytest.approx(dense, abs=1e-9)


def test_a_form_that_lacks_what_models_differ_in_predicts_models_worse(
    fits: dict[Specification, Fit], robust: Evaluated, cells: Cells
) -> None:
    paper = proximity.evaluated(fits["paper"], "cooperation", draws=DRAWS)
    assert (p_values(paper) < 0.05).mean() > 0.15
    assert (p_values(robust) < 0.05).mean() < 0.07
    assert "contradict the model" in verdict(paper)
    assert "No single outcome contradicts the model" in verdict(robust)
    found: dict[str, pd.DataFrame] = {}
    for name in fits:
        blocks = (proximity.block(fit(proximity.without(cells, at), name, draws=DRAWS), cells, at) for at in range(4))
        found[name] = left_out(cells.models[:4], blocks)
    best, other = comparison_table("cooperation", found).rows
    assert (best["form"], other["form"]) == ("robust", "paper")
    assert other["difference"] < -50
    assert best["held"] > other["held"]


def test_cells_without_a_model_are_those_of_the_others(cells: Cells) -> None:
    kept = proximity.without(cells, 3)
    assert kept.models == cells.models[:3] + cells.models[4:]
    assert kept.count.sum() == cells.count[cells.model != 3].sum()
    assert set(kept.model) == set(range(11))
    for at in range(11):
        mine, theirs = kept.model == at, cells.model == at + (at >= 3)
        assert kept.mean[mine] == pytest.approx(cells.mean[theirs])
        [family] = set(kept.family[mine])
        assert kept.families[family] == cells.families[cells.family[theirs][0]]


def test_scores_that_end_where_the_model_does_not_are_told(robust: Evaluated) -> None:
    inside = replace(robust, observed=np.clip(robust.observed, 0, 1))
    row = statistics_table(inside).rows[-1]
    assert row["statistic"] == "share of single results below 0 or above 1"
    assert 0 < row["predicted_low"] < row["predicted_high"] < 0.5
    assert len(statistics_table(robust).rows) == 5


def test_a_prior_that_data_cannot_overrule_is_told_and_one_that_they_can_is_not() -> None:
    rng = np.random.default_rng(2)
    study = simulate_prediction(rng, models=14, observations=280, between=0.5)
    one = prediction.evaluated(fit_prediction(study.data, "robust", draws=2000, starts=1), "quality", draws=2000)
    shifts = {row["parameter"]: row for row in sensitivity_table(one).rows}
    # A game's effect rests on 14 models, the noise on 280 observations.
    assert abs(shifts["tau"]["shift"]) < 0.05
    assert {row["mark"] for row in shifts.values()} <= {True, False}
    first = one.posterior["weakest-link"]
    pulled = replace(one, log_prior=-20 * first / first.std())
    assert "Priors matter for weakest-link" in verdict(pulled)
