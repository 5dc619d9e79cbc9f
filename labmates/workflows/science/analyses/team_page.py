"""Sections on a run's team: the seats as a graph, the measures of coordination, findings by seats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from markupsafe import Markup

from labmates.budgets.money import show_dollars
from labmates.errors import UsageError
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.records.bodies import Bodies
from labmates.records.events import Event
from labmates.records.reading import RunReader
from labmates.records.run import ENDED
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import condition_of
from labmates.workflows.science.analyses.fates import fates_of
from labmates.workflows.science.analyses.seat_graph import Arrow, seat_graph
from labmates.workflows.science.experiment import COORDINATION
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.coordination import Coordination, coordination
from labmates.workflows.science.lab.evidence import SHARED

render = templates_of(__package__)

MOST_EVENTS: Final = 5_000
"""A run with more events has no team sections, which would take too long."""
MOST_FATES: Final = 100


def team_sections(reader: RunReader) -> Iterator[Section]:
    """The sections on the coordination of an ended run's seats; none for a single agent."""
    run = reader.run
    condition = None
    with suppress(UsageError):  # a condition of another version
        condition = condition_of(run)
    if not isinstance(condition, ScienceCondition) or not condition.crew.has_colleagues:
        return
    if run.status not in ENDED or reader.last > MOST_EVENTS:
        return
    events, bodies = reader.store.events(run.id), Bodies(reader.store.bodies(run.id))
    measured = coordination(events, bodies, condition.crew.seats)
    teams = _seats_with_calls(condition, events)
    values = [(metric, measured.metrics[metric.name]) for metric in COORDINATION]
    body = render("team.html", drawing=team_graph(measured, teams), values=values)
    yield Section("team", "The team at work", body)
    if followed := fates_of(run, events, bodies, measured.hand_overs):
        left = len(followed) - MOST_FATES
        note = f"{left} more findings are not shown" if left > 0 else ""
        seats = dict.fromkeys([*teams, *(seat for fate in followed for seat in fate.seats)])
        parts = parts_of_seats(condition, seats)
        body = render("fates.html", fates=followed[:MOST_FATES], seats=parts)
        yield Section("seats", "Findings and seats", body, note)


def _seats_with_calls(condition: ScienceCondition, events: Sequence[Event]) -> dict[str, str]:
    """The team of each seat with model calls, in the organisation's order, then by name."""
    teams = {event.agent: event.team for event in events if event.type == "llm_call"}
    return {seat: teams[seat] for seat in dict.fromkeys([*condition.crew.seats, *sorted(teams)]) if seat in teams}


def parts_of_seats(condition: ScienceCondition, seats: Iterable[str]) -> dict[str, str]:
    """The part of the data that each seat holds; empty if it is all of it."""
    if condition.evidence == SHARED or not condition.crew.declares_seats:
        return dict.fromkeys(seats, "")
    held, names = condition.holdings, condition.instruments
    return {seat: f"holds the {names[held[seat]]}" if seat in held else "no code" for seat in seats}


def team_graph(measured: Coordination, teams: Mapping[str, str]) -> Markup:
    """The seats with arrows for hand-overs: number, used ones, and cost; `teams` by seat."""
    notes = {
        name: show_dollars(measured.spent.get(name, 0)) + (", idle" if name in measured.idle else "") for name in teams
    }
    # Merged reports, and texts of seats without a model, have no node.
    arrows = [arrow for arrow in _arrows(measured) if arrow.sender in teams]
    return seat_graph("Seats, and hand-overs between them", teams, notes, arrows)


def _arrows(measured: Coordination) -> Iterator[Arrow]:
    pairs = grouped(((item.sender, item.receiver), item) for item in measured.hand_overs)
    for pair, items in pairs.items():
        used, credits = sum(item.used for item in items), sum(item.credits for item in items)
        text = f"{len(items)}{f', {used} used' if used else ''}, {show_dollars(round(credits))}"
        yield Arrow(*pair, text, credits, faint=not used)
