"""The fate of each true finding: which seats had it, stated it, changed it or lost it.

`labmates.judges.findings_rules` tests texts for findings, by the task's tolerances. ``docs/lab/coordination.md`` has
the definitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel

from labmates.agents.organisation_parts import REPORT
from labmates.errors import UsageError
from labmates.judges.findings_rules import Finder, Item, items_of, record_keys
from labmates.judges.rows import rows_of
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, FindingsEvent, MessageEvent, ScoreEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.tasks.base import Task
from labmates.tasks.findings import check_findings
from labmates.workflows.protocol.experiment import condition_of
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.coordination import HandOver, Values, stages
from labmates.workflows.science.run import report_of

State = Literal["found", "received", "stated", "changed"]
End = Literal["delivered", "changed", "lost", "never found"]
ENDS: Final[tuple[End, ...]] = ("delivered", "changed", "lost", "never found")
STATES: Final[tuple[State, ...]] = ("found", "received", "stated", "changed")


@dataclass(frozen=True)
class Fate:
    """Fate of one true finding.

    Attributes
    ----------
    finding, item
        The field, and the item in words.
    seats
        States by seat, in the order of `STATES`: printed by its code (found), reached by a text (received), in a
        message, report, artifact or findings of the seat (stated), or with another value in its findings after the seat
        had it (changed).
    first
        The first seat that had it (by name among parallel seats); None if none did.
    end
        Whether the paper or its findings hold it, or another value.
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
    """A text of one seat, with the indices of the true findings that it holds, and of those that it changes."""

    event: int
    seat: str
    state: State
    holds: frozenset[int]
    changes: frozenset[int] = frozenset()
    final: Literal["", "paper", "findings"] = ""


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
    condition = None
    with suppress(UsageError):
        condition = condition_of(run)
    if not isinstance(condition, ScienceCondition):
        return []
    known: list[str] = []
    for event in events:
        if isinstance(event, ScoreEvent) and "findings" in event.details.get("handoff", {}):
            known = [str(passage["item"]) for passage in event.details["handoff"]["findings"]]
    if not known:
        return []
    report = report_of(condition, run.seed, events, bodies)
    followed = fates(events, bodies, received, report.task, report.truth)
    return followed if [fate.item for fate in followed][: len(known)] == known else []


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
            case ToolCallEvent(tool="mark_complete"):
                summary = str(bodies[event.arguments].get("summary", ""))
                yield _Text(number, event.agent, "stated", held(summary, prose=True))
            case MessageEvent():
                yield _Text(number, event.agent, "stated", held(str(bodies[event.text]), prose=True))
            case ArtifactEvent():
                holds = held(str(bodies[event.content]), prose=True)
                yield _Text(number, event.agent, "stated", holds, final="paper" if event.name == REPORT else "")
            case FindingsEvent():
                values = bodies[event.findings]
                holds = held(json.dumps(values), prose=False)
                changes = _changes(values, task, items) - holds
                yield _Text(number, event.agent, "stated", holds, changes, "findings")


def _changes(values: Mapping[str, Any], task: Task[Any, Any], items: Sequence[Item]) -> frozenset[int]:
    """The true findings with a value in a statement: the same field, and in a list the same names."""
    stated = check_findings(values, task.findings).findings
    if stated is None:
        return frozenset()
    statements = {(item.finding, item.in_list and item.plain) for item in items_of(stated)}
    comparable = ((place, item) for place, item in enumerate(items) if item.plain or not item.in_list)
    return frozenset(place for place, item in comparable if (item.finding, item.in_list and item.plain) in statements)


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
    had = {moment.seat: moment.event for moment in reversed(moments)}
    changed = [text for text in texts if place in text.changes and had.get(text.seat, text.event) < text.event]
    states: dict[str, set[State]] = {moment.seat: set() for moment in moments}
    for moment in moments:
        states[moment.seat].add(moment.state)
    for text in changed:
        states[text.seat].add("changed")
    stated = [moment for moment in moments if moment.state == "stated"]
    end = _end(place, texts, bool(moments))
    return Fate(
        finding=item.finding,
        item=str(item),
        seats={seat: tuple(state for state in STATES if state in of_seat) for seat, of_seat in states.items()},
        first=moments[0].seat if moments else None,
        end=end,
        lost_by=moments[-1].seat if end in ("lost", "changed") else None,
        corrected=any(m.follows(text.seat, staged[text.event], text.event) for text in changed for m in stated),
    )


def _end(place: int, texts: Sequence[_Text], is_found: bool) -> End:
    """The end of a finding, by the newest paper and its author's newest findings."""
    paper = next((text for text in reversed(texts) if text.final == "paper"), None)
    author = paper.seat if paper else ""
    stated = next((text for text in reversed(texts) if (text.final, text.seat) == ("findings", author)), None)
    last = [text for text in (paper, stated) if text is not None]
    if any(place in text.holds for text in last):
        return "delivered"
    if not is_found:
        return "never found"
    return "changed" if any(place in text.changes for text in last) else "lost"
