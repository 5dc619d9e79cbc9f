"""Model calls that runs share: cached replies, and providers' batches by request."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.database import Database, portions


class StoredCalls:
    """A cache of model calls in the database of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: str) -> dict[str, Any] | None:
        """The stored reply, or None."""
        query = sa.select(schema.calls.c.reply).where(schema.calls.c.key == key)
        packed: bytes | None = await asyncio.to_thread(
            self._database.read, lambda connection: connection.execute(query).scalar_one_or_none()
        )
        return None if packed is None else json.loads(zlib.decompress(packed))

    async def put(self, key: str, reply: dict[str, Any]) -> None:
        """Store a reply; an existing one stays."""
        packed = zlib.compress(json.dumps(reply, ensure_ascii=True, separators=(",", ":")).encode())

        def write(connection: sa.Connection) -> None:
            row = {"key": key, "reply": packed, "at": self._database.now(connection)}
            self._database.insert_new(connection, schema.calls, [row])

        await asyncio.to_thread(self._database.write, write)


_BATCHES: Final = schema.batches
_KEPT_SECONDS: Final = 40 * 24 * 3600.0
"""Longest retention of results by providers."""


class StoredBatches:
    """The `labmates.models.batches.BatchBook` in the database of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, keys: Sequence[str]) -> Mapping[str, tuple[str, str | None, int, float]]:
        """The submissions of requests: token, id, number of requests, and time."""

        def read(connection: sa.Connection) -> dict[str, tuple[str, str | None, int, float]]:
            batches = {}
            for part in portions(keys):
                for row in connection.execute(sa.select(_BATCHES).where(_BATCHES.c.key.in_(part))).all():
                    batches[row.key] = (row.token, row.batch, row.requests, row.at)
            return batches

        return await asyncio.to_thread(self._database.read, read)

    async def plan(self, token: str, keys: Sequence[str]) -> None:
        """Record that requests will be submitted together; other processes' entries stay."""

        def write(connection: sa.Connection) -> None:
            now = self._database.now(connection)
            connection.execute(sa.delete(_BATCHES).where(_BATCHES.c.at < now - _KEPT_SECONDS))
            rows = [{"key": k, "token": token, "batch": None, "requests": len(keys), "at": now} for k in keys]
            self._database.insert_new(connection, _BATCHES, rows)

        await self._write(write)

    async def name(self, token: str, batch: str) -> None:
        """Record the id of a submission's batch."""
        named = sa.update(_BATCHES).where(_BATCHES.c.token == token).values(batch=batch)
        await self._write(lambda connection: connection.execute(named))

    async def forget(self, keys: Sequence[str]) -> None:
        """Remove requests."""

        def write(connection: sa.Connection) -> None:
            for part in portions(keys):
                connection.execute(sa.delete(_BATCHES).where(_BATCHES.c.key.in_(part)))

        await self._write(write)

    async def _write(self, work: Callable[[sa.Connection], Any]) -> None:
        await asyncio.to_thread(self._database.write, work)
