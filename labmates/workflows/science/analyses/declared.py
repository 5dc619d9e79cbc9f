"""The analyses of science runs: scores, coordination, teams against one agent, organisations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.errors import UsageError
from labmates.stats.figures import Drawing
from labmates.util.display_names import shown_settings
from labmates.workflows.protocol.analysis import Analysis, Missing, Params, Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.science.analyses.teamwork import Teamwork


def scores(runs: Runs, _params: Params) -> Result:
    """Average each judge's newest scores by metric and models.

    A run without a paper or readable findings counts with accuracy 0 (intention to treat); a second column has the mean
    of the other runs (per protocol).
    """
    from labmates.workflows.science.analyses.score_tables import scores_table
    from labmates.workflows.science.analyses.teamwork import judged_runs

    records = runs.ended("science")
    judged = judged_runs(runs.store, records)
    newest = runs.store.score_values([run.id for run in records])
    if not any(newest.get(run.id) for run in records):
        raise TooFewRunsError(f"no judge has scored these {len(records)} runs; add scores with labmates judge")
    return Result([scores_table(judged, newest)])


SCORES = Analysis(
    "scores",
    "Scores",
    Params,
    scores,
    example="labmates analyze scores --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
)


class CoordinationParams(Params):
    """The parameters of the measures of coordination."""

    findings: bool = Field(
        False,
        description="Also report the shares of true findings that were delivered, changed and lost; takes a second "
        "per run.",
    )


def coordination(runs: Runs, params: CoordinationParams) -> Result:
    """Average the coordination measures by organisation.

    The measures are the shares of tokens and credits spent on coordination, messages and the share of them used,
    redundancy, idle seats and requests, each with a 95 % interval over the runs of a condition. Runs from earlier
    versions are measured from their events. --findings adds the fate of the true findings.
    """
    from labmates.workflows.science.analyses.score_tables import coordination_table, fates_table

    records = runs.ended("science")
    if not records:
        raise TooFewRunsError("none of these runs has ended")
    tables = [coordination_table([(run, _coordination_of(runs, run)) for run in records])]
    if params.findings:
        followed = [(run, shares) for run in records if (shares := _fates_of(runs, run))]
        if not followed:
            raise TooFewRunsError(
                "no finding can be followed: the verified judge has scored none of these runs, or their data sets have "
                "another salt (LABMATES_SALT)"
            )
        tables.append(fates_table(followed))
    return Result(tables)


def _fates_of(runs: Runs, run: RunRecord) -> Mapping[str, float]:
    """The share of true findings by end; empty if they can't be followed."""
    from labmates.records.bodies import Bodies
    from labmates.workflows.science.analyses.fates import ENDS, fates_of
    from labmates.workflows.science.lab.coordination import hand_overs

    events, bodies = runs.store.events(run.id), Bodies(runs.store.bodies(run.id))
    followed = fates_of(run, events, bodies, hand_overs(events, bodies))
    return {end: sum(fate.end == end for fate in followed) / len(followed) for end in ENDS} if followed else {}


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
    CoordinationParams,
    coordination,
    example="labmates analyze coordination --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
)


def teamwork(runs: Runs, _params: Params) -> Result:
    """Compare teams with a single agent.

    By default, all runs of the store count. A team run is paired with the solo run (labmates run science --solo) of the
    same seed and an otherwise equal condition: task, difficulty, model, budget, visibility, prices and so on. The first
    table pools all conditions, with models and tasks as clusters; the others show each condition. For each score (skill
    first), and for tokens and credits, they show both sides, the difference (teams minus solo) and its mean over pairs
    with a 95 % interval. Unreadable reports count as accuracy 0; a second column has the mean over readable pairs.
    References to other teams' work are scored by the artifacts that a report names; a solo report refers to its own.
    """
    from dataclasses import asdict

    from labmates.workflows.protocol.experiment import EXPERIMENTS
    from labmates.workflows.science.analyses.teamwork import judged_runs, pooled_table, teamwork, teamwork_table

    records = [run for run in runs.records() if "solo" in EXPERIMENTS.get(run.kind).condition.model_fields]
    if not records:
        raise TooFewRunsError("none of these runs is of a kind with solo runs, such as science")
    compared = teamwork(judged_runs(runs.store, records), EXPERIMENTS.get(records[0].kind).domains)
    missing = list(_missing_partners(compared, records))
    if not compared.contrasts:
        raise TooFewRunsError(f"no pairs among the runs ({len(records)})", missing)
    return Result(
        [pooled_table(compared.pooled), teamwork_table(compared)],
        objects=[asdict(compared)],
        missing=missing,
    )


def _missing_partners(compared: Teamwork, records: Sequence[RunRecord]) -> Iterator[Missing]:
    from labmates.workflows.protocol.experiment import condition_of
    from labmates.workflows.science.analyses.teamwork import MIXED

    by_id = {run.id: run for run in records}
    for lonely in compared.unpaired:
        seeds = sorted(set(lonely.seeds))
        text = f"{_named(lonely.condition)}, seed {', '.join(map(str, seeds))}: {lonely.reason}"
        run = by_id[lonely.runs[0]]
        twin = None
        with suppress(UsageError):  # a condition of another version can't be executed again
            twin = None if lonely.reason == MIXED else condition_of(run).twin()
        yield Missing(text, twin, seeds, run.settings)
    if compared.unfinished:
        yield Missing(f"left out, since they have not ended: {', '.join(compared.unfinished)}")


def _named(condition: Mapping[str, Any]) -> str:
    """A condition in a few words."""
    before = {"task": "", "difficulty": "", "model": "", "budget": "budget $", "visibility": "visibility "}
    parts = [f"{words}{condition[name]}" for name, words in before.items() if name in condition]
    parts += ["theory of mind"] if condition.get("theory_of_mind") else []
    if condition.get("organisation"):
        parts += shown_settings(condition, ["organisation"]).values()
    return ", ".join([*parts, "one agent alone" if condition.get("solo") else f"teams of {condition.get('team_size')}"])


TEAMWORK = Analysis(
    "teamwork",
    "Teams against one agent alone",
    Params,
    teamwork,
    example="labmates analyze teamwork --task ecology",
    choices=("runs", "study", "kind", "task"),
    objects="",
    shown_for=("science",),
)


def necessity(runs: Runs, _params: Params) -> Result:
    """Estimate at which split of the evidence a team beats a single agent.

    Runs with split evidence (--evidence split:S) are paired by seed over the arms team, oracle (one agent with all
    instruments), restricted (one agent with the readings) and, if available, mute (the same seats without contact). The
    necessity index of a finding is (team − restricted) / (oracle − restricted), with a 95 % interval over seeds. The
    first table shows accuracy, index, cost and a verdict for each condition and split, the second the same for each
    finding. A figure shows accuracy and cost of all arms by split.
    """
    from labmates.workflows.science.analyses.necessity import ALL, ARMS, arm_figures, necessity_table, plays, verdicts
    from labmates.workflows.science.analyses.necessity import necessity as compare
    from labmates.workflows.science.analyses.teamwork import judged_runs

    played = list(plays(judged_runs(runs.store, runs.ended("science"))))
    compared = compare(played)
    if not compared:
        counts = ", ".join(f"{sum(play.arm == arm for play in played)} of arm {arm}" for arm in ARMS)
        raise TooFewRunsError(
            f"no seed has all three arms with divided evidence and a score of the verified judge ({counts}); "
            "run them with: labmates run science --evidence split:1 --arm ARM …, or labmates study run necessity"
        )
    overall = [each for each in compared if each.finding == ALL]
    by_finding = [each for each in compared if each.finding != ALL]
    tables = [
        necessity_table(overall, "necessity", "Does the task need a team?"),
        necessity_table(by_finding, "necessity_findings", "Each finding by itself"),
    ]
    return Result(tables, list(arm_figures(played)), verdict=verdicts(overall))


NECESSITY = Analysis(
    "necessity",
    "Does the task need a team?",
    Params,
    necessity,
    example="labmates analyze necessity --task anomaly",
    choices=("runs", "study", "task"),
    kind="science",
    has_figures=True,
)


class OrganisationsParams(Params):
    """The parameters of the comparison of organisations."""

    score: str = Field("accuracy", description="Metric that counts as the score, such as accuracy or quality.")


def organisations(runs: Runs, params: OrganisationsParams) -> Result:
    """Compare organisations by score, cost and time.

    Runs with otherwise equal conditions (task, difficulty, model, budget, evidence, …) are paired by seed. The first
    table shows each organisation's means with 95 % intervals, and whether it lies on the Pareto front of score against
    cost. The second shows all pairwise differences with adjusted p-values (Holm). For measures of coordination, see
    labmates analyze coordination.
    """
    from labmates.workflows.science.analyses.organisations import (
        differences_table,
        front_figure,
        outcomes_table,
        places,
        verdicts,
    )

    compared = places(runs.ended("science"), params.score)
    if not compared:
        raise TooFewRunsError(
            f"no two organisations have runs with the metric {params.score} that are equal in all else; run some with: "
            "labmates run science --organisation NAME"
        )
    figures = [
        Drawing(
            f"front-{number}",
            f"{params.score} against money: {', '.join(str(v) for v in place.settings.values() if isinstance(v, str))}",
            "The score of each organisation against its money, with intervals; the table has the numbers.",
            partial(front_figure, place, params.score),
        )
        for number, place in enumerate(compared, 1)
    ]
    tables = [outcomes_table(compared, params.score), differences_table(compared, params.score)]
    return Result(tables, figures, [*verdicts(compared, params.score)])


ORGANISATIONS = Analysis(
    "organisations",
    "Which organisation for which task?",
    OrganisationsParams,
    organisations,
    example="labmates analyze organisations --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
    shown_for=(),
)
