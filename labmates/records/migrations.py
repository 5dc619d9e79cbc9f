"""Upgrades of older stores, one function for each change of the tables.

To change the tables:

1. Change `labmates.records.schema`, which creates new stores, and set its ``VERSION`` to the next number, say 0012.
2. Add a function under that number to `MIGRATIONS`, which makes the same change. It states its tables and columns
   itself, since ``schema`` changes further.
3. If the change touches a column that digests cover (`labmates.records.digests.SEALED`), keep the value as it was: an
   upgrade must not invalidate published digests.

Stores of versions before ``schema.OLDEST`` are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database, other_version, stored_version

_SETTINGS: Final = {
    "runs": "max_concurrent_runs",
    "calls": "max_concurrent_calls",
    "sandboxes": "max_sandboxes",
    "processes": "workers",
}


def upgrade_store(url: str | None = None) -> tuple[str, str]:
    """Migrate a store in one transaction, and return its versions before and after.

    Raises `UsageError` if the store can't be opened or is of a version that this labmates can't upgrade, or the
    migration fails.
    """
    with Database(url, must_exist=True, any_version=True) as database:
        try:
            with database.engine.connect().execution_options(labmates_writes=True) as connection, connection.begin():
                version = stored_version(connection) or schema.VERSION
                if not schema.OLDEST <= version <= schema.VERSION:
                    raise other_version(database.shown_url, version)
                for number, change in MIGRATIONS.items():
                    if number > version:
                        change(connection)
                connection.execute(sa.update(schema.version).values(version_num=schema.VERSION))
                return version, schema.VERSION
        except DBAPIError as error:
            raise UsageError(f"the store '{database.shown_url}' can't be upgraded: {error.orig}") from error


def _names_of_settings(connection: sa.Connection) -> None:
    """The concurrency of studies gets the names of the settings of runs and of the command line."""
    studies = sa.table("studies", sa.column("name", sa.Text), sa.column("spec", sa.JSON))
    for name, spec in connection.execute(sa.select(studies)).all():
        old = spec.get("concurrency", {})
        renamed = {**spec, "concurrency": {_SETTINGS.get(key, key): value for key, value in old.items()}}
        connection.execute(sa.update(studies).where(studies.c.name == name).values(spec=renamed))


def _made(connection: sa.Connection) -> None:
    """Runs get hashes of the prompts, rules and code that they were made with; those of older runs are unknown."""
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN made JSON")


MIGRATIONS: Final[dict[str, Callable[[sa.Connection], None]]] = {"0010": _names_of_settings, "0011": _made}
"""The changes of the tables by the version that they make, in order."""
