"""Upgrades of older stores with Alembic: one file in ``versions`` for each change of the tables.

To change the tables:

1. Change `labmates.records.schema`, which creates new stores, and set its ``VERSION`` to the next number, say 0012.
2. Add ``versions/0012_NAME.py`` with ``revision = "0012"``, ``down_revision = "0011"`` and a function ``upgrade`` that
   makes the same change with ``alembic.op``. It states its tables and columns itself, since ``schema`` changes further.
3. If the change touches a column that digests cover (`labmates.records.digests.SEALED`), keep the value as it was: an
   upgrade must not invalidate published digests.

Stores of versions before ``schema.OLDEST`` are refused.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.exc import DBAPIError

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database, other_version, stored_version


def upgrade_store(url: str | None = None) -> tuple[str, str]:
    """Migrate a store, in one transaction if the database can, and return its versions before and after.

    Raises `UsageError` if the store can't be opened or is of a version that this labmates can't upgrade, or the
    migration fails.
    """
    with Database(url, must_exist=True, any_version=True) as database:
        try:
            from alembic import command
            from alembic.config import Config

            with database.engine.connect().execution_options(labmates_writes=True) as connection, connection.begin():
                version = stored_version(connection) or schema.VERSION
                if not schema.OLDEST <= version <= schema.VERSION:
                    raise other_version(database.shown_url, version)
                config = Config()
                config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
                return version, schema.VERSION
        except DBAPIError as error:
            raise UsageError(f"the store '{database.shown_url}' can't be upgraded: {error.orig}") from error
