"""The analysis of agreement between judges."""

from __future__ import annotations

from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError


def agreement(runs: Runs, _params: Params) -> Result:
    """Compare the scores of several judges on the same runs.

    By default, all runs of the store count. For each metric and task and each pair of judges, the table shows Pearson's
    r (over all runs, and about the models' means), kappa with quadratic weights (five levels), Lin's concordance,
    Krippendorff's alpha (ordinal) and the mean difference. With three models or more, 95 % intervals for new models are
    added.
    """
    from labmates.stats.answers import highest
    from labmates_credit.agreement import agreement, ratings_frame

    records = runs.records()
    table = agreement(ratings_frame(runs.store, records))
    if not table.rows:
        raise TooFewRunsError(
            f"no metric of these {len(records)} runs has scores of two judges; add some with labmates judge"
        )
    return Result([table], verdict=highest(table, "concordance", ["metric", "task", "judges"]))


AGREEMENT = Analysis(
    "agreement",
    "Agreement of judges",
    Params,
    agreement,
    example="labmates analyze agreement --kind science --task ecology",
    choices=("runs", "study", "kind", "task"),
    shown_for=("science",),
)
