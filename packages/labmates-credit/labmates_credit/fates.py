"""The fate of each true finding: which seats stated it, received it, changed it or lost it.

`labmates.judges.findings_rules` tests typed findings, else texts, by the task's tolerances.
``docs/lab/coordination.md`` has the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel

from labmates.agents.organisation_parts import REPORT
from labmates.judges.findings_rules import Finder, Item, is_same, items_of, record_keys
from labmates.judges.rows import rows_of
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, FindingsEvent, MessageEvent, ScoreEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.tasks.base import Task
from labmates.tasks.findings import check_findings, read_findings
from labmates.workflows.science.lab.condition import science_condition
from labmates.workflows.science.lab.coordination import HandOver, Values, stages
from labmates.workflows.science.run import report_of

State = Literal["found", "received", "stated", "changed"]
End = Literal["delivered", "changed", "lost", "never stated"]
ENDS: Final[tuple[End, ...]] = ("delivered", "changed", "lost", "never stated")
STATES: Final[tuple[State, ...]] = ("found", "received", "stated", "changed")


@dataclass(frozen=True)
class Fate:
    """Fate of one true finding.

    Attributes
    ----------
    finding, item
        The field, and the item in words.
    seats
        States by seat, in the order of `STATES`: a number or name that its code printed (found), reached by a text
        (received), in a message, summary, artifact or findings of the seat (stated), or with another value in its
        findings after the seat had it (changed). A seat has it once it stated or received it: of the many numbers that
        code prints, some are equal by chance.
    first
        The first seat that had it (by name among parallel seats); None if none did.
    end
        Whether the findings of the paper's author, or the paper if it has none, hold it or another value.
    lost_by
        The last seat that had it, likewise; None unless it was lost or changed in the end.
    corrected
        Whether it was stated after a change, by the same seat or by another in a later stage.
    """

    finding: str
    item: str
    seats: Mapping[str, tuple[State, ...]]
    first: str | None
    end: End
    lost_by: str | None
    corrected: bool


class _Moment(NamedTuple):
    """Time at which a seat had a finding, in deterministic order: by stage, seat, and the seat's events."""

    stage: int
    seat: str
    event: int
    state: State

    def follows(self, seat: str, stage: int, event: int) -> bool:
        """Whether the moment follows an event of a seat."""
        return self.event > event if self.seat == seat else self.stage > stage


@dataclass(frozen=True)
class _Text:
    """A text or typed findings of one seat.

    `holds` are the indices of true findings; `values` what typed findings state in their place, None for a text.
    """

    event: int
    seat: str
    state: State
    holds: frozenset[int]
    values: Mapping[int, Item] | None = None
    is_paper: bool = False


def fates(
    events: Sequence[Event], bodies: Values, received: Sequence[HandOver], task: Task[Any, Any], truth: BaseModel
) -> list[Fate]:
    """The fates of all true findings of a run.

    Parameters
    ----------
    events
        All events of the run, in order.
    bodies
        Values of the events' bodies, by number.
    received
        Hand-overs between seats (`labmates.workflows.science.lab.coordination`).
    """
    items = items_of(task.oracle(truth))
    texts = list(_texts(events, bodies, task, Finder(task, truth), items))
    staged = stages(events)
    return [_fate(place, item, texts, received, staged) for place, item in enumerate(items)]


def fates_of(run: RunRecord, events: Sequence[Event], bodies: Bodies, received: Sequence[HandOver]) -> list[Fate]:
    """The fates of the findings of a stored run.

    The truth is regenerated from the seed and a possibly private salt. Empty without a judge's record of the same
    truth, or for a condition of another version.
    """
    condition = science_condition(run)
    known = [event.details["truth"] for event in events if isinstance(event, ScoreEvent) and "truth" in event.details]
    if condition is None or not known:
        return []
    report = report_of(condition, run.seed, events, bodies)
    if report.task.oracle(report.truth).model_dump(mode="json", exclude_none=True) != known[-1]:
        return []
    return fates(events, bodies, received, report.task, report.truth)


def _texts(
    events: Sequence[Event], bodies: Values, task: Task[Any, Any], finder: Finder, items: Sequence[Item]
) -> Iterator[_Text]:
    records = record_keys(task.findings)

    def held(text: str, *, prose: bool) -> frozenset[int]:
        rows = list(rows_of(text, records, prose=prose))
        return frozenset(
            place
            for place, item in enumerate(items)
            if any(finder.holds(row, item) or finder.credits(row, item) for row in rows)
        )

    for number, event in enumerate(events):
        match event:
            case ToolCallEvent() if event.status:
                yield _Text(number, event.agent, "found", held(str(bodies[event.result]), prose=False))
            case ToolCallEvent(tool="mark_complete", ok=True):
                summary = str(bodies[event.arguments].get("summary", ""))
                yield _Text(number, event.agent, "stated", held(summary, prose=True))
            case MessageEvent():
                yield _Text(number, event.agent, "stated", held(str(bodies[event.text]), prose=True))
            case ArtifactEvent():
                text, is_paper = str(bodies[event.content]), event.name == REPORT
                yield _Text(number, event.agent, "stated", held(text, prose=True), is_paper=is_paper)
                if is_paper and (block := read_findings(text, task.findings).findings) is not None:
                    yield _typed(number, event.agent, block, finder, items)
            case FindingsEvent():
                if (stated := check_findings(bodies[event.findings], task.findings).findings) is not None:
                    yield _typed(number, event.agent, stated, finder, items)


def _typed(number: int, seat: str, findings: BaseModel, finder: Finder, items: Sequence[Item]) -> _Text:
    """Typed findings; those of a list are in place of the true entry with the same names, in any order."""
    stated = {_slot(item): item for item in items_of(findings)}
    values = {place: stated[slot] for place, item in enumerate(items) if (slot := _slot(item)) in stated}
    holds = frozenset(place for place, item in enumerate(items) if finder.states(findings, item))
    return _Text(number, seat, "stated", holds, values)


def _slot(item: Item) -> tuple[str, tuple[str, ...]]:
    return item.finding, tuple(sorted(item.plain)) if item.in_list else ()


def _fate(place: int, item: Item, texts: Sequence[_Text], received: Sequence[HandOver], staged: Sequence[int]) -> Fate:
    holding = {text.event: text for text in texts if place in text.holds}
    # Merged reports have no seat.
    moments = [_Moment(staged[event], text.seat, event, text.state) for event, text in holding.items() if text.seat]
    moments += [
        _Moment(staged[text.reached], text.receiver, text.reached, "received")
        for text in received
        if text.event in holding
    ]
    moments.sort()
    had = [moment for moment in moments if moment.state != "found"]
    since = {moment.seat: moment.event for moment in reversed(had)}
    changed = [
        text
        for text in texts
        if since.get(text.seat, text.event) < text.event and _changes(place, item, text, texts, staged)
    ]
    states: dict[str, set[State]] = {moment.seat: set() for moment in moments}
    for moment in moments:
        states[moment.seat].add(moment.state)
    for text in changed:
        states[text.seat].add("changed")
    is_stated = bool(had) or any(text.state == "stated" for text in holding.values())  # a rule has no seat
    end = _end(place, item, texts, staged) if is_stated else "never stated"
    return Fate(
        finding=item.finding,
        item=str(item),
        seats={seat: tuple(state for state in STATES if state in of_seat) for seat, of_seat in states.items()},
        first=had[0].seat if had else None,
        end=end,
        lost_by=had[-1].seat if had and end in ("lost", "changed") else None,
        corrected=any(
            moment.follows(text.seat, staged[text.event], text.event)
            for text in changed
            for moment in had
            if moment.state == "stated"
        ),
    )


def _changes(place: int, item: Item, text: _Text, texts: Sequence[_Text], staged: Sequence[int]) -> bool:
    """Whether typed findings state another value than the true one, or than what other seats stated before."""
    if text.values is None or (value := text.values.get(place)) is None:
        return False
    if place not in text.holds:
        return True
    before = [
        other.values[place]
        for other in texts
        if other.values
        and place in other.values
        and place in other.holds
        and other.seat != text.seat
        and staged[other.event] < staged[text.event]
    ]
    return not item.in_list and bool(before) and not any(is_same(value, other) for other in before)


def _end(place: int, item: Item, texts: Sequence[_Text], staged: Sequence[int]) -> End:
    """The end of a stated finding, by the newest typed findings of the paper's author, else by the newest paper."""
    paper = next((text for text in reversed(texts) if text.is_paper), None)
    author = paper.seat if paper else ""
    stated = next((text for text in reversed(texts) if text.values is not None and text.seat == author), None)
    last = stated or paper
    if last is not None and _changes(place, item, last, texts, staged):
        return "changed"
    return "delivered" if last is not None and place in last.holds else "lost"
