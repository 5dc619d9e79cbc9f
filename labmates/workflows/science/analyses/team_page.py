"""Sections on a run's team: hand-overs between seats and the measures of coordination, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from labmates.budgets.money import show_dollars
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.records.bodies import Bodies
from labmates.records.events import Event
from labmates.records.reading import RunReader
from labmates.records.run import ENDED, RunRecord
from labmates.registry import Registry
from labmates.util.grouping import grouped
from labmates.workflows.science.experiment import COORDINATION
from labmates.workflows.science.lab.condition import ScienceCondition, science_condition
from labmates.workflows.science.lab.coordination import Coordination, coordination
from labmates.workflows.science.lab.evidence import SHARED

render = templates_of(__package__)

MOST_EVENTS: Final = 5_000
"""A run with more events has no team sections, which would take too long."""


@dataclass(frozen=True)
class Team:
    """An ended run of several seats, with its measures of coordination."""

    run: RunRecord
    condition: ScienceCondition
    events: Sequence[Event]
    bodies: Bodies
    measured: Coordination

    def parts(self, others: Iterable[str] = ()) -> dict[str, str]:
        """The part of the data that each seat which was asked holds, and each of the `others`; empty if it is all."""
        asked = {event.agent for event in self.events if event.type == "llm_call"}
        known = [*(seat for seat in self.condition.crew.seats if seat in asked), *sorted(asked), *others]
        return parts_of_seats(self.condition, dict.fromkeys(known))


SECTIONS: Registry[Callable[[Team], Iterator[Section]]] = Registry("section on a team", "labmates.team_sections")
"""Further sections, by name."""


def team_sections(reader: RunReader) -> Iterator[Section]:
    """The sections on an ended run's seats; none for a single agent."""
    run = reader.run
    condition = science_condition(run)
    if condition is None or not condition.crew.has_colleagues:
        return
    if run.status not in ENDED or reader.last > MOST_EVENTS:
        return
    events, bodies = reader.store.events(run.id), Bodies(reader.store.bodies(run.id))
    team = Team(run, condition, events, bodies, coordination(events, bodies, condition.crew.seats))
    values = [(metric, team.measured.metrics[metric.name]) for metric in COORDINATION]
    body = render("team.html", rows=list(hand_over_rows(team.measured)), values=values)
    yield Section("team", "The team at work", body)
    for name in SECTIONS.names():
        yield from SECTIONS.get(name)(team)


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
