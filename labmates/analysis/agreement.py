"""How well judges agree on the same runs: by metric and task, judge by judge and all together.

Reported are Pearson's r of all runs and r within models, kappa with quadratic weights, Lin's concordance,
Krippendorff's alpha (ordinal, which copes with missing scores) and the mean difference, each with a 95 % interval by
bootstrap. Kappa is of five levels: those of a rubric, into which other scores are binned by rounding (level = 1 + 4 x
score). Resampled are models where the runs have `LEAST_CLUSTERS` or more, since runs of one model are no independent
witnesses, else runs.

A coefficient that is not defined (too few common runs, scores that do not vary) is stated as such, with the reason; so
are scores that a judge could not give, and judges of which several versions have scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from labmates.analysis.coefficients import (
    Floats,
    concordance,
    krippendorff_alpha,
    mean_difference,
    pearson,
    within_pearson,
)
from labmates.analysis.tables import Column, Table
from labmates.records.events import ScoreEvent

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.run import RunRecord
    from labmates.records.store import Store

Names = NDArray[np.str_]

LEAST_PAIRS: Final = 3
"""With fewer common runs no coefficient is given."""
LEAST_FOR_INTERVAL: Final = 5
LEAST_CLUSTERS: Final = 10
LEAST_DEFINED: Final = 0.9
"""An interval is given if the coefficient is defined in so many of the resamples."""
RESAMPLES: Final = 1_000
ALL_TASKS: Final = "all"
MEAN_JUDGE: Final = "rubric"
"""The mean over model judges is no judge of its own."""

CONSTANT = "a judge gives all of these runs the same score"
NO_VARIATION = "all scores are the same"
NOT_WITHIN = "no model has runs that both judges score differently"


@dataclass(frozen=True)
class Estimate:
    """A coefficient with its 95 % interval; `value` is None if it is not defined, and `reason` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Pair:
    """How two judges agree on one metric.

    Attributes
    ----------
    runs, models
        How many runs both have scored, and how many models (or sets of models) these are of.
    within
        Pearson's r about the means of models: what is left when it is no merit to know the good models.
    mean_difference
        Of the second judge's scores and the first one's.
    """

    first: str
    second: str
    runs: int
    models: int
    pearson: Estimate
    within: Estimate
    kappa: Estimate
    concordance: Estimate
    alpha: Estimate
    mean_difference: Estimate


@dataclass(frozen=True)
class Agreement:
    """How the judges agree on one metric for the runs of one task, or of all.

    Attributes
    ----------
    runs
        How many runs two judges or more have scored.
    unit
        What was resampled for the intervals.
    alpha
        Over all judges together.
    unscored
        How many of the runs each judge was asked about and could not score; these count nowhere.
    versions
        The versions of each judge whose scores count.
    """

    metric: str
    task: str
    judges: tuple[str, ...]
    runs: int
    unit: Literal["run", "model"]
    alpha: Estimate
    pairs: tuple[Pair, ...]
    unscored: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def ratings_frame(store: Store, runs: Sequence[RunRecord]) -> pd.DataFrame:
    """Return the newest score of every judge for every run and metric, one row each.

    Columns: ``run``, ``task``, ``models`` (the run's, as one text), ``judge``, ``version``, ``metric``, ``value`` (NaN
    where the judge could never score). The mean over model judges is left out.
    """
    import pandas as pd

    columns = ["run", "task", "models", "judge", "version", "metric", "value"]
    by_id = {run.id: run for run in runs}
    rows: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for run_id, score in store.events_of(list(by_id), ScoreEvent):
        key = (run_id, score.judge, score.metric)
        if score.judge == MEAN_JUDGE or (score.value is None and key in rows):
            continue
        run = by_id[run_id]
        what = (run_id, str(run.condition.get("task", "")), " ".join(run.models))
        rows[key] = (*what, score.judge, score.version, score.metric, score.value)
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"value": float})


def agreement(ratings: pd.DataFrame, *, seed: int = 0) -> list[Agreement]:
    """Return the agreement on every metric that two judges or more scored: for all tasks together, then for each.

    Parameters
    ----------
    ratings
        As `ratings_frame` returns it, each judge at most once per run and metric.
    seed
        Seed of the bootstrap.
    """
    found = []
    for metric, of_metric in ratings.groupby("metric", sort=True):
        if of_metric.loc[of_metric["value"].notna(), "judge"].nunique() < 2:
            continue
        tasks = [(str(task), group) for task, group in of_metric.groupby("task", sort=True)]
        groups = [(ALL_TASKS, of_metric), *tasks] if len(tasks) > 1 else tasks
        found += [_agreement(str(metric), task, group, seed) for task, group in groups]
    return found


_COLUMNS: Final = {
    "pearson": "Pearson r",
    "within": "r within models",
    "kappa": "kappa",
    "concordance": "concordance",
    "alpha": "alpha",
    "mean_difference": "mean difference",
}


def agreement_table(found: Sequence[Agreement]) -> Table:
    """Return agreements as one table: a row for each pair of judges, and one for all where there are three or more."""
    rows: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for one in found:
        what = {"metric": one.metric, "task": one.task}
        for pair in one.pairs:
            judges = {"judges": f"{pair.first} and {pair.second}", "first": pair.first, "second": pair.second}
            estimates = {name: getattr(pair, name) for name in _COLUMNS}
            counts = {"runs": pair.runs, "models": pair.models, "resampled": one.unit}
            rows.append({**what, **judges, **counts, **_flat(estimates)})
            for estimate in estimates.values():
                if estimate.reason:
                    notes[f"{one.metric}, {one.task}, {pair.first} and {pair.second}: {estimate.reason}."] = None
        if len(one.judges) > 2:
            rows.append(
                {
                    **what,
                    "judges": f"all {len(one.judges)}",
                    "first": None,
                    "second": None,
                    "runs": one.runs,
                    "resampled": one.unit,
                    **_flat({"alpha": one.alpha}),
                }
            )
            if one.alpha.reason:
                notes[f"{one.metric}, {one.task}, all judges: {one.alpha.reason}."] = None
        for judge, number in one.unscored.items():
            notes[f"{one.metric}, {one.task}: {judge} could not score {number} runs, which are left out."] = None
        for judge, versions in one.versions.items():
            if len(versions) > 1:
                several = f"{judge} has scored in versions {', '.join(versions)}, which may differ"
                notes[f"{one.metric}, {one.task}: {several}."] = None
    unit = {one.unit for one in found}
    notes["95 % intervals by bootstrap; – is not defined. Alpha is ordinal, kappa quadratic on five levels."] = None
    if "run" in unit:
        notes[
            f"Where fewer than {LEAST_CLUSTERS} models ran, runs were resampled: such intervals hold for these models "
            "alone and are too short for others."
        ] = None
    shown = [Column(key, heading, ".2f", "both") for key, heading in _COLUMNS.items()]
    columns = [
        Column("metric", once=True),
        Column("task", once=True),
        Column("judges"),
        Column("runs"),
        *shown,
    ]
    return Table("agreement", "Agreement of judges", columns, rows, list(notes))


def _flat(estimates: Mapping[str, Estimate]) -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for name, one in estimates.items():
        flat |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
    return flat


def levels(values: Floats) -> Floats:
    """Return the five levels of scores in [0, 1]."""
    return 1 + np.rint(4 * values)


def _agreement(metric: str, task: str, ratings: pd.DataFrame, seed: int) -> Agreement:
    scored = ratings[ratings["value"].notna()]
    table = scored.pivot_table(index=["run", "models"], columns="judge", values="value", sort=True)
    scores = table.to_numpy(dtype=float).T
    models = np.array(table.index.get_level_values("models"), dtype=str)
    judges = [str(name) for name in table.columns]
    rated_twice = np.flatnonzero((~np.isnan(scores)).sum(axis=0) > 1)
    resampled = _Resamples.of(models[rated_twice], seed)
    kept = scores[:, rated_twice]
    return Agreement(
        metric,
        task,
        tuple(judges),
        len(rated_twice),
        resampled.unit,
        resampled.estimate(lambda weights: krippendorff_alpha(kept, weights), NO_VARIATION),
        tuple(_pairs(judges, scores, models, seed)),
        {str(judge): int(number) for judge, number in _unscored(ratings).items()},
        {str(judge): tuple(sorted(set(some["version"]))) for judge, some in scored.groupby("judge")},
    )


def _unscored(ratings: pd.DataFrame) -> pd.Series[int]:
    return ratings.loc[ratings["value"].isna(), "judge"].value_counts(sort=False)


def _pairs(judges: Sequence[str], scores: Floats, models: Names, seed: int) -> Iterator[Pair]:
    for i, j in combinations(range(len(judges)), 2):
        both = np.flatnonzero(~np.isnan(scores[[i, j]]).any(axis=0))
        resampled = _Resamples.of(models[both], seed)
        yield _pair((judges[i], judges[j]), scores[i, both], scores[j, both], models[both], resampled)


def _pair(judges: tuple[str, str], a: Floats, b: Floats, models: Names, resampled: _Resamples) -> Pair:
    names, groups = np.unique(models, return_inverse=True)
    return Pair(
        *judges,
        len(a),
        len(names),
        pearson=resampled.estimate(lambda w: pearson(a, b, w), CONSTANT),
        within=resampled.estimate(lambda w: within_pearson(a, b, groups, w), NOT_WITHIN),
        kappa=resampled.estimate(lambda w: concordance(levels(a), levels(b), w), NO_VARIATION),
        concordance=resampled.estimate(lambda w: concordance(a, b, w), NO_VARIATION),
        alpha=resampled.estimate(lambda w: krippendorff_alpha(np.stack([a, b]), w), NO_VARIATION),
        mean_difference=resampled.estimate(lambda w: mean_difference(a, b, w), ""),
    )


@dataclass(frozen=True)
class _Resamples:
    """The bootstrap of some observations: weights of shape (resamples, n), and what was drawn."""

    unit: Literal["run", "model"]
    number: int
    weights: Floats

    @classmethod
    def of(cls, clusters: Names, seed: int) -> _Resamples:
        """Draw resamples of observations that belong to these clusters."""
        rng = np.random.default_rng(seed)
        names, place = np.unique(clusters, return_inverse=True)
        n = len(clusters)
        if n < LEAST_FOR_INTERVAL:
            return cls("run", n, np.empty((0, n)))
        if len(names) >= LEAST_CLUSTERS:
            return cls("model", n, _counts(rng, len(names))[:, place])
        return cls("run", n, _counts(rng, n))

    def estimate(self, coefficient: Callable[[Floats], Floats], undefined: str) -> Estimate:
        """Return the coefficient of the sample with its interval; `undefined` is why it may not be defined."""
        if self.number < LEAST_PAIRS:
            return Estimate(None, reason=f"{self.number} common runs; {LEAST_PAIRS} are needed")
        value = float(coefficient(np.ones((1, self.number)))[0])
        if np.isnan(value):
            return Estimate(None, reason=undefined)
        if self.number < LEAST_FOR_INTERVAL:
            return Estimate(value, reason=f"no interval for fewer than {LEAST_FOR_INTERVAL} runs")
        drawn = coefficient(self.weights)
        defined = drawn[~np.isnan(drawn)]
        if len(defined) < LEAST_DEFINED * len(drawn):
            return Estimate(value, reason="no interval: most scores are the same")
        low, high = np.quantile(defined, [0.025, 0.975])
        return Estimate(value, float(low), float(high))


def _counts(rng: np.random.Generator, n: int) -> Floats:
    """Return how often each of n things is drawn in each resample of n."""
    return rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
