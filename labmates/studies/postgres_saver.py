"""LangGraph's checkpointer in PostgreSQL, which outlives lost connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from labmates.records.database import PATIENCE_SECONDS, StoreError

T = TypeVar("T")

_CONNECTIONS = 8
_SETUP_LOCK = 0x6C616263  # an advisory lock: two processes must not make the tables at the same time
_TRY_LOCK = "select pg_try_advisory_lock(%s)"
_PAUSE = 0.2


@asynccontextmanager
async def open_postgres_saver(url: str) -> AsyncIterator[PostgresSaver]:
    """Open the checkpointer in the database at `url` and make its tables where they are missing."""
    options: dict[str, Any] = {"autocommit": True, "row_factory": dict_row, "prepare_threshold": 0}
    pool = AsyncConnectionPool(
        url,
        kwargs={**options, "connect_timeout": 10},
        min_size=1,
        max_size=_CONNECTIONS,
        open=False,
        check=AsyncConnectionPool.check_connection,
    )
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as lock, pool:
        saver = PostgresSaver(pool)  # type: ignore[arg-type]
        # Asked for again and again: the making of an index waits for every statement that waits for a lock.
        while not (await (await lock.execute(_TRY_LOCK, (_SETUP_LOCK,))).fetchone() or (False,))[0]:  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE)
        await saver.setup()
        await lock.close()
        yield saver


class PostgresSaver(AsyncPostgresSaver):
    """Tries again when its connection is lost: all that it does can be done twice."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint."""
        return await _persist(lambda: AsyncPostgresSaver.aget_tuple(self, config))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        return await _persist(lambda: AsyncPostgresSaver.aput(self, config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a node has returned."""
        await _persist(lambda: AsyncPostgresSaver.aput_writes(self, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove all checkpoints of a run."""
        await _persist(lambda: AsyncPostgresSaver.adelete_thread(self, thread_id))


async def _persist(work: Callable[[], Awaitable[T]]) -> T:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await work()
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            if time.monotonic() > end:
                raise StoreError(f"the store failed: {' '.join(str(error).split())}") from error
        await asyncio.sleep(_PAUSE)
