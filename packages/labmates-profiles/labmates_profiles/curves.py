"""The number of simulations that a metric needs: the error of a mean of n, and its reliability.

The error of a mean falls with the square root of n for any metric, so its curve depends only on the metric's standard
deviation. What matters is its size relative to the differences between models: the reliability.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from labmates.records.run import ENDED, RunRecord
from labmates.stats.figures import COLOURS, GREY, LEGEND_ROW, look, new_figure
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED
from labmates.util.display_names import in_words
from labmates_profiles.arrays import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 2, 5, 10, 20, 30, 50)
"""Default numbers of simulations."""
METRICS = ("level",)
"""Default metrics: the primary metric of each game."""
RELIABLE: Final = 0.9
"""The reliability of means for which the necessary number of simulations is told."""
RESAMPLES = 200
"""As in the cooperative-profiles paper, appendix D."""
_OF_CALLS = frozenset({"model", "model_for", "max_output_tokens", "temperature", "thoughts", "repair_turns", "prices"})


@dataclass(frozen=True)
class Convergence:
    """The convergence of a metric of a game.

    Attributes
    ----------
    models
        Number of models with at least two simulations under the same condition.
    simulations
        Minimum number of simulations of a model.
    within
        Standard deviation among simulations of a model under one condition, pooled over models and conditions.
    between
        Standard deviation of the models' true means under equal conditions, corrected for sampling error. None if no
        condition has two models.
    sizes
        Numbers of simulations, n.
    bootstrap
        Mean absolute error of a mean of n, by resampling with replacement, averaged over models.
    closed_form
        The same by the formula for normal errors, s·√(2/(πn)).
    relative
        The bootstrap of each model and condition, divided by its standard deviation, where its simulations differ.
    reliability
        Share of the variance of means of n that is between models; None if `between` is.
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
    """The mean absolute error of a mean of n of the values, for each n of `sizes`, by bootstrap.

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
    """The expected absolute error of a mean of n values with this standard deviation and normal errors."""
    return np.asarray(deviation * np.sqrt(2 / (math.pi * np.array(sizes))))


def variance_between(means: Array, errors: Array, conditions: Sequence[str] | None = None) -> float:
    """The variance of true means, from measured means and their standard errors; at least 0.

    Parameters
    ----------
    means, errors
        Shape ``(means,)``.
    conditions
        The condition of each mean: only means under equal conditions are compared, and variances are pooled. By default
        all are equal. Some condition must have two means.
    """
    under = np.zeros(len(means)) if conditions is None else np.array(conditions)
    squares, freedom = 0.0, 0
    for condition in np.unique(under):
        within = under == condition
        more = int(within.sum()) - 1
        error = float((errors[within] ** 2).mean())
        squares += float(((means[within] - means[within].mean()) ** 2).sum()) - more * error
        freedom += more
    return max(0.0, squares / freedom)


def reliabilities(between: float, within: float, sizes: Sequence[int]) -> Array:
    """The share of the variance of means of n that is between models: σ_b²/(σ_b² + s²/n).

    Parameters
    ----------
    between, within
        Standard deviations. If both are 0, models are indistinguishable and the reliability is 0.
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
    simulation of a game are left out, as are models above `MOST_FAILED` in a game, and metrics that a game lacks.
    """
    measured: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    ended = _played([run for run in runs if run.status in ENDED and len(run.models) == 1])
    for game in dict.fromkeys(run.condition["game"] for run in ended):
        for metric in metrics:
            for run in ended:
                if run.condition["game"] == game and metric in run.metrics:
                    values = measured.setdefault((game, metric), {}).setdefault((run.models[0], _setting(run)), [])
                    values.append(run.metrics[metric])
    repeated = {
        what: {key: np.array(values) for key, values in models.items() if len(values) > 1}
        for what, models in measured.items()
    }
    return [_of_game(*what, models, sizes, resamples, seed) for what, models in repeated.items() if models]


def _played(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """The runs of models with valid play, by game and setting."""
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
            "game": curve.game,
            "metric": curve.metric,
            "models": curve.models,
            "measured": curve.simulations,
            "within": curve.within,
            "between": curve.between,
            "simulations": n,
            "bootstrap": sampled,
            "formula": formula,
            "reliability": share,
        }
        for curve in curves
        for n, sampled, formula, share in zip(
            curve.sizes,
            curve.bootstrap,
            curve.closed_form,
            curve.reliability or (None,) * len(curve.sizes),
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
        "Error: mean absolute error of a mean of n simulations. In units of the standard deviation it is √(2/(πn)) for "
        "any metric (0.18 at n = 20), so it can't show that n are enough. The reliability can: the share of the "
        "variance of such means that is between models."
    ]
    if any(curve.reliability is None for curve in curves):
        notes.append("A reliability needs two models under the same condition.")
    return Table("convergence", "Convergence of the games' metrics", columns, rows, notes)


def answer(curves: Sequence[Convergence]) -> str:
    """How many simulations make means reliable."""
    needed: dict[str, list[str]] = {}
    for curve in curves:
        if curve.reliability is not None:
            enough = (n for n, share in zip(curve.sizes, curve.reliability, strict=True) if share >= RELIABLE)
            needed.setdefault(f"{next(enough, f'more than {max(curve.sizes)}')}", []).append(_name(curve))
    if not needed:
        return "Can't tell how many simulations are enough: a reliability needs two models under the same condition."
    told = "; ".join(f"{n} for {in_words(names)}" for n, names in needed.items())
    return f"Simulations for a reliability of {RELIABLE}: {told}."


def _setting(run: RunRecord) -> str:
    """A run's condition without its models and the settings of calls."""
    return json.dumps({name: value for name, value in run.condition.items() if name not in _OF_CALLS}, sort_keys=True)


def _of_game(
    game: str, metric: str, models: Mapping[tuple[str, str], Array], sizes: Sequence[int], resamples: int, seed: int
) -> Convergence:
    values = list(models.values())
    freedom = sum(len(each) - 1 for each in values)
    within = math.sqrt(sum(float(each.var(ddof=1)) * (len(each) - 1) for each in values) / freedom)
    curves = [bootstrap_errors(each, sizes, resamples=resamples, seed=seed + at) for at, each in enumerate(values)]
    between = reliability = None
    settings = [setting for _, setting in models]
    if len(set(settings)) < len(settings):
        errors = np.array([each.std(ddof=1) / math.sqrt(len(each)) for each in values])
        between = math.sqrt(variance_between(np.array([each.mean() for each in values]), errors, settings))
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
        closed_form=tuple(map(float, closed_form_errors(float(np.mean([each.std(ddof=1) for each in values])), sizes))),
        relative=tuple(
            tuple(map(float, curve / each.std(ddof=1)))
            for curve, each in zip(curves, values, strict=True)
            if np.ptp(each)
        ),
        reliability=reliability,
    )


def _name(curve: Convergence) -> str:
    return curve.game if curve.metric == "level" else f"{curve.game}, {curve.metric.replace('_', ' ')}"


def convergence_figure(curves: Sequence[Convergence]) -> Figure:
    """The error of a mean of n simulations in units of the standard deviation, and the reliability.

    First over all models and games, then by game (cooperative-profiles paper, Figure 1); the reliability if there are
    several models.
    """
    has_reliability = any(curve.reliability is not None for curve in curves)
    height = 5.4 if has_reliability else 2.9
    figure, axes = new_figure(7.0, height + LEGEND_ROW * -(-len(curves) // 3), rows=1 + has_reliability, columns=2)
    sizes = curves[0].sizes
    every = np.array([relative for curve in curves for relative in curve.relative])
    axes[0].set_title("All models and games", loc="left", fontsize=9)
    axes[0].plot(sizes, closed_form_errors(1.0, sizes), color=GREY, linewidth=1, label="formula, normal errors")
    if every.size:
        mean, spread = every.mean(axis=0), every.std(axis=0)
        axes[0].fill_between(
            sizes, mean - spread, mean + spread, color=COLOURS[0], alpha=0.2, label="± 1 SD over models"
        )
        axes[0].plot(sizes, mean, "o-", color=COLOURS[0], markersize=4, linewidth=1, label="mean")
        axes[0].plot(sizes, np.quantile(every, 0.95, axis=0), "--", color=COLOURS[0], label="95th percentile")
    for place, curve in enumerate(curves):
        colour, marker = look(place)
        style: dict[str, Any] = {"color": colour, "label": _name(curve), "markersize": 4, "linewidth": 1}
        if curve.relative:
            axes[1].plot(sizes, np.mean(curve.relative, axis=0), f"{marker}-", **style)
        if curve.reliability is not None:
            axes[2].plot(sizes, curve.reliability, f"{marker}-", **style)
    axes[0].legend(fontsize=8, frameon=False)
    axes[1].set_title("By game", loc="left", fontsize=9)
    for each in axes[:2]:
        each.set_ylabel("mean absolute error, in SD")
        each.set_ylim(bottom=0)
    if has_reliability:
        axes[2].set_title("Separation of models", loc="left", fontsize=9)
        axes[2].set_ylabel("reliability of a mean")
        axes[2].set_ylim(0, 1.02)
        axes[3].set_axis_off()
    for each in axes[:3]:
        each.set_xlabel("simulations")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure
