"""Steps of runs, written as a worker does, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labmates.records.bodies import Body
from labmates.records.digests import Chain
from labmates.records.events import Event
from labmates.records.rows import event_rows, sealed
from labmates.records.run import RunRecord
from labmates.records.steps import Step, costs, write_step
from labmates.records.store import Store


def append(
    store: Store, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body], *, ends: bool = False
) -> None:
    """Write a step of a claimed run: events with their sequence numbers, and their bodies."""
    rows = event_rows(run.id, events)
    digests = ((body.number, body.digest) for body in bodies)
    before = store.run(run.id)
    chain = str(Chain.parse(before.chain).longer(rows, digests))
    run = replace(run, chain=chain, spent=before.spent + costs(events))
    write_step(store, Step(sealed(run) if ends else run, rows, bodies, ends=ends))


def finish(store: Store, run: RunRecord, events: Sequence[tuple[int, Event]], bodies: Sequence[Body]) -> None:
    """Write the end of an attempt."""
    append(store, run, events, bodies, ends=True)
