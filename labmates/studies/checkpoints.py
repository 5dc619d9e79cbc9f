"""LangGraph's own checkpointer, in the database that holds the runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from labmates.records.store import Store


@asynccontextmanager
async def open_saver(store: Store) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpointer of a store.

    Raises
    ------
    UsageError
        If the store is no SQLite file.
    """
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    path = store.sqlite_path
    if not path:
        raise UsageError(f"the store '{store.shown_url}' is no SQLite file; give one, such as sqlite:///labmates.db")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.conn.execute("PRAGMA synchronous=NORMAL")
        await saver.conn.execute("PRAGMA busy_timeout=30000")
        yield saver
