from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiosqlite import Connection
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from labmates.records.claims import Claims
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.checkpoints import open_saver
from labmates.studies.source import read_source
from labmates.studies.spec import read_spec
from labmates.studies.study import enter, work_on

STUDY = """
name: quiet
kind: science
models: [scripted:silent]
fixed: {task: anomaly, difficulty: easy, solo: true}
replicates: 1
sandbox: unsafe-local
"""


async def test_a_cancelled_checkpoint_leaves_no_lock_on_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    written, cancelled, execute = asyncio.Event(), asyncio.Event(), Connection._execute

    async def held_up(self: Connection, *args: Any, **more: Any) -> Any:
        done = await execute(self, *args, **more)  # type: ignore[no-untyped-call]
        if not written.is_set() and self.in_transaction:
            written.set()
            await cancelled.wait()
        return done

    async with open_saver(store) as saver:
        monkeypatch.setattr(Connection, "_execute", held_up)
        place: RunnableConfig = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}
        writing = asyncio.create_task(saver.aput(place, empty_checkpoint(), {}, {}))
        await written.wait()
        writing.cancel()
        asyncio.get_running_loop().call_soon(cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await writing
        with closing(sqlite3.connect(tmp_path / "runs.db", timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
        assert await saver.aget_tuple(place) is not None
    store.close()


async def test_runs_that_are_claimed_while_the_worker_is_cancelled_are_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    spec = read_spec(read_source(STUDY, "quiet.yaml"))
    enter(store, spec)
    loop, real = asyncio.get_running_loop(), Claims.next

    def claim(self: Claims, study: str, most: int, *, attempts: int) -> list[RunRecord]:
        claimed = real(self, study, most, attempts=attempts)
        loop.call_soon_threadsafe(working.cancel)
        return claimed

    monkeypatch.setattr(Claims, "next", claim)
    working = asyncio.create_task(work_on(store, spec))
    with pytest.raises(asyncio.CancelledError):
        await working
    counts = study_counts(store.database, spec.name)
    assert (counts.of("running"), counts.of("interrupted")) == (0, 1)
    store.close()
