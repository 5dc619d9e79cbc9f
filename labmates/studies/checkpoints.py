"""LangGraph's own checkpointer, in the database that holds the runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from labmates.errors import MissingExtraError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from labmates.records.store import Store


@asynccontextmanager
async def open_saver(store: Store) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer of a store.

    Raises
    ------
    MissingExtraError
        If the store is in PostgreSQL and LangGraph's package for that is not installed.
    """
    opening = _sqlite(store.sqlite_path) if store.sqlite_path else _postgres(store)
    async with opening as saver:
        yield saver


@asynccontextmanager
async def _sqlite(path: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    from labmates.studies.sqlite_saver import SqliteSaver
    from labmates.studies.whole import to_its_end

    async with SqliteSaver.from_conn_string(path) as saver:
        assert isinstance(saver, SqliteSaver)
        await saver.conn.execute("PRAGMA synchronous=NORMAL")
        await saver.conn.execute("PRAGMA busy_timeout=30000")
        await saver.setup()
        try:
            yield saver
        finally:
            await to_its_end(saver.settle())


@asynccontextmanager
async def _postgres(store: Store) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    try:
        from labmates.studies.postgres_saver import open_postgres_saver
    except ModuleNotFoundError as error:
        raise MissingExtraError("a store in PostgreSQL", "postgres") from error
    async with open_postgres_saver(store.database.plain_url) as saver:
        yield saver
