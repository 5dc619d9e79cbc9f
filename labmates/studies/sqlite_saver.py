"""LangGraph's checkpointer in SQLite, whose transactions end even if the run that they belong to is cancelled.

A transaction that is begun and never ended would lock all of the database, which holds the runs too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from labmates.studies.whole import to_its_end


class SqliteSaver(AsyncSqliteSaver):
    """Does all that it writes to its end."""

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
        return await to_its_end(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a node has returned."""
        await to_its_end(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all checkpoints of a run."""
        await to_its_end(super().adelete_thread(thread_id))
