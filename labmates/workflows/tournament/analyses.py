"""The analysis of tournaments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    from labmates.workflows.tournament.report import report
    from labmates.workflows.tournament.results import tournaments
    from labmates.workflows.tournament.tables import hypotheses_table, rates_table, scores_table

    records = runs.records("tournament")
    played = tournaments(runs.store, records)
    reported = report(played)
    if not reported.groups:
        raise UsageError(f"none of these {len(records)} runs is an ended tournament")
    tables = [rates_table(reported.groups), hypotheses_table(reported.hypotheses), scores_table(played)]
    if params.plans:
        tables.append(_plans_table(runs.store, played))
    details = [_behaviour_table(reported.groups, single=params.profiles)]
    return Result(tables, figures=list(_drawings(reported.groups)), objects=[asdict(reported)], details=details)


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
    from labmates.workflows.tournament import tables

    def drawing(name: str, title: str, alt: str, draw: Callable[[Sequence[Group]], Figure | None]) -> Drawing:
        return Drawing(name, title, f"{alt} The numbers are in the table.", lambda: draw(groups))

    by_round = "Share of moves so far that cooperate, by round and structure."
    yield drawing("cooperation", "Cooperation by round", by_round, tables.cooperation_figure)
    by_match = "Share of first moves that cooperate, by match."
    yield drawing("one-shot", "Cooperation in first moves", by_match, tables.one_shot_figure)
    by_team = "Rates of cooperation within and between teams."
    yield drawing("teams", "Within and between teams", by_team, tables.teams_figure)
    by_question = "Share of right answers to questions on the game."
    yield drawing("comprehension", "Right answers", by_question, tables.comprehension_figure)


def _behaviour_table(groups: Sequence[Group], *, single: bool) -> Table:
    """Traits and likeness to known strategies, as group means and, with `single`, for each player."""
    from labmates.stats.tables import Column, Table
    from labmates.workflows.tournament.report import STRUCTURES, mean_profile

    rows: list[dict[str, Any]] = []
    for group in groups:
        who = {"model": group.model, "structure": STRUCTURES[group.structure]}
        rows.append({**who, "player": "mean", **mean_profile(group)})
        for player in group.profiles if single else ():
            likeness = {f"like {name}": value for name, value in player.affinity.items()}
            rows.append({**who, "player": f"{player.run} {player.player}", **player.traits, **likeness})
    measured = dict.fromkeys(key for row in rows for key in row if key not in ("model", "structure", "player"))
    columns = [Column("model", once=True), Column("structure", once=True), Column("player")]
    return Table("behaviour", "Behaviour", [*columns, *(Column(name, form=".2f") for name in measured)], rows)


COOPERATION = Analysis(
    "tournament",
    "Cooperation",
    CooperationParams,
    cooperation,
    example="labmates analyze tournament --study super-additive --plots figures",
    kind="tournament",
    objects="",
    has_figures=True,
)
