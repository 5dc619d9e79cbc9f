"""Agreement of judges on the same runs, by metric and task: pairs of judges, and all judges.

The analysis reports Pearson's r over all runs and within models, kappa with quadratic weights, Lin's concordance,
Krippendorff's alpha (ordinal, allows missing scores) and the mean difference, each with a 95 % interval for new models.
Runs of one model are not independent, so the jackknife omits one model at a time. Kappa uses the five levels of a
rubric; other scores are rounded to them (level = 1 + 4 x score).

Undefined coefficients (too few common runs, constant scores) are reported with the reason, as are missing scores and
judges with scores of several versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from labmates.records.events import ScoreEvent
from labmates.stats import intervals, multiplicity
from labmates.stats.coefficients import (
    Floats,
    concordance,
    krippendorff_alpha,
    mean_difference,
    pearson,
    within_pearson,
)
from labmates.stats.domains import ANY, CORRELATION, SHARE, Domain
from labmates.stats.intervals import LEAST_CLUSTERS, Estimate
from labmates.stats.tables import Column, Table

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.run import RunRecord
    from labmates.records.store import Store

Names = NDArray[np.str_]
Places = NDArray[np.intp]

LEAST_PAIRS: Final = 3
"""Fewer common runs give no coefficient."""
ALL_TASKS: Final = "all"
MEAN_JUDGE: Final = "rubric"
"""The mean of model judges, which is not a judge."""

MARKS: Final = "† the 95 % interval excludes 0; ‡ also after Holm's adjustment for all coefficients shown, p < .05."
CONSTANT = "a judge gives all of these runs the same score"
NO_VARIATION = "all scores are the same"
NOT_WITHIN = "no model has runs that both judges score differently"


@dataclass(frozen=True)
class Coefficient:
    """A coefficient with its 95 % interval for new models.

    Attributes
    ----------
    value
        None if undefined.
    n, df, method
        As in `labmates.stats.intervals.Estimate`; units are models.
    reason
        Why the value or its interval is missing.
    p, p_holm
        Two-sided p-value against 0 for new models; adjusted for all coefficients of the analysis.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    df: float | None = None
    method: str = ""
    reason: str = ""
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class Pair:
    """The agreement of two judges on one metric.

    Attributes
    ----------
    runs, models
        Numbers of runs scored by both, and of their models (or sets of models).
    within
        Pearson's r about the means of models: agreement beyond recognising the good models.
    mean_difference
        Second judge's scores minus the first judge's.
    """

    first: str
    second: str
    runs: int
    models: int
    pearson: Coefficient
    within: Coefficient
    kappa: Coefficient
    concordance: Coefficient
    alpha: Coefficient
    mean_difference: Coefficient


@dataclass(frozen=True)
class Agreement:
    """The agreement of the judges on one metric for the runs of one task, or of all tasks.

    Attributes
    ----------
    runs
        Number of runs scored by two or more judges.
    alpha
        Alpha of all judges.
    unscored
        Number of runs that each judge failed to score; they are excluded.
    versions
        Versions of each judge with scores in the analysis.
    """

    metric: str
    task: str
    judges: tuple[str, ...]
    runs: int
    alpha: Coefficient
    pairs: tuple[Pair, ...]
    unscored: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def ratings_frame(store: Store, runs: Sequence[RunRecord]) -> pd.DataFrame:
    """The newest score of every judge for every run and metric, one row each, without the mean of model judges.

    Columns: ``run``, ``task``, ``models`` (the run's, as one text), ``judge``, ``version``, ``metric``, ``value`` (NaN
    if the judge never scored).
    """
    import pandas as pd

    columns = ["run", "task", "models", "judge", "version", "metric", "value"]
    by_id = {run.id: run for run in runs}
    rows: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for run_id, score in store.events_of(list(by_id), ScoreEvent):
        key = (run_id, score.judge, score.metric)
        if score.judge == MEAN_JUDGE or (score.intended is None and key in rows):
            continue
        run = by_id[run_id]
        labels = (run_id, str(run.condition.get("task", "")), " ".join(run.models))
        rows[key] = (*labels, score.judge, score.version, score.metric, score.intended)
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"value": float})


def agreement(ratings: pd.DataFrame) -> list[Agreement]:
    """The agreement on every metric scored by two or more judges: for all tasks together, then for each.

    Parameters
    ----------
    ratings
        A frame of `ratings_frame`, each judge at most once per run and metric.
    """
    agreements = []
    for metric, of_metric in ratings.groupby("metric", sort=True):
        if of_metric.loc[of_metric["value"].notna(), "judge"].nunique() < 2:
            continue
        tasks = [(str(task), group) for task, group in of_metric.groupby("task", sort=True)]
        groups = [(ALL_TASKS, of_metric), *tasks] if len(tasks) > 1 else tasks
        agreements += [_agreement(str(metric), task, group) for task, group in groups]
    # p-values are adjusted for all coefficients; alpha of two judges is that of the pair.
    coefficients = [coefficient for agreed in agreements for coefficient in _coefficients(agreed)]
    adjusted = iter(multiplicity.holm([coefficient.p for coefficient in coefficients]))
    results = []
    for unadjusted in agreements:
        pairs = tuple(
            replace(pair, **{name: replace(getattr(pair, name), p_holm=next(adjusted)) for name in _COLUMNS})
            for pair in unadjusted.pairs
        )
        alpha = replace(unadjusted.alpha, p_holm=next(adjusted)) if len(unadjusted.judges) > 2 else unadjusted.alpha
        results.append(replace(unadjusted, pairs=pairs, alpha=pairs[0].alpha if len(unadjusted.judges) == 2 else alpha))
    return results


def _coefficients(agreed: Agreement) -> list[Coefficient]:
    """The coefficients of an agreement, in the order of table rows."""
    coefficients = [getattr(pair, name) for pair in agreed.pairs for name in _COLUMNS]
    return [*coefficients, agreed.alpha] if len(agreed.judges) > 2 else coefficients


_COLUMNS: Final = {
    "pearson": "Pearson r",
    "within": "r within models",
    "kappa": "kappa",
    "concordance": "concordance",
    "alpha": "alpha",
    "mean_difference": "mean difference",
}


def agreement_table(agreements: Sequence[Agreement]) -> Table:
    """Agreements as one table: a row per pair of judges, and a row for three or more judges together."""
    rows: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for agreed in agreements:
        labels: dict[str, Any] = {"metric": agreed.metric, "task": agreed.task}
        for pair in agreed.pairs:
            judges = {"judges": f"{pair.first} and {pair.second}", "first": pair.first, "second": pair.second}
            estimates = {name: getattr(pair, name) for name in _COLUMNS}
            counts = {"runs": pair.runs, "models": pair.models}
            rows.append({**labels, **judges, **counts, **_flat(estimates)})
            for estimate in estimates.values():
                if estimate.value is None:
                    notes[f"{agreed.metric}, {agreed.task}, {pair.first} and {pair.second}: {estimate.reason}."] = None
        if len(agreed.judges) > 2:
            every = {"judges": f"all {len(agreed.judges)}", "first": None, "second": None}
            rows.append({**labels, **every, "runs": agreed.runs, **_flat({"alpha": agreed.alpha})})
            if agreed.alpha.value is None:
                notes[f"{agreed.metric}, {agreed.task}, all judges: {agreed.alpha.reason}."] = None
        for judge, number in agreed.unscored.items():
            notes[f"{agreed.metric}, {agreed.task}: {judge} could not score {number} runs, which are excluded."] = None
        for judge, versions in agreed.versions.items():
            if len(versions) > 1:
                several = f"{judge} has scored in versions {', '.join(versions)}, which may differ"
                notes[f"{agreed.metric}, {agreed.task}: {several}."] = None
    coefficients = [coefficient for agreed in agreements for coefficient in _coefficients(agreed)]
    remarks = [*notes, "For new models. Alpha is ordinal, kappa quadratic on five levels; – is undefined.", MARKS]
    remarks += intervals.notes(
        Estimate(c.value, None, c.low, c.high, c.n, c.df, c.method, c.reason)
        for c in coefficients
        if c.value is not None
    )
    shown = [Column(key, heading, ".2f", "both", marked=f"{key}_mark") for key, heading in _COLUMNS.items()]
    columns = [Column("metric", once=True), Column("task", once=True), Column("judges"), Column("runs"), *shown]
    return Table("agreement", "Agreement of judges", columns, rows, remarks)


def _flat(coefficients: Mapping[str, Coefficient]) -> dict[str, Any]:
    names = ("low", "high", "n", "df", "method", "reason", "p", "p_holm")
    flat: dict[str, Any] = {}
    for key, coefficient in coefficients.items():
        # The reason for an undefined value is in the remarks.
        flat |= {key: coefficient.value, **{f"{key}_{name}": getattr(coefficient, name) for name in names}}
        flat[f"{key}_mark"] = multiplicity.mark(
            coefficient.p is not None and coefficient.p < multiplicity.SIGNIFICANT, coefficient.p_holm
        )
        flat[f"{key}_reason"] = coefficient.reason if coefficient.value is not None else ""
    return flat


def levels(values: Floats) -> Floats:
    """The five levels of scores in [0, 1]."""
    return 1 + np.rint(4 * values)


def coefficients_over_models(a: Floats, b: Floats, models: Names) -> dict[str, Coefficient]:
    """The coefficients of agreement of two judges, by name.

    Parameters
    ----------
    a, b
        Scores of the same runs, shape ``(runs,)``.
    models
        The models of each run.
    """
    _, groups = np.unique(models, return_inverse=True)
    of_difference = SHARE.difference() if len(a) and min(a.min(), b.min()) >= 0 else ANY
    return {
        "pearson": _over_models(lambda w: pearson(a, b, w), groups, CONSTANT),
        "within": _over_models(lambda w: within_pearson(a, b, groups, w), groups, NOT_WITHIN),
        "kappa": _over_models(lambda w: concordance(levels(a), levels(b), w), groups, NO_VARIATION),
        "concordance": _over_models(lambda w: concordance(a, b, w), groups, NO_VARIATION),
        "alpha": _over_models(lambda w: krippendorff_alpha(np.stack([a, b]), w), groups, NO_VARIATION),
        "mean_difference": _over_models(lambda w: mean_difference(a, b, w), groups, "", of_difference),
    }


def _agreement(metric: str, task: str, ratings: pd.DataFrame) -> Agreement:
    scored = ratings[ratings["value"].notna()]
    unscored = ratings.loc[ratings["value"].isna(), "judge"].value_counts(sort=False)
    table = scored.pivot_table(index=["run", "models"], columns="judge", values="value", sort=True)
    scores = table.to_numpy(dtype=float).T
    models = np.array(table.index.get_level_values("models"), dtype=str)
    judges = [str(name) for name in table.columns]
    rated_twice = np.flatnonzero((~np.isnan(scores)).sum(axis=0) > 1)
    kept, groups = scores[:, rated_twice], np.unique(models[rated_twice], return_inverse=True)[1]
    return Agreement(
        metric,
        task,
        tuple(judges),
        len(rated_twice),
        _over_models(lambda weights: krippendorff_alpha(kept, weights), groups, NO_VARIATION),
        tuple(_pairs(judges, scores, models)),
        {str(judge): int(number) for judge, number in unscored.items()},
        {str(judge): tuple(sorted(set(some["version"]))) for judge, some in scored.groupby("judge")},
    )


def _pairs(judges: Sequence[str], scores: Floats, models: Names) -> Iterator[Pair]:
    for i, j in combinations(range(len(judges)), 2):
        both = np.flatnonzero(~np.isnan(scores[[i, j]]).any(axis=0))
        coefficients = coefficients_over_models(scores[i, both], scores[j, both], models[both])
        yield Pair(judges[i], judges[j], len(both), len(set(models[both])), **coefficients)


def _over_models(
    coefficient: Callable[[Floats], Floats], groups: Places, undefined: str, domain: Domain = CORRELATION
) -> Coefficient:
    """A coefficient with its interval over models.

    Parameters
    ----------
    coefficient
        Takes weights of runs, shape (any, runs), and returns the coefficient for each row of them.
    groups
        The index of each run's model, shape (runs,).
    undefined
        The reason if the coefficient is undefined.
    """
    if len(groups) < LEAST_PAIRS:
        return Coefficient(None, reason=f"{len(groups)} common runs; {LEAST_PAIRS} are needed")
    value = float(coefficient(np.ones((1, len(groups))))[0])
    if np.isnan(value):
        return Coefficient(None, reason=undefined)
    models = int(groups.max()) + 1
    others = (groups != np.arange(models)[:, None]).astype(float)
    left_out = coefficient(others) if models >= LEAST_CLUSTERS else np.full(models, np.nan)
    interval = intervals.clusters(value, left_out.tolist(), domain)
    low, high, p = interval.low, interval.high, interval.p
    return Coefficient(value, low, high, interval.n, interval.df, interval.method, interval.reason, p)
