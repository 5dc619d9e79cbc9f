"""The number of simulations that a metric needs: the error of a mean of n, and its reliability.

The error of a mean falls as one over the square root of n, whatever is measured; so a curve of it says nothing of a
metric that its standard deviation does not. What matters is how that compares with the differences between models: the
reliability.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labmates.games.base import Array
from labmates.records.run import ENDED, RunRecord
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED

SIZES = (1, 2, 5, 10, 20, 30, 50)
"""Numbers of simulations that are looked at."""
METRICS = ("level",)
"""What is looked at where nobody says otherwise: the primary metric of each game."""
RESAMPLES = 200
"""As in the cooperative-profiles paper, appendix D."""
_OF_CALLS = frozenset({"model", "model_for", "max_output_tokens", "temperature", "repair_turns", "prices"})


@dataclass(frozen=True)
class Convergence:
    """The convergence of a metric of a game.

    Attributes
    ----------
    models
        Number of models with at least two simulations under the same condition.
    simulations
        Least number of simulations of a model.
    within
        Standard deviation among simulations of a model under one condition, pooled over models and conditions.
    between
        Standard deviation of the models' true means under equal conditions: that of the means, less what chance adds.
        None if no condition has two models.
    sizes
        Numbers of simulations, n.
    bootstrap
        Mean absolute error of a mean of n, by resampling with replacement, the mean over models.
    closed_form
        The same by the formula for normal errors, s·√(2/(πn)), the mean over models too.
    relative
        The bootstrap of each model and condition in units of its own standard deviation, where its simulations differ.
    reliability
        Share of the variance of means of n that is between models; None where `between` is.
    """

    game: str
    metric: str
    models: int
    simulations: int
    within: float
    between: float | None
    sizes: tuple[int, ...]
    bootstrap: tuple[float, ...]
    closed_form: tuple[float, ...]
    relative: tuple[tuple[float, ...], ...]
    reliability: tuple[float, ...] | None


def bootstrap_errors(values: Array, sizes: Sequence[int], *, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """The mean absolute error of a mean of n of the values, for each n of `sizes`.

    Values are drawn with replacement, and the mean of the first n of each draw is compared with the mean of all.

    Parameters
    ----------
    values
        Shape ``(simulations,)``.
    """
    drawn = np.random.default_rng(seed).choice(values, size=(resamples, max(sizes)))
    means = np.cumsum(drawn, axis=1) / np.arange(1, max(sizes) + 1)
    places = np.array(sizes) - 1
    return np.asarray(np.abs(means[:, places] - values.mean()).mean(axis=0))


def closed_form_errors(deviation: float, sizes: Sequence[int]) -> Array:
    """The expected absolute error of a mean of n values with this standard deviation, if errors are normal."""
    return np.asarray(deviation * np.sqrt(2 / (math.pi * np.array(sizes))))


def variance_between(means: Array, errors: Array, conditions: Sequence[str] | None = None) -> float:
    """The variance of true means, out of measured ones and their standard errors; at least 0.

    Parameters
    ----------
    means, errors
        Shape ``(means,)``.
    conditions
        Under which condition each was measured: only those under the same are compared, and what is found is pooled.
        By default all are under one. Some condition has to have two.
    """
    under = np.zeros(len(means)) if conditions is None else np.array(conditions)
    squares, freedom = 0.0, 0
    for condition in np.unique(under):
        mine = under == condition
        more = int(mine.sum()) - 1
        squares += float(((means[mine] - means[mine].mean()) ** 2).sum()) - more * float((errors[mine] ** 2).mean())
        freedom += more
    return max(0.0, squares / freedom)


def reliabilities(between: float, within: float, sizes: Sequence[int]) -> Array:
    """The share of the variance of means of n that is between models: σ_b²/(σ_b² + s²/n).

    Parameters
    ----------
    between, within
        Standard deviations. Where both are 0 nothing can be told apart, and the reliability is 0.
    """
    noise = within**2 / np.array(sizes)
    whole = between**2 + noise
    return np.divide(between**2, whole, out=np.zeros_like(whole), where=whole > 0)


def convergence(
    runs: Iterable[RunRecord],
    *,
    metrics: Sequence[str] = METRICS,
    sizes: Sequence[int] = SIZES,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Convergence]:
    """The convergence of each game's metrics, over runs with one model each.

    Models are compared under equal conditions, whatever the limits and prices of their calls. Models with a single
    simulation of a game tell nothing of it and are left out, as are models of which more than `MOST_FAILED` of the
    decisions failed there, games without any other, and metrics that a game does not have.
    """
    measured: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    ended = _played([run for run in runs if run.status in ENDED and len(run.models) == 1])
    for game in dict.fromkeys(run.condition["game"] for run in ended):
        for metric in metrics:
            for run in ended:
                if run.condition["game"] == game and metric in run.metrics:
                    values = measured.setdefault((game, metric), {}).setdefault((run.models[0], _setting(run)), [])
                    values.append(run.metrics[metric])
    enough = {
        what: {one: np.array(values) for one, values in models.items() if len(values) > 1}
        for what, models in measured.items()
    }
    return [_of_game(*what, models, sizes, resamples, seed) for what, models in enough.items() if models]


def _played(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs of models that have played their games, each under one setting."""
    failed: dict[tuple[str, str, str], list[float]] = {}
    for run in runs:
        rate = run.metrics.get("failed_decision_rate", 0.0)
        failed.setdefault((run.condition["game"], run.models[0], _setting(run)), []).append(rate)
    return [
        run
        for run in runs
        if float(np.mean(failed[run.condition["game"], run.models[0], _setting(run)])) <= MOST_FAILED
    ]


def convergence_table(curves: Sequence[Convergence]) -> Table:
    """Errors and reliabilities, a row for each game and number of simulations."""
    rows = [
        {
            "game": one.game,
            "metric": one.metric,
            "models": one.models,
            "measured": one.simulations,
            "within": one.within,
            "between": one.between,
            "simulations": n,
            "bootstrap": sampled,
            "formula": formula,
            "reliability": share,
        }
        for one in curves
        for n, sampled, formula, share in zip(
            one.sizes,
            one.bootstrap,
            one.closed_form,
            one.reliability or (None,) * len(one.sizes),
            strict=True,
        )
    ]
    columns = [
        Column("game", once=True),
        Column("metric", once=True),
        Column("models", once=True),
        Column("within", "SD within models", once=True),
        Column("between", "SD between models", once=True),
        Column("simulations", "n"),
        Column("bootstrap", "error (bootstrap)", ".4f"),
        Column("formula", "error (formula)", ".4f"),
        Column("reliability"),
    ]
    notes = [
        "Error: mean absolute error of a mean of n simulations. In units of the standard deviation it is √(2/(πn)) "
        "whatever is measured (0.18 at n = 20), so a curve of it can't say that n are enough. The reliability can: the "
        "share of the variance of such means that lies between models."
    ]
    if any(one.reliability is None for one in curves):
        notes.append("A reliability needs two models under the same condition.")
    return Table("convergence", "Convergence of the games' metrics", columns, rows, notes)


def _setting(run: RunRecord) -> str:
    """All of a run's condition but who plays and how calls are made."""
    return json.dumps({name: value for name, value in run.condition.items() if name not in _OF_CALLS}, sort_keys=True)


def _of_game(
    game: str, metric: str, models: Mapping[tuple[str, str], Array], sizes: Sequence[int], resamples: int, seed: int
) -> Convergence:
    values = list(models.values())
    freedom = sum(len(one) - 1 for one in values)
    within = math.sqrt(sum(float(one.var(ddof=1)) * (len(one) - 1) for one in values) / freedom)
    curves = [bootstrap_errors(one, sizes, resamples=resamples, seed=seed + place) for place, one in enumerate(values)]
    between = reliability = None
    settings = [setting for _, setting in models]
    if len(set(settings)) < len(settings):
        errors = np.array([one.std(ddof=1) / math.sqrt(len(one)) for one in values])
        between = math.sqrt(variance_between(np.array([one.mean() for one in values]), errors, settings))
        reliability = tuple(map(float, reliabilities(between, within, sizes)))
    return Convergence(
        game=game,
        metric=metric,
        models=len({model for model, _ in models}),
        simulations=min(map(len, values)),
        within=within,
        between=between,
        sizes=tuple(sizes),
        bootstrap=tuple(map(float, np.mean(curves, axis=0))),
        closed_form=tuple(map(float, closed_form_errors(float(np.mean([one.std(ddof=1) for one in values])), sizes))),
        relative=tuple(
            tuple(map(float, curve / one.std(ddof=1))) for curve, one in zip(curves, values, strict=True) if np.ptp(one)
        ),
        reliability=reliability,
    )
