"""A worker's hold on its runs: what another worker takes over stops, and nothing else does."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labmates.records import claims as records_claims
from labmates.records.claims import Claims
from labmates.records.database import StoreError
from labmates.records.events import Event
from labmates.records.run import RunRecord
from labmates.records.steps import LeaseLostError
from labmates.records.store import Store
from labmates.studies.execution import Leases
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import make_condition
from tests.studies.ended import fresh_run
from tests.support.steps import finish


class Renewals(Claims):
    """Claims that tell what renewals found."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self.fails = False
        self.found: queue.Queue[set[str]] = queue.Queue()

    def renew(self, runs: Iterable[RunRecord]) -> set[str]:
        if self.fails:
            self.fails = False
            raise StoreError("away")
        lost = super().renew(runs)
        self.found.put(lost)
        return lost

    async def next_found(self) -> set[str]:
        """Return the runs that the next renewal found lost."""
        return await asyncio.to_thread(self.found.get, timeout=100)


@pytest.fixture
def claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, Renewals, RunRecord]:
    monkeypatch.setattr(records_claims, "BEAT_SECONDS", 0.005)
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    claims = Renewals(store, "one")
    return store, claims, claims.new(fresh_run())


async def test_a_run_that_another_worker_takes_over_is_stopped(claimed: tuple[Store, Renewals, RunRecord]) -> None:
    store, claims, run = claimed
    held = Leases(claims)

    async def execute() -> None:
        with held.hold(run):
            assert await claims.next_found() == set()
            claims.give_back([run])
            Claims(store, "two").take(run.id)
            await asyncio.sleep(20)

    async with held.beating():
        with pytest.raises(LeaseLostError, match=f"the run {run.id} was taken over"):
            await execute()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_the_other_runs_of_a_session_go_on_when_one_is_taken_over(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        told: list[str] = []
        taken: list[RunRecord] = []

        def watch(run: RunRecord, event: Event | None) -> None:
            if run.id == runs[0].id and event is not None and not taken:
                session.claims.give_back([run])
                taken.append(Claims(store, "two").take(run.id))

        condition = make_condition("game", {"game": "o-ring", "model": "scripted:fair-share", "rounds": 1})
        runs = new_runs(condition, seed=0, replicates=3, settings=RunSettings())
        session = Session(store, RunSettings(), watch=watch, notify=told.append)
        ended = await session.execute(runs)
        assert [(run.id, run.status) for run in ended] == [(run.id, "completed") for run in runs[1:]]
        assert told == [f"the run {runs[0].id} was taken over by another worker"]
        assert (store.run(runs[0].id).status, store.run(runs[0].id).attempt) == ("running", 2)


async def test_a_run_is_not_stopped_for_a_renewal_that_came_after_its_end(
    claimed: tuple[Store, Renewals, RunRecord],
) -> None:
    store, claims, run = claimed
    held = Leases(claims)
    async with held.beating():
        with held.hold(run) as lease:
            lease.ending = True
            finish(store, replace(run, status="completed"), [], [])
            while await claims.next_found() != {run.id}:
                pass
            await claims.next_found()
    assert store.run(run.id).status == "completed"


async def test_a_renewal_that_fails_is_tried_again(claimed: tuple[Store, Renewals, RunRecord]) -> None:
    _, claims, run = claimed
    claims.fails = True
    held = Leases(claims)
    async with held.beating():
        with held.hold(run):
            assert await claims.next_found() == set()
    assert not claims.fails
