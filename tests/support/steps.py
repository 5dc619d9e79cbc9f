"""Steps of runs, written as a worker does, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labmates.records.bodies import Body
from labmates.records.digests import Chain
from labmates.records.events import Event
from labmates.records.rows import event_rows, sealed
from labmates.records.run import RunRecord
from labmates.records.steps import Step, write_step
from labmates.records.store import Store


def append(
    store: Store, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body], *, ends: bool = False
) -> None:
    """Write a step of a claimed run: events with their sequence numbers, and their bodies."""
    rows = event_rows(run.id, events)
    digests = ((body.number, body.digest) for body in bodies)
    chain = str(Chain.parse(store.run(run.id).chain).longer(rows, digests))
    ended = sealed(replace(run, chain=chain)) if ends else run
    write_step(store.database, Step(ended, chain, events, rows, bodies, ends=ends))


def finish(store: Store, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
    """Write the end of an attempt."""
    append(store, run, events, bodies, ends=True)
