"""LangGraph's checkpointer in SQLite, whose transactions end even if the run that they belong to is cancelled.

A transaction that is begun and never ended would lock all of the database, which holds the runs too. When a step fails,
LangGraph still notes what became of the steps beside it, and waits for nobody who does: such a note may come when the
connection is about to be closed, and a connection that is closed within a transaction keeps its lock until its last
cursor is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from labmates.studies.whole import to_its_end

T = TypeVar("T")


class SqliteSaver(AsyncSqliteSaver):
    """Does all that it writes to its end."""

    def __init__(self, conn: aiosqlite.Connection) -> None:
        super().__init__(conn)
        self._closing = False
        self._writing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def settle(self) -> None:
        """Wait for whatever is being written, before the connection is closed; what comes later is not written."""
        self._closing = True
        await self._idle.wait()

    async def setup(self) -> None:
        """Make the tables."""
        await to_its_end(super().setup())

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        return await self._whole(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a node has returned."""
        if not self._closing:
            await self._whole(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all checkpoints of a run."""
        await self._whole(super().adelete_thread(thread_id))

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        self._writing += 1
        self._idle.clear()
        try:
            return await to_its_end(work)
        finally:
            self._writing -= 1
            if not self._writing:
                self._idle.set()
