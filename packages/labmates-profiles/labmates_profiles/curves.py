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
    import pandas as pd

    under = [""] * len(means) if conditions is None else conditions
    groups = pd.DataFrame({"mean": means, "noise": errors**2, "under": under}).groupby("under")
    freedom = groups.size() - 1
    return max(0.0, float(((groups["mean"].var() - groups["noise"].mean()) * freedom).sum() / freedom.sum()))


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
    import pandas as pd

    frame = pd.DataFrame(
        [
            {"game": run.condition["game"], "model": run.models[0], "setting": _setting(run), **run.metrics}
            for run in runs
            if run.status in ENDED and len(run.models) == 1
        ]
    )
    if frame.empty:
        return []
    cell = ["game", "model", "setting"]
    failed = frame.get("failed_decision_rate", pd.Series(0.0, frame.index)).fillna(0.0)
    frame = frame[failed.groupby([frame[name] for name in cell]).transform("mean") <= MOST_FAILED]
    found = []
    for game, of_game in frame.groupby("game", sort=False):
        for metric in (name for name in metrics if name in frame):
            cells = of_game.dropna(subset=metric).groupby(cell[1:], sort=False)[metric]
            values = {key: each.to_numpy() for key, each in cells if len(each) > 1}
            if values:
                found.append(_of_game(str(game), metric, values, sizes, resamples, seed))
    return found


def convergence_table(curves: Sequence[Convergence]) -> Table:
    """Errors and reliabilities, a row for each game and number of simulations."""
    rows = [
        {
            **{name: getattr(curve, name) for name in ("game", "metric", "models")},
            "measured": curve.simulations,
            **{name: getattr(curve, name) for name in ("within", "between")},
            "simulations": n,
            "bootstrap": curve.bootstrap[at],
            "formula": curve.closed_form[at],
            "reliability": curve.reliability and curve.reliability[at],
        }
        for curve in curves
        for at, n in enumerate(curve.sizes)
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
    game: str, metric: str, cells: Mapping[Any, Array], sizes: Sequence[int], resamples: int, seed: int
) -> Convergence:
    """The convergence of a metric from the values of each model and setting."""
    values, settings = list(cells.values()), [setting for _, setting in cells]
    counts, means, spreads = (np.array([how(each) for each in values]) for how in (len, np.mean, _spread))
    within = math.sqrt((spreads**2 * (counts - 1)).sum() / (counts - 1).sum())
    curves = np.array(
        [bootstrap_errors(each, sizes, resamples=resamples, seed=seed + at) for at, each in enumerate(values)]
    )
    between = reliability = None
    if len(set(settings)) < len(settings):
        between = math.sqrt(variance_between(means, spreads / np.sqrt(counts), settings))
        reliability = tuple(reliabilities(between, within, sizes).tolist())
    varying = np.array([np.ptp(each) > 0 for each in values])
    return Convergence(
        game=game,
        metric=metric,
        models=len({model for model, _ in cells}),
        simulations=int(counts.min()),
        within=within,
        between=between,
        sizes=tuple(sizes),
        bootstrap=tuple(curves.mean(axis=0).tolist()),
        closed_form=tuple(closed_form_errors(float(spreads.mean()), sizes).tolist()),
        relative=tuple(map(tuple, (curves[varying] / spreads[varying, None]).tolist())),
        reliability=reliability,
    )


def _spread(values: Array) -> float:
    return float(values.std(ddof=1))


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
