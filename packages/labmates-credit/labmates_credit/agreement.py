"""Agreement of judges on the same runs, by metric and task: pairs of judges, and all judges.

The analysis reports Pearson's r over all runs and within models, kappa with quadratic weights, Lin's concordance,
Krippendorff's alpha (ordinal, allows missing scores) and the mean difference, each with a 95 % interval for new models.
Runs of one model are not independent, so the jackknife omits one model at a time. Kappa uses the five levels of a
rubric; other scores are rounded to them (level = 1 + 4 x score).

Undefined coefficients (too few common runs, constant scores) are reported with the reason, as are missing scores and
judges with scores of several versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from labmates.records.events import ScoreEvent
from labmates.stats import intervals, multiplicity
from labmates.stats.coefficients import Floats, concordance
from labmates.stats.domains import ANY, CORRELATION, SHARE, Domain
from labmates.stats.intervals import LEAST_CLUSTERS, Estimate
from labmates.stats.tables import Column, Table
from labmates_credit.coefficients import krippendorff_alpha, mean_difference, pearson, within_pearson

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.run import RunRecord
    from labmates.records.store import Store

Names = NDArray[np.str_]
Places = NDArray[np.intp]
Chosen = NDArray[np.bool_]

LEAST_PAIRS: Final = 3
"""Fewer common runs give no coefficient."""
ALL_TASKS: Final = "all"
MEAN_JUDGE: Final = "rubric"
"""The mean of model judges, which is not a judge."""

MARKS: Final = "† the 95 % interval excludes 0; ‡ also after Holm's adjustment for all coefficients shown, p < .05."
CONSTANT = "a judge gives all of these runs the same score"
NO_VARIATION = "all scores are the same"
NOT_WITHIN = "no model has runs that both judges score differently"

COEFFICIENTS: Final = {
    "pearson": "Pearson r",
    "within": "r within models",
    "kappa": "kappa",
    "concordance": "concordance",
    "alpha": "alpha",
    "mean_difference": "mean difference",
}


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
        if score.judge == MEAN_JUDGE or (score.value is None and key in rows):
            continue
        run = by_id[run_id]
        labels = (run_id, str(run.condition.get("task", "")), " ".join(run.models))
        rows[key] = (*labels, score.judge, score.version, score.metric, score.value)
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"value": float})


def agreement(ratings: pd.DataFrame) -> Table:
    """The agreement on every metric scored by two or more judges: for all tasks together, then for each.

    A row per pair of judges, and one for three or more judges together, which has alpha alone. Each coefficient has its
    interval (units are models), the reason why that is missing, its p-value against 0 for new models, and this adjusted
    for all coefficients of the table. ``within`` is Pearson's r about the means of models: agreement beyond recognising
    the good models. Differences are the second judge's scores minus the first judge's.

    Parameters
    ----------
    ratings
        A frame of `ratings_frame`, each judge at most once per run and metric.
    """
    rows: list[tuple[dict[str, Any], dict[str, Estimate]]] = []
    notes: dict[str, None] = {}
    for metric, of_metric in ratings.groupby("metric", sort=True):
        if of_metric.loc[of_metric["value"].notna(), "judge"].nunique() < 2:
            continue
        tasks = [(str(task), group) for task, group in of_metric.groupby("task", sort=False)]
        for task, group in [(ALL_TASKS, of_metric), *tasks] if len(tasks) > 1 else tasks:
            labels = {"metric": str(metric), "task": task}
            mine = [({**labels, **head}, coefficients) for head, coefficients in _agreements(group)]
            rows += mine
            texts = [
                f"{head['judges']}: {coefficient.reason}"
                for head, coefficients in mine
                for coefficient in coefficients.values()
                if np.isnan(coefficient.value)
            ]
            notes |= dict.fromkeys(f"{metric}, {task}, {text}." for text in texts)
            notes |= dict.fromkeys(f"{metric}, {task}: {text}." for text in _remarks(group))
    every = [coefficient for _, coefficients in rows for coefficient in coefficients.values()]
    adjusted = iter(multiplicity.holm([coefficient.p for coefficient in every]))
    flat = []
    for head, coefficients in rows:
        row = dict(head)
        for key, coefficient in coefficients.items():
            row |= _flat(key, coefficient, next(adjusted))
        flat.append(row)
    remarks = [*notes, "For new models. Alpha is ordinal, kappa quadratic on five levels; – is undefined.", MARKS]
    remarks += intervals.notes(coefficient for coefficient in every if not np.isnan(coefficient.value))
    shown = [Column(key, heading, ".2f", "both", marked=f"{key}_mark") for key, heading in COEFFICIENTS.items()]
    columns = [Column("metric", once=True), Column("task", once=True), Column("judges"), Column("runs"), *shown]
    return Table("agreement", "Agreement of judges", columns, flat, remarks)


def _flat(key: str, coefficient: Estimate, p_holm: float | None) -> dict[str, Any]:
    is_defined, p = not np.isnan(coefficient.value), coefficient.p
    return {
        **coefficient.row(key),
        key: coefficient.value if is_defined else None,
        # The reason for an undefined value is in the remarks.
        f"{key}_reason": coefficient.reason if is_defined else "",
        f"{key}_p": p,
        f"{key}_p_holm": p_holm,
        f"{key}_mark": multiplicity.mark(p is not None and p < multiplicity.SIGNIFICANT, p_holm),
    }


def _agreements(ratings: pd.DataFrame) -> Iterator[tuple[dict[str, Any], dict[str, Estimate]]]:
    """The labels and coefficients of each pair of judges, and of three or more together."""
    table = ratings[ratings["value"].notna()].pivot_table(index=["run", "models"], columns="judge", values="value")
    scores = table.to_numpy(dtype=float).T
    models = np.array(table.index.get_level_values("models"), dtype=str)
    judges = [str(name) for name in table.columns]
    head: dict[str, Any]
    for (i, first), (j, second) in combinations(enumerate(judges), 2):
        both = np.flatnonzero(~np.isnan(scores[[i, j]]).any(axis=0))
        head = {"judges": f"{first} and {second}", "first": first, "second": second}
        counts = {"runs": len(both), "models": len(set(models[both]))}
        yield {**head, **counts}, coefficients_over_models(scores[i, both], scores[j, both], models[both])
    if len(judges) > 2:
        rated_twice = np.flatnonzero((~np.isnan(scores)).sum(axis=0) > 1)
        kept, groups = scores[:, rated_twice], np.unique(models[rated_twice], return_inverse=True)[1]
        head = {"judges": f"all {len(judges)}", "first": None, "second": None, "runs": len(rated_twice)}
        alpha = _over_models(lambda chosen: krippendorff_alpha(kept[:, chosen]), groups, NO_VARIATION)
        yield head, {"alpha": alpha}


def _remarks(ratings: pd.DataFrame) -> Iterator[str]:
    """Runs that a judge failed to score, and judges with scores in several versions."""
    unscored = ratings.loc[ratings["value"].isna(), "judge"].value_counts(sort=False)
    for judge, number in unscored.items():
        yield f"{judge} could not score {number} runs, which are excluded"
    for judge, some in ratings[ratings["value"].notna()].groupby("judge"):
        if len(versions := sorted(set(some["version"]))) > 1:
            yield f"{judge!s} has scored in versions {', '.join(versions)}, which may differ"


def levels(values: Floats) -> Floats:
    """The five levels of scores in [0, 1]."""
    return 1 + np.rint(4 * values)


def coefficients_over_models(a: Floats, b: Floats, models: Names) -> dict[str, Estimate]:
    """The coefficients of agreement of two judges, by name; NaN with the reason if undefined.

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
        "pearson": _over_models(lambda w: pearson(a[w], b[w]), groups, CONSTANT),
        "within": _over_models(lambda w: within_pearson(a[w], b[w], groups[w]), groups, NOT_WITHIN),
        "kappa": _over_models(lambda w: concordance(levels(a[w]), levels(b[w])), groups, NO_VARIATION),
        "concordance": _over_models(lambda w: concordance(a[w], b[w]), groups, NO_VARIATION),
        "alpha": _over_models(lambda w: krippendorff_alpha(np.stack([a[w], b[w]])), groups, NO_VARIATION),
        "mean_difference": _over_models(lambda w: mean_difference(a[w], b[w]), groups, "", of_difference),
    }


def _over_models(
    coefficient: Callable[[Chosen], float], groups: Places, undefined: str, domain: Domain = CORRELATION
) -> Estimate:
    """A coefficient with its interval over models.

    Parameters
    ----------
    coefficient
        Returns the coefficient of the chosen runs.
    groups
        The index of each run's model, shape (runs,).
    undefined
        The reason if the coefficient is undefined.
    """
    if len(groups) < LEAST_PAIRS:
        return _undefined(f"{len(groups)} common runs; {LEAST_PAIRS} are needed")
    value = coefficient(groups >= 0)
    if np.isnan(value):
        return _undefined(undefined)
    models = range(int(groups.max()) + 1)
    few = len(models) < LEAST_CLUSTERS
    return intervals.clusters(value, [np.nan if few else coefficient(groups != model) for model in models], domain)


def _undefined(reason: str) -> Estimate:
    return Estimate(float("nan"), None, None, None, 0, reason=reason)
