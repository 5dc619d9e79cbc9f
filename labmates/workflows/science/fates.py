"""The fate of each true finding in the hands of the seats: who had it, who stated it, where it was changed or lost.

Whether a text holds a finding is told by `labmates.judges.findings_rules`, with the task's own tolerances. Definitions
are in ``docs/lab/coordination.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

from labmates.agents.organisation import REPORT
from labmates.errors import UsageError
from labmates.judges.findings_rules import Finder, Item, items_of, record_keys
from labmates.judges.rows import Row, rows_of
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, FindingsEvent, MessageEvent, ScoreEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.tasks.base import Task
from labmates.tasks.findings import check_findings
from labmates.workflows.experiment import condition_of
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.coordination import HandOver, Values
from labmates.workflows.science.run import report_of

State = Literal["found", "received", "stated", "changed"]
End = Literal["delivered", "changed", "lost", "never found"]
ENDS: Final[tuple[End, ...]] = ("delivered", "changed", "lost", "never found")
STATES: Final[tuple[State, ...]] = ("found", "received", "stated", "changed")


@dataclass(frozen=True)
class Fate:
    """What became of one true finding.

    Attributes
    ----------
    finding, item
        The field, and the statement in words.
    seats
        For each seat that had it, in which ways, in the order of `STATES`: its code printed it (found), a text with it
        reached the seat (received), a message, report, artifact or findings of the seat hold it (stated), or its
        findings hold another value after the seat had it (changed).
    first
        The seat that had it first; None if none ever had.
    end
        Whether the paper or its findings hold it; if not, whether they hold another value.
    lost_by
        The last seat that had it; None unless it was lost or changed in the end.
    corrected
        Whether somebody stated it after it was changed.
    """

    finding: str
    item: str
    seats: Mapping[str, tuple[State, ...]]
    first: str | None
    end: End
    lost_by: str | None
    corrected: bool


@dataclass(frozen=True)
class _Text:
    """A text of one seat: the true findings that it holds and those that it states otherwise, by their places."""

    event: int
    seat: str
    state: State
    holds: frozenset[int]
    changes: frozenset[int] = frozenset()
    final: Literal["", "paper", "findings"] = ""


def fates(
    events: Sequence[Event], bodies: Values, received: Sequence[HandOver], task: Task[Any, Any], truth: BaseModel
) -> list[Fate]:
    """Follow every true finding of a run through the hands of its seats.

    Parameters
    ----------
    events
        All events of the run, in order.
    bodies
        The values that they name by number.
    received
        What reached which seat (`labmates.workflows.science.coordination`).
    """
    items = items_of(task.oracle(truth))
    texts = list(_texts(events, bodies, task, Finder(task, truth), items))
    return [_fate(place, item, texts, received) for place, item in enumerate(items)]


def fates_of(run: RunRecord, events: Sequence[Event], bodies: Bodies, received: Sequence[HandOver]) -> list[Fate]:
    """Follow the findings of a stored run.

    The truth is made anew from the seed and a salt that may be private. Without a judge's record of the same truth,
    nothing is followed, nor for a condition of another version.
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
        return frozenset(place for place, item in enumerate(items) if _holds(finder, rows, item))

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


def _holds(finder: Finder, rows: Sequence[Row], item: Item) -> bool:
    return any(finder.holds(row, item) for row in rows)


def _changes(values: Mapping[str, Any], task: Task[Any, Any], items: Sequence[Item]) -> frozenset[int]:
    """The true findings of which a statement has the field, and in a list the names."""
    stated = check_findings(values, task.findings).findings
    if stated is None:
        return frozenset()
    said = {(item.finding, item.plain) for item in items_of(stated)}
    comparable = (place for place, item in enumerate(items) if item.plain or not item.in_list)
    return frozenset(place for place in comparable if (items[place].finding, items[place].plain) in said)


def _fate(place: int, item: Item, texts: Sequence[_Text], received: Sequence[HandOver]) -> Fate:
    holding = {text.event for text in texts if place in text.holds}
    steps: list[tuple[int, int, str, State]] = [
        (text.event, 0, text.seat, text.state) for text in texts if place in text.holds
    ]
    steps += [(each.event, 1, each.receiver, "received") for each in received if each.event in holding]
    steps.sort()
    had = {seat: event for event, _, seat, _ in reversed(steps)}
    changed = [text for text in texts if place in text.changes and had.get(text.seat, text.event) < text.event]
    states: dict[str, set[State]] = {seat: set() for _, _, seat, _ in steps}
    for _, _, seat, state in steps:
        states[seat].add(state)
    for text in changed:
        states[text.seat].add("changed")
    end = _end(place, texts, bool(steps))
    return Fate(
        finding=item.finding,
        item=str(item),
        seats={seat: tuple(state for state in STATES if state in found) for seat, found in states.items()},
        first=steps[0][2] if steps else None,
        end=end,
        lost_by=steps[-1][2] if end in ("lost", "changed") else None,
        corrected=any(stated > text.event for text in changed for stated, _, _, state in steps if state == "stated"),
    )


def _end(place: int, texts: Sequence[_Text], is_found: bool) -> End:
    """How a finding ended in the newest paper and in the newest findings of its author."""
    paper = next((text for text in reversed(texts) if text.final == "paper"), None)
    author = paper.seat if paper else ""
    stated = next((text for text in reversed(texts) if (text.final, text.seat) == ("findings", author)), None)
    last = [text for text in (paper, stated) if text is not None]
    if any(place in text.holds for text in last):
        return "delivered"
    if not is_found:
        return "never found"
    return "changed" if any(place in text.changes for text in last) else "lost"
