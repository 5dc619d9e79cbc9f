"""Upgrades of stores of older versions."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.exc import DBAPIError

from labmates.errors import UsageError
from labmates.records import migrations, schema
from labmates.records.database import Database, other_version, stored_version
from labmates.records.migrations import Watch


def upgrade_store(url: str | None = None, *, watch: Watch | None = None) -> tuple[str, str]:
    """Migrate a store, in one transaction if the database can, and return its versions before and after.

    `watch` receives the number of migrated runs, and of all. Raises `UsageError` if the store can't be opened or is of
    a version that this labmates can't upgrade, or the migration fails.
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
                config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
                config.attributes |= {"connection": connection, "watch": watch}
                command.upgrade(config, "head")
                return version, schema.VERSION
        except DBAPIError as error:
            raise UsageError(f"the store '{database.shown_url}' can't be upgraded: {error.orig}") from error
