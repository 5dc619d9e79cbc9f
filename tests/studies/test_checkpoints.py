from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labmates.records.store import Store
from labmates.studies.checkpoints import open_saver

CONFIG: Any = {"configurable": {"thread_id": "run", "checkpoint_ns": "", "checkpoint_id": "1"}}


@pytest.mark.parametrize("steps", range(14))
async def test_what_is_written_while_the_checkpointer_closes_leaves_no_lock_behind(tmp_path: Path, steps: int) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    async with open_saver(store) as saver:
        left_behind = [
            asyncio.create_task(saver.aput_writes(CONFIG, [("result", number)], f"task {number}"))
            for number in range(3)
        ]
        for _ in range(steps):
            await asyncio.sleep(0)
    await asyncio.gather(*left_behind)
    assert store.sqlite_path is not None
    with closing(sqlite3.connect(store.sqlite_path, timeout=0.5, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
    store.close()
