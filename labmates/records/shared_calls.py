"""Model calls that runs share: cached replies."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.database import Database


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
