"""Audits of a store: the consistency of its runs.

A store written only by labmates passes, whatever happened to workers, connections and machines. Hash chains and digests
are verified against the record. Whether a run's end follows from its events is told by `labmates.studies.replay`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.records import schema
from labmates.records.bodies import Body, Unpacker, UnreadableBodyError
from labmates.records.digests import LATE, Chain, digests, stored_digests
from labmates.records.events import ChargeEvent, Event, body_numbers, make_event
from labmates.records.recorder import usage_of
from labmates.records.rows import RUN_COLUMNS, run_record
from labmates.records.run import ENDED, RunRecord
from labmates.records.steps import costs
from labmates.records.store import Store
from labmates.records.studies import study_counts, study_records

_RUNS, _SEALS, _EVENTS, _BODIES = schema.runs, schema.seals, schema.events, schema.bodies
_IS_SEALED = _RUNS.c.digest.is_not(None)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class WholeRecord:
    """A run's record, at one moment: the run, its whole row, and what its digest covers beside it."""

    run: RunRecord
    row: Row
    seals: Sequence[Row]
    events: Sequence[Row]
    bodies: Sequence[Body]


def begun_runs(store: Store, *, study: str | None = None) -> list[str]:
    """The ids of all runs with a record, oldest first, even if marked as planned."""
    return _of_runs(store, _RUNS.c.id, sa.or_(_RUNS.c.status != "planned", _RUNS.c.chain != "", _IS_SEALED), study)


def ended_digests(store: Store, *, study: str | None = None) -> list[str]:
    """The digests of all ended runs, or of a study's."""
    return _of_runs(store, _RUNS.c.digest, _IS_SEALED, study)


def _of_runs(store: Store, column: Any, which: sa.ColumnElement[bool], study: str | None) -> list[str]:
    of_study = sa.true() if study is None else _RUNS.c.study == study
    query = sa.select(column).where(which, of_study).order_by(_RUNS.c.started, _RUNS.c.id)
    return [row[0] for row in store.rows(query)]


def unproven(store: Store, run_id: str) -> Iterator[str]:
    """Yield the parts of a run's record that contradict its hash chains and digests.

    Raises `ValueError` if a row is unreadable.
    """
    yield from _unproven(whole_record(store, run_id))


def _unproven(record: WholeRecord) -> Iterator[str]:
    row = record.row
    if row["status"] == "planned":
        yield "it has a record, though it says that it was not begun"
    if (row["digest"] is not None) != (row["status"] in ENDED):
        has = "a digest, though it has not ended" if row["digest"] else "no digest, though it has ended"
        yield f"it has {has} ({row['status']})"
    yield from _unchained(record)
    yield from _unreadable(record)
    if row["digest"] is not None:
        yield from _unsealed(record)


def _unreadable(record: WholeRecord) -> Iterator[str]:
    """The first text or file that can't be unpacked: the next ones need it."""
    unpacker = Unpacker()
    try:
        for body in record.bodies:
            unpacker.value(body)
    except UnreadableBodyError as error:
        yield str(error)


def is_late(digest: str | None) -> bool:
    """Whether an upgrade of the store computed the digest, long after the run ended."""
    return digest is not None and digest.startswith(LATE)


def whole_record(store: Store, run_id: str) -> WholeRecord:
    """The record of a run as stored; raises `ValueError` if a row is unreadable."""

    def read(connection: sa.Connection) -> WholeRecord:
        def rows(table: sa.Table, order: str) -> Sequence[Row]:
            query = sa.select(table).where(table.c.run == run_id).order_by(table.c[order])
            return [row._asdict() for row in connection.execute(query)]

        whole = sa.select(_RUNS).where(_RUNS.c.id == run_id)
        while True:
            row = connection.execute(whole).one()
            seals, events, bodies = rows(_SEALS, "number"), rows(_EVENTS, "seq"), rows(_BODIES, "number")
            if connection.execute(whole).one().chain == row.chain:  # unchanged meanwhile
                packed = [Body(body["number"], body["media"], body["data"]) for body in bodies]
                [run] = map(run_record, connection.execute(sa.select(*RUN_COLUMNS).where(_RUNS.c.id == run_id)))
                return WholeRecord(run, row._asdict(), seals, events, packed)

    return store.read(read)


def _unchained(record: WholeRecord) -> Iterator[str]:
    chain, events, bodies = Chain(), iter(record.events), stored_digests(record.bodies)
    for state in (*record.seals, record.row):
        covered = Chain.parse(state["chain"])
        more = max(0, covered.events - chain.events), max(0, covered.bodies - chain.bodies)
        chain = chain.longer(islice(events, more[0]), islice(bodies, more[1]))
        if (chain.events, chain.event_head) != (covered.events, covered.event_head):
            yield f"its first {covered.events} events are not those that its hash chain covers"
        if (chain.bodies, chain.body_head) != (covered.bodies, covered.body_head):
            yield f"its first {covered.bodies} texts and files are not those that its hash chain covers"
        if chain != covered:
            return
    for rest, what in ((events, "events"), (bodies, "texts and files")):
        if number := sum(1 for _ in rest):
            yield f"it has {number} {what} that its hash chain does not cover"


def _unsealed(record: WholeRecord) -> Iterator[str]:
    had = [state["digest"] for state in (*record.seals, record.row)]
    if [seal["number"] for seal in record.seals] != list(range(len(record.seals))):
        yield "the list of its earlier digests has a gap"
    elif had != digests(record.row, record.seals):
        yield "its row, its metrics or an earlier digest differ from its digest"


_STEPS = ("llm_call", "tool_call", "charge")
"""Types of events that occur at most once per step."""
_EVENT_COLUMNS = ("type", "at", "step", "team", "agent", "data")
_COUNTS = ("llm_calls", "tool_calls", "failed_replies")
_SHOWN = 5


@dataclass(frozen=True)
class Fault:
    """An inconsistency in a run's record; `run` is empty for a study's."""

    run: str
    text: str


UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)
"""Exceptions of reading a corrupt row."""


def audit(store: Store, runs: Iterable[str]) -> Iterator[tuple[str, list[Fault]]]:
    """Audit runs, by id, and yield each with its faults.

    The record must match its hash chains and digests. A study has each replicate of a condition once. Events have no
    gaps, each step was done and charged once, and every model call was charged. The charges equal the spent amounts of
    the run and its study, within the available money. The counts of an ended run match its events. All bodies of events
    exist. For a running run, only invariants are checked.
    """
    seen: dict[tuple[str, str, int], str] = {}
    for run_id in runs:
        texts: list[str] = []
        try:
            record = whole_record(store, run_id)
            run = record.run
            if run.study is not None:
                other = seen.setdefault((run.study, run.key, run.replicate), run_id)
                if other != run_id:
                    texts.append(f"it is the same replicate of the same condition as the run '{other}'")
            texts += _unproven(record)
            texts += _wrong(record)
        except UNREADABLE as error:
            texts.append(f"its record can't be read: {type(error).__name__}: {error}")
        yield run_id, [Fault(run_id, text) for text in texts]


def _wrong(record: WholeRecord) -> Iterator[str]:
    run, numbers = record.run, [row["seq"] for row in record.events]
    events = [make_event(*(row[name] for name in _EVENT_COLUMNS)) for row in record.events]
    if numbers and (numbers[0], numbers[-1]) != (0, len(events) - 1):
        yield f"it has {len(events)} events, which are numbered from {numbers[0]} to {numbers[-1]}"
    yield from _done_twice(events)
    charged = {event.step for event in events if isinstance(event, ChargeEvent)}
    uncharged = [event.step for event in events if event.type == "llm_call" and event.step not in charged]
    if uncharged:
        yield f"model calls were not charged: {_some(uncharged)}"
    missing = {number for event in events for number in body_numbers(event)}
    missing -= {body.number for body in record.bodies}
    if missing:
        yield f"texts that its events name are missing: {_some(map(str, sorted(missing)))}"
    if run.status == "running":
        return
    numbered = list(enumerate(events))
    cost = costs(numbered[run.taken_over :])
    # Forks of earlier versions also count inherited events.
    if run.spent not in (cost, costs(numbered)):
        yield f"its study takes it to have cost {show_dollars(run.spent)}, and its events cost {show_dollars(cost)}"
    charges = [event for event in events if isinstance(event, ChargeEvent)]
    counted = sum(charge.excess for charge in charges if charge.bill_from == "server")
    excess = sum(event.excess for event in events if event.type in ("charge", "judge_call"))
    if excess:
        left_out = "" if excess == counted else f"; its study doesn't count {show_dollars(excess - counted)} of that"
        yield f"its providers charge {show_dollars(excess)} more than its bound could pay{left_out}"
    paid = sum(charge.real_cost for charge in charges) - counted
    if run.most and paid > run.most:
        yield f"its calls have cost {show_dollars(paid)}, more than its bound of {show_dollars(run.most)}"
    if run.status in ENDED:
        yield from _miscounted(run, events)


def overspent(store: Store, study: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield the studies that have exceeded their cap, with the fault in words."""
    for record in study_records(store):
        if study in (None, record.name):
            counts = study_counts(store, record.name)
            if over := counts.overspent(record.cap):
                yield record.name, f"it has spent {show_dollars(counts.spent)}, {show_dollars(over)} more than its cap"


def _done_twice(events: Sequence[Event]) -> Iterator[str]:
    often = Counter((event.type, event.step) for event in events if event.step and event.type in _STEPS)
    for (kind, step), number in often.items():
        if number > 1:
            yield f"the {kind} of the step '{step}' occurs in it {number} times"


def _miscounted(run: RunRecord, events: Sequence[Event]) -> Iterator[str]:
    charged = sum(event.amount for event in events if isinstance(event, ChargeEvent))
    if run.budget is not None:
        total, spent = parse_dollars(run.budget["total"]), parse_dollars(run.budget["spent"])
        if spent != charged:
            yield f"it says that it spent {show_dollars(spent)}, and its charges are {show_dollars(charged)}"
        if charged > total:
            yield f"its charges of {show_dollars(charged)} are more than its budget of {show_dollars(total)}"
    usage = usage_of(events)
    for name in _COUNTS:
        stated, counted = getattr(run.usage, name), getattr(usage, name)
        if stated != counted:
            yield f"it counts {stated} {name}, and its events are {counted}"


def _some(names: Iterable[str]) -> str:
    all_ = list(names)
    return ", ".join(all_[:_SHOWN]) + (f" and {len(all_) - _SHOWN} more" if len(all_) > _SHOWN else "")
