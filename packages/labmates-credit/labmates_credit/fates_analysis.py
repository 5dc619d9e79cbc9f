"""The fates of true findings: an analysis of runs, and a section of a run's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from labmates.pages.section import Section
    from labmates.records.run import RunRecord
    from labmates.workflows.science.analyses.team_page import Team

MOST_FATES: Final = 100


def fates(runs: Runs, _params: Params) -> Result:
    """Average the shares of true findings that were delivered, changed, lost and never stated.

    Each with a 95 % interval over the runs of a condition; following the findings of a run takes a second.
    """
    from labmates.stats.answers import highest
    from labmates.stats.domains import SHARE
    from labmates.stats.tables import Column
    from labmates.workflows.science.analyses.score_tables import by_condition
    from labmates_credit.fates import ENDS

    followed = [(run, shares) for run in runs.ended("science") if (shares := _shares(runs, run))]
    if not followed:
        raise TooFewRunsError(
            "no finding can be followed: the verified judge has scored none of these runs, or their data sets have "
            "another salt (LABMATES_SALT)"
        )
    columns = [Column(end, form=".0%", shows="both") for end in ENDS]
    note = "Shares of the true findings. Lost: a seat stated it, the paper lacks it. Changed: the paper differs."
    table = by_condition("fates", "Fates of true findings", followed, columns, [SHARE] * len(columns), note)
    conditions = [column.key for column in table.columns if column.once]
    return Result([table], verdict=highest(table, ENDS[0], conditions))


def _shares(runs: Runs, run: RunRecord) -> Mapping[str, float]:
    """The share of true findings by end; empty if they can't be followed."""
    from labmates.records.bodies import Bodies
    from labmates.workflows.science.lab.coordination import hand_overs
    from labmates_credit.fates import ENDS, fates_of

    events, bodies = runs.store.events(run.id), Bodies(runs.store.bodies(run.id))
    followed = fates_of(run, events, bodies, hand_overs(events, bodies))
    return {end: sum(fate.end == end for fate in followed) / len(followed) for end in ENDS} if followed else {}


FATES = Analysis(
    "fates",
    "Fates of true findings",
    Params,
    fates,
    example="labmates analyze fates --task ecology",
    choices=("runs", "study", "task"),
    kind="science",
)


def sections(team: Team) -> Iterator[Section]:
    """The findings by seats, on the page of a run."""
    from labmates.pages.rendering import templates_of
    from labmates.pages.section import Section
    from labmates_credit.fates import fates_of

    if followed := fates_of(team.run, team.events, team.bodies, team.measured.hand_overs):
        left = len(followed) - MOST_FATES
        note = f"{left} more findings are not shown" if left > 0 else ""
        seats = team.parts(seat for fate in followed for seat in fate.seats)
        body = templates_of(__package__)("fates.html", fates=followed[:MOST_FATES], seats=seats)
        yield Section("seats", "Findings and seats", body, note)
