"""Sections on a run's team: hand-overs between seats, the measures of coordination, findings by seats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from labmates.budgets.money import show_dollars
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.records.bodies import Bodies
from labmates.records.reading import RunReader
from labmates.records.run import ENDED
from labmates.util.grouping import grouped
from labmates.workflows.science.analyses.fates import fates_of, science_condition
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
    condition = science_condition(run)
    if condition is None or not condition.crew.has_colleagues:
        return
    if run.status not in ENDED or reader.last > MOST_EVENTS:
        return
    events, bodies = reader.store.events(run.id), Bodies(reader.store.bodies(run.id))
    measured = coordination(events, bodies, condition.crew.seats)
    asked = {event.agent for event in events if event.type == "llm_call"}
    values = [(metric, measured.metrics[metric.name]) for metric in COORDINATION]
    body = render("team.html", rows=list(hand_over_rows(measured)), values=values)
    yield Section("team", "The team at work", body)
    if followed := fates_of(run, events, bodies, measured.hand_overs):
        left = len(followed) - MOST_FATES
        note = f"{left} more findings are not shown" if left > 0 else ""
        known = [*(seat for seat in condition.crew.seats if seat in asked), *sorted(asked)]
        seats = dict.fromkeys([*known, *(seat for fate in followed for seat in fate.seats)])
        parts = parts_of_seats(condition, seats)
        body = render("fates.html", fates=followed[:MOST_FATES], seats=parts)
        yield Section("seats", "Findings and seats", body, note)


def parts_of_seats(condition: ScienceCondition, seats: Iterable[str]) -> dict[str, str]:
    """The part of the data that each seat holds; empty if it is all of it."""
    if condition.evidence == SHARED or not condition.crew.declares_seats:
        return dict.fromkeys(seats, "")
    held, names = condition.holdings, condition.instruments
    return {seat: f"holds the {names[held[seat]]}" if seat in held else "no code" for seat in seats}


def hand_over_rows(measured: Coordination) -> Iterator[tuple[str, str, int, int, str]]:
    """Of each pair of seats the number of hand-overs, of used ones, and their cost; merged reports have no sender."""
    pairs = grouped(((item.sender, item.receiver), item) for item in measured.hand_overs if item.sender)
    for pair, items in pairs.items():
        cost = show_dollars(round(sum(item.credits for item in items)))
        yield (*pair, len(items), sum(item.used for item in items), cost)
