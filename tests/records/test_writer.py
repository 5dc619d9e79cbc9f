"""The writer of a session: one transaction for what comes together, and each step for itself where one is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import sqlalchemy as sa

from labmates.records import steps as module
from labmates.records.claims import Claims
from labmates.records.database import Database, StoreError
from labmates.records.events import ChargeEvent
from labmates.records.rows import event_rows
from labmates.records.run import RunRecord
from labmates.records.steps import LeaseLostError, Step, Writer
from labmates.records.store import Store
from tests.studies.ended import fresh_run


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


def claimed(store: Store, runs: int) -> list[RunRecord]:
    return [Claims(store, "one").new(fresh_run(seed=seed)) for seed in range(runs)]


def step(run: RunRecord, number: int = 0, name: str = "") -> Step:
    events = [(number, ChargeEvent(step=name or str(number), amount=number + 1))]
    return Step(run, event_rows(run.id, events), [])


async def test_a_run_that_was_taken_over_does_not_keep_others_from_writing(store: Store) -> None:
    first, lost, last = claimed(store, 3)
    Claims(store, "one").give_back([lost])
    Claims(store, "two").take(lost.id)
    writer = Writer(store)
    steps = [
        step(first),
        step(lost),
        step(first, 1),
        replace(step(replace(last, status="completed")), rows=[], ends=True),
    ]
    results = await asyncio.gather(*map(writer.write, steps), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), LeaseLostError, type(None), type(None)]
    assert [len(store.events(run.id)) for run in (first, lost, last)] == [2, 0, 0]
    assert store.run(last.id).status == "completed"


async def test_what_was_handed_over_is_written_though_nobody_waits(store: Store) -> None:
    [run] = claimed(store, 1)
    writer = Writer(store)
    waiting = asyncio.create_task(writer.write(step(run)))
    await asyncio.sleep(0)
    waiting.cancel()
    await writer.close()
    assert len(store.events(run.id)) == 1


async def test_a_writer_that_breaks_lets_nobody_wait_and_begins_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    [run] = claimed(store, 1)
    writer = Writer(store)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_steps", lambda *_: [])  # fewer answers than steps
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(writer.write(step(run)), 100)
    await writer.write(step(run))
    assert len(store.events(run.id)) == 1


async def test_after_a_step_that_could_not_be_written_none_of_its_attempt_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = claimed(store, 2)
    writer = Writer(store)

    def full(database: Database, work: Callable[[sa.Connection], None]) -> None:
        del database, work
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "write", full)
        failing = asyncio.create_task(writer.write(step(broken)))
        await asyncio.wait([failing])
    waiting = [writer.write(one) for one in (step(broken, 1), step(other), step(broken, 2))]
    results = await asyncio.gather(failing, *waiting, return_exceptions=True)
    assert [type(result) for result in results] == [StoreError, StoreError, type(None), StoreError]
    assert [len(store.events(run.id)) for run in (broken, other)] == [0, 1]
    # Whoever takes the run up goes on where the record ends.
    Claims(store, "one").give_back([broken])
    await writer.write(step(Claims(store, "two").take(broken.id)))
    assert len(store.events(broken.id)) == 1


async def test_what_comes_together_has_no_gap_either(store: Store) -> None:
    [run] = claimed(store, 1)
    writer = Writer(store)
    taken = step(run, 1)
    await writer.write(step(run))
    steps = [step(run, 0, "another"), taken]
    results = await asyncio.gather(*map(writer.write, steps), return_exceptions=True)
    assert [isinstance(result, StoreError) for result in results] == [True, True]
    assert len(store.events(run.id)) == 1
