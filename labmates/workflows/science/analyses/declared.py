"""The analyses of science runs: scores, coordination, teams against one agent, organisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from labmates.workflows.analyses.compare import preset
from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord


def scores(runs: Runs, _params: Params) -> Result:
    """Average each judge's newest scores by metric and models.

    A run without a paper or readable findings counts with accuracy 0 (intention to treat); a second column has the mean
    of the other runs (per protocol).
    """
    from labmates.stats.answers import highest
    from labmates.workflows.science.analyses.judged import judged_runs
    from labmates.workflows.science.analyses.score_tables import scores_table

    records = runs.ended("science")
    judged = judged_runs(runs.store, records)
    newest = runs.store.score_values([run.id for run in records])
    if not any(newest.get(run.id) for run in records):
        raise TooFewRunsError(f"no judge has scored these {len(records)} runs; add scores with labmates judge")
    table = scores_table(judged, newest)
    first = [row for row in table.rows if all(row[name] == table.rows[0][name] for name in ("metric", "judge"))]
    what = "{metric} by the judge {judge}".format(**first[0])
    return Result([table], verdict=highest(table, "score", ["models"], what=what, rows=first))


SCORES = Analysis(
    "scores",
    "Scores",
    Params,
    scores,
    example="labmates analyze scores --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
)


_TEAM = ("organisation", "team_size")
"""The settings of which the measures tell."""


def coordination(runs: Runs, _params: Params) -> Result:
    """Average the coordination measures by organisation.

    The measures are the shares of tokens and credits spent on coordination, messages and the share of them used,
    redundancy, idle seats and requests, each with a 95 % interval over the runs of a condition. Runs from earlier
    versions are measured from their events.
    """
    from labmates.stats.answers import highest
    from labmates.workflows.science.analyses.score_tables import coordination_table

    records = runs.ended("science")
    if not records:
        raise TooFewRunsError("none of these runs has ended")
    table = coordination_table([(run, _coordination_of(runs, run)) for run in records])
    conditions = [column.key for column in table.columns if column.once]
    teams = [name for name in conditions if name in _TEAM] or conditions
    elsewhere = [name for name in conditions if name not in teams]
    return Result([table], verdict=highest(table, table.columns[len(conditions) + 1].key, teams, elsewhere))


def _coordination_of(runs: Runs, run: RunRecord) -> Mapping[str, float]:
    from labmates.records.bodies import Bodies
    from labmates.workflows.science.experiment import COORDINATION
    from labmates.workflows.science.lab.coordination import coordination

    if all(metric.name in run.metrics for metric in COORDINATION):
        return run.metrics
    return coordination(runs.store.events(run.id), Bodies(runs.store.bodies(run.id))).metrics


COORDINATION = Analysis(
    "coordination",
    "Coordination by organisation",
    Params,
    coordination,
    example="labmates analyze coordination --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
)


TEAMWORK = preset(
    "teamwork",
    "Teams against one agent alone",
    "Compare teams with a single agent of the same seed and an otherwise equal condition; see labmates compare.",
    "labmates analyze teamwork --task ecology",
    "science",
    is_shown=True,
    conditions=("a team:organisation!=solo", "one agent:organisation=solo"),
)


def necessity(runs: Runs, _params: Params) -> Result:
    """Estimate at which split of the evidence a team beats a single agent.

    Runs with split evidence (--evidence split:S) are paired by seed over the arms team, oracle (one agent with all
    instruments), restricted (one agent with the readings) and, if available, mute (the same seats without contact). The
    necessity index of a finding is (team − restricted) / (oracle − restricted), with a 95 % interval over seeds. The
    first table shows accuracy, index, cost and a verdict for each condition and split, the second the same for each
    finding. Intervals of team − restricted are
    simultaneous for all rows of a table. A figure shows accuracy of all arms and this difference by split.
    """
    from labmates.workflows.science.analyses.judged import judged_runs
    from labmates.workflows.science.analyses.necessity import ALL, ARMS, arm_figures, necessity_table, plays, verdicts
    from labmates.workflows.science.analyses.necessity import necessity as compare

    played = list(plays(judged_runs(runs.store, runs.ended("science"))))
    compared = compare(played)
    if not compared:
        counts = ", ".join(f"{sum(play.arm == arm for play in played)} of arm {arm}" for arm in ARMS)
        raise TooFewRunsError(
            f"no seed has all three arms with divided evidence and a score of the verified judge ({counts}); "
            "run them with: labmates run science --evidence split:1 --arm ARM …, or labmates study run necessity"
        )
    overall = [each for each in compared if each.head["finding"] == ALL]
    by_finding = [each for each in compared if each.head["finding"] != ALL]
    tables = [
        necessity_table(overall, "necessity", "Does the task need a team?"),
        necessity_table(by_finding, "necessity_findings", "Each finding by itself"),
    ]
    return Result(tables, list(arm_figures(compared)), verdict=verdicts(overall))


NECESSITY = Analysis(
    "necessity",
    "Does the task need a team?",
    Params,
    necessity,
    example="labmates analyze necessity --task anomaly",
    choices=("runs", "study", "task"),
    kind="science",
    has_figures=True,
    answers=True,
)


ORGANISATIONS = preset(
    "organisations",
    "Which organisation for which split?",
    "Compare organisations at each split of the evidence: labmates compare --by organisation --each evidence.",
    "labmates analyze organisations --study architectures",
    "science",
    is_shown=True,
    by=("organisation",),
    each="evidence",
)
