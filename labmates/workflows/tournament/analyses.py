"""The analysis of tournaments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs

if TYPE_CHECKING:
    from labmates.records.store import Store
    from labmates.stats.tables import Table
    from labmates.workflows.tournament.report import Group
    from labmates.workflows.tournament.results import Tournament


class CooperationParams(Params):
    """Parameters of the analysis of tournaments."""

    profiles: bool = Field(False, description="Also show the behaviour of every player.")
    plans: bool = Field(False, description="Add a table with each player's last plan.")


def cooperation(runs: Runs, params: CooperationParams) -> Result:
    """Compare cooperation in the three structures of prisoner's dilemma tournaments.

    By default, all tournaments of the store count; those that differ only in structure and seed are compared.
    Cooperation rates (all moves, first moves, within and between teams) have two 95 % intervals: over players and
    replicates, as in the paper, and over tournaments, because rounds of a tournament are not independent. Further
    tables show correct answers by question, behaviour, scores of players and teams, and tests of both hypotheses: more
    cooperation (H1) and more one-shot cooperation (H2) in super-additive tournaments than in each of the others.
    """
    from labmates.workflows.tournament import report
    from labmates.workflows.tournament.results import tournaments

    records = runs.records("tournament")
    played = tournaments(runs.store, records)
    compared = report.compared(played)
    if not compared:
        raise UsageError(f"none of these {len(records)} runs is an ended tournament")
    groups = [group for same in compared for group in same]
    hypotheses = report.hypotheses_table(compared)
    tables = [report.rates_table(groups), hypotheses, report.scores_table(played)]
    if params.plans:
        tables.append(_plans_table(runs.store, played))
    behaviour = report.behaviour_table(groups, single=params.profiles)
    objects = [{"table": table.name, **row} for table in (*tables, behaviour) for row in table.rows]
    return Result(tables, list(_drawings(groups)), report.answers(hypotheses), objects=objects, details=[behaviour])


def _plans_table(store: Store, played: Sequence[Tournament]) -> Table:
    """The final plan of every player."""
    from labmates.records.bodies import Bodies
    from labmates.stats.tables import Column, Table
    from labmates.workflows.tournament.planning import final_plans
    from labmates.workflows.tournament.results import standings

    rows: list[dict[str, Any]] = []
    for tournament in played:
        plans = final_plans(store.events(tournament.run_id), Bodies(store.bodies(tournament.run_id)))
        for standing in standings(tournament):
            row = {"run": tournament.run_id, "structure": tournament.structure.upper(), "player": standing.player}
            team = {"team": standing.team, "model": standing.model, "points": standing.points}
            rows.append({**row, **team, "plan": plans.get(standing.player)})
    columns = [Column("run", once=True), Column("structure", once=True)]
    columns += [Column(name) for name in ("player", "team", "model", "points", "plan")]
    return Table("plans", "Final plans", columns, rows)


def _drawings(groups: Sequence[Group]) -> Iterator[Drawing]:
    from labmates.workflows.tournament import figures

    for name, title, alt, draw in (
        ("cooperation", "Cooperation by round", "moves so far that cooperate, by round", figures.cooperation_figure),
        ("one-shot", "Cooperation in first moves", "first moves that cooperate, by match", figures.one_shot_figure),
        ("teams", "Within and between teams", "moves that cooperate within and between teams", figures.teams_figure),
        ("comprehension", "Right answers", "right answers to questions on the game", figures.comprehension_figure),
    ):
        yield Drawing(
            name, title, f"Share of {alt}, by structure. The numbers are in the table.", partial(draw, groups)
        )


COOPERATION = Analysis(
    "tournament",
    "Cooperation",
    CooperationParams,
    cooperation,
    example="labmates analyze tournament --study super-additive --plots figures",
    kind="tournament",
    objects="per row with its table",
    has_figures=True,
)
