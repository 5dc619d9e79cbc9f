"""The store's database: opening, version, and transactions that are retried after a lost connection.

All methods block: asynchronous callers use a thread.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.util import LRUCache

from labmates.errors import LabmatesError, MissingExtraError, UsageError
from labmates.records import schema

T = TypeVar("T")

# Compiling the statements of a run takes half as long as a short run.
sa.dialects.registry.register("sqlite.shared", "labmates.records.sqlite_dialect", "SharedDialect")
_COMPILED = LRUCache[Any, Any](500)

DEFAULT_STORE = "sqlite:///labmates.db"

PATIENCE_SECONDS = 60.0
"""Time for retries of a transaction while the database is unreachable or locked."""
_OPENING_SECONDS = 1.0  # the same for opening, so that a wrong address fails soon
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_BUSY_SECONDS = 30.0  # SQLite's wait for a lock
_CONNECT_SECONDS = 10
_CREATION_LOCK = 0x6C61626D  # PostgreSQL's advisory lock for creating tables
_PASSING_CLASSES = ("08", "40", "57P", "53")  # SQLSTATEs: no connection, conflict, shut down, out of resources
_DISK_FULL = "53100"
_STARTING = (
    "database system is starting up",
    "database system is shutting down",
    "not yet accepting connections",
    "in recovery mode",
    "too many clients",
    "remaining connection slots",
)
_LOCAL = "keep the store on a local disk (--store /PATH/runs.db) or in PostgreSQL"
_REMEDIES = {
    sqlite3.SQLITE_IOERR: f"the disk failed, or lacks the shared memory and locks that SQLite needs, as many network "
    f"disks do; {_LOCAL}",
    sqlite3.SQLITE_BUSY: f"another program holds it, or its disk has no working locks, as many network disks; {_LOCAL}",
    sqlite3.SQLITE_NOTADB: "another program's file, or damaged; choose another file for the store",
    sqlite3.SQLITE_CANTOPEN: "the folder can't be written; choose another folder for the store",
}
"""What to do, by SQLite's error. There is no other journal mode for disks without shared memory: several machines
reach most of these disks, and none of SQLite's modes is safe if their locks are not."""


def store_url(store: str | None = None) -> str:
    """The URL of a store given as URL or file; by default ``LABMATES_STORE``, else a file in the working directory."""
    name = (os.environ.get("LABMATES_STORE") or DEFAULT_STORE) if store is None else store
    return f"sqlite:///{quote(name)}" if names_file(name) else name  # in a URL, '?' and '%' have a meaning


def names_file(name: str) -> bool:
    """Whether a name is an SQLite file, by its extension, a folder in it, or an existing file."""
    if not name or "://" in name or "@" in name:
        return False
    return "/" in name or name.endswith((".db", ".sqlite")) or Path(name).is_file()


def portions(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Values in parts for single statements, whose number of parameters is limited."""
    return (values[start : start + size] for start in range(0, len(values), size))


class MissingStoreError(UsageError):
    """The SQLite file of the store `url` does not exist yet."""

    def __init__(self, url: str) -> None:
        makers = "'labmates run', 'labmates study run' and 'labmates demo' create it"
        super().__init__(f"the store '{url}' does not exist yet; {makers}")
        self.url = url


class StoreError(LabmatesError):
    """The store could not be written or read."""


class Database:
    """A database with the store's tables.

    All reads and writes, also those of modules built on it, raise `StoreError` if the database fails or stays
    unreachable. Raises `UsageError` if the URL is malformed, or the database can't be opened or written or is of
    another version.

    Parameters
    ----------
    url
        SQLAlchemy URL, for instance ``sqlite:///labmates.db`` or ``postgresql://user@host/labmates``, or path of an
        SQLite file; by default that of `store_url`.
    must_exist
        Refuse to create a new SQLite file.
    any_version
        Open any version, for upgrades.
    patient
        The database should exist: retry while it is unreachable.
    read_only
        Refuse all writes, even of tables.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        must_exist: bool = False,
        any_version: bool = False,
        patient: bool = False,
        read_only: bool = False,
    ) -> None:
        self.url = store_url(url)
        self.engine = _engine(self.url, must_exist or read_only, read_only)
        path = Path(self.sqlite_path or os.curdir)
        unwritable = self.is_sqlite and path.exists() and not _is_writable(path)
        if unwritable and not (must_exist or read_only):
            raise UsageError(
                f"can't write the store '{self.shown_url}': it is on a read-only file system or in a folder that "
                "can't be written"
            )
        self._read_only = read_only = read_only or unwritable
        self._writing = threading.Lock()
        try:
            self._try(
                lambda connection: self._prepare(connection, any_version),
                writes=not read_only,
                patience=PATIENCE_SECONDS if patient else _OPENING_SECONDS,
            )
        except DBAPIError as error:
            self.close()
            raise self._unopened(must_exist or read_only, error) from error
        except UsageError:
            self.close()
            raise

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return sa.make_url(self.url).render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is SQLite, with one machine and one writer at a time."""
        return self.engine.dialect.name == "sqlite"

    @property
    def is_read_only(self) -> bool:
        """Whether the store is read-only."""
        return self._read_only

    @property
    def sqlite_path(self) -> str | None:
        """Path of the SQLite file, or None for another database."""
        return sa.make_url(self.url).database if self.is_sqlite else None

    def _unopened(self, must_exist: bool, error: DBAPIError) -> UsageError:
        """The error for a store that can't be opened; SQLite's errors don't distinguish files and folders."""
        path = Path(self.sqlite_path or os.curdir)
        fault = f"can't open the store '{self.shown_url}'"
        if not path.parent.is_dir():
            return UsageError(f"{fault}: there is no folder '{path.parent}'")
        if must_exist and not path.exists():
            return MissingStoreError(self.shown_url)
        if self.is_sqlite and path.exists() and not path.is_file():
            return UsageError(f"{fault}: it is not a file; give a file such as {path}/runs.db")
        return UsageError(f"{fault}: {_reason(error)}")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def reading(self, *, snapshot: bool = False) -> Iterator[sa.Connection]:
        """Open a read transaction; in a `snapshot`, all queries see the state at the first one."""
        # In SQLite, every transaction is a snapshot.
        options = {"isolation_level": "REPEATABLE READ"} if snapshot and not self.is_sqlite else {}
        try:
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection
        except DBAPIError as error:
            raise self._failed(error) from error

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Do read work in one transaction, retried while the database is unreachable."""
        return self._persist(work, writes=False)

    def rows(self, query: sa.Select[Any]) -> list[Any]:
        """All rows of a query."""
        return self.read(lambda connection: list(connection.execute(query).all()))

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Do write work in one transaction, retried while the database is unreachable or locked.

        A connection may be lost after a commit and before its confirmation, so `work` must be idempotent.
        """
        # SQLite takes one writer at a time, and its own waiting is only good for short waits.
        with self._writing if self.is_sqlite else nullcontext():
            return self._persist(work, writes=True)

    def now(self, connection: sa.Connection) -> float:
        """The database's clock, shared by all workers, as Unix time in seconds."""
        if self.is_sqlite:
            return time.time()
        return float(connection.execute(sa.text("select extract(epoch from clock_timestamp())")).scalar_one())

    def insert_new(self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> int:
        """Insert the rows with a new primary key and return their number."""
        if not rows:
            return 0
        return len(connection.execute(_insert_new_into(table, self.engine.dialect.name), rows).all())

    def _persist(self, work: Callable[[sa.Connection], T], *, writes: bool) -> T:
        try:
            return self._try(work, writes=writes, patience=PATIENCE_SECONDS)
        except DBAPIError as error:
            raise self._failed(error) from error

    def _try(self, work: Callable[[sa.Connection], T], *, writes: bool, patience: float) -> T:
        begun = time.monotonic()
        end = begun + patience
        pause, again = _FIRST_PAUSE, False
        while True:
            try:
                options = {"labmates_writes": writes, "labmates_again": again}
                with self.engine.connect().execution_options(**options) as connection, connection.begin():
                    return work(connection)
            except DBAPIError as error:
                if _is_starting(error):
                    end = max(end, begun + PATIENCE_SECONDS)
                if not _is_passing(error) or time.monotonic() + pause > end:
                    raise
            again = True
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _failed(self, error: DBAPIError) -> StoreError:
        return StoreError(f"the store '{self.shown_url}' failed: {_reason(error)}")

    def _prepare(self, connection: sa.Connection, any_version: bool) -> None:
        tables = _tables(connection)
        version = stored_version(connection)
        if tables and schema.runs.name not in tables and (version is not None or self.is_sqlite):
            # A file belongs to one program; a server's database may be shared, but not the version table.
            named = ", ".join(sorted(tables)[:3])
            raise UsageError(f"the database '{self.shown_url}' belongs to another program: it has {named}, but no runs")
        if version is None:
            if self._read_only:
                raise UsageError(f"the database '{self.shown_url}' is not a store: it has no table of runs")
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            schema.metadata.create_all(connection)
            schema.create_search_index(connection)
            self.insert_new(connection, schema.version, [{"version_num": schema.VERSION}])
        elif version != schema.VERSION and not any_version:
            raise other_version(self.shown_url, version)


def is_tried_again(connection: sa.Connection) -> bool:
    """Whether the current transaction of `Database.write` may have been committed already."""
    return bool(connection.get_execution_options().get("labmates_again"))


def other_version(shown_url: str, version: str) -> UsageError:
    """The error for a store of another version, with the remedy."""
    if version > schema.VERSION:
        remedy = "it was made by a newer labmates"
    elif version < schema.OLDEST:
        remedy = (
            f"it is too old; make a copy, then run 'labmates store upgrade' of a checkout of labmates at commit "
            f"{schema.UPGRADES_OLDER} on it"
        )
    else:
        remedy = f"bring it up to date with: labmates store upgrade --store {shown_url}"
    return UsageError(
        f"the store '{shown_url}' is of version {version}; this labmates reads version {schema.VERSION}: {remedy}"
    )


def stored_version(connection: sa.Connection) -> str | None:
    """The version of the tables in a database; None without tables."""
    tables = _tables(connection)
    if schema.version.name in tables:
        number: str | None = connection.execute(sa.select(schema.version.c.version_num)).scalar_one_or_none()
        return number
    return "0001" if "labmates_meta" in tables else None


def _tables(connection: sa.Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


def _engine(url: str, must_exist: bool, read_only: bool) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
        if backend == "sqlite":
            return _sqlite_engine(parsed, must_exist, read_only)
        if backend == "postgresql":
            return _postgres_engine(parsed, read_only)
        sa.create_engine(parsed)
    except _UnsuitableStoreError as error:
        raise UsageError(f"'{_without_password(url)}' can't be a store: {error}; {_advice(url)}") from None
    except (ArgumentError, NoSuchModuleError, ValueError):
        # The library's message may quote the URL with a password.
        raise UsageError(f"'{_without_password(url)}' is not the URL of a store; {_advice(url)}") from None
    except ModuleNotFoundError as error:
        if error.name == "psycopg":
            raise MissingExtraError("a store in PostgreSQL", "postgres") from error
    raise UsageError(f"'{backend}' databases can't hold a store; use sqlite or postgresql")


class _UnsuitableStoreError(Exception):
    """A database of this URL can't be a store; the text gives the reason."""


def _without_password(url: str) -> str:
    """A URL, malformed or not, without a possible password."""
    return re.sub(r"^([^:/]*://)?([^:/@]*):.*@", r"\1\2:***@", url)


def _advice(url: str) -> str:
    """A hint at the URL that was probably meant."""
    if url.startswith("postgres://"):
        return "write postgresql:// in place of postgres://"
    is_name = url and "://" not in url and "@" not in url
    return f"give a file such as {url}.db, or a URL" if is_name else "give a URL such as sqlite:///labmates.db"


def _sqlite_engine(url: sa.URL, must_exist: bool, read_only: bool) -> sa.Engine:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise _UnsuitableStoreError("a database in memory is lost when the process ends")
    path = Path(url.database)
    mode = "rwc"
    if must_exist:
        mode = "rw" if _is_writable(path) else "ro"
        if mode == "ro" and not path.with_name(f"{path.name}-wal").exists():
            # There is no writer, and SQLite can't create the shared-memory file for readers.
            mode = "ro&immutable=1"
    else:
        # Prompts and replies stay private on a shared machine. SQLite reports errors later.
        with suppress(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    # '#', '?' and '%' are special in a URI.
    address = f"file:{quote(url.database)}?mode={mode}"
    engine = sa.create_engine(
        "sqlite+shared://",
        execution_options={"compiled_cache": _COMPILED},
        creator=lambda: sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, check_same_thread=False),
        poolclass=sa.QueuePool,  # the bare URL looks like a database in memory
        json_deserializer=_json_value,
    )
    read_only = read_only or mode.startswith("ro")
    sa.event.listen(engine, "connect", _set_up_sqlite_reader if read_only else _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


_decode = json.JSONDecoder().raw_decode


def _json_value(text: str) -> Any:
    """The value of a JSON text; `json.loads` takes almost twice as long for short texts."""
    try:
        value, end = _decode(text)
    except ValueError:
        end = -1
    return value if end == len(text) else json.loads(text)


def _is_writable(path: Path) -> bool:
    """Whether SQLite can write a file and its folder."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _postgres_engine(url: sa.URL, read_only: bool) -> sa.Engine:
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername != "postgresql+psycopg":
        raise _UnsuitableStoreError(f"the driver must be psycopg, not {url.drivername.partition('+')[2]}")
    schema.fit_to_postgresql()
    alive = {"keepalives": 1, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
    connect: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "application_name": "labmates", **alive}
    if read_only:
        connect["options"] = "-c default_transaction_read_only=on"
    return sa.create_engine(url, pool_pre_ping=True, connect_args=connect)


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # `_begin_sqlite` begins transactions
    waiting = f"busy_timeout={1000 * _BUSY_SECONDS:.0f}"
    settings = ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", waiting, "cache_size=-40960")
    for setting in settings:
        connection.execute(f"PRAGMA {setting}")


def _set_up_sqlite_reader(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    # Not mode=ro: SQLite must write beside the file to see concurrent writes.
    # Readers get an error soon if the store is locked.
    for pragma in ("query_only=ON", "busy_timeout=2000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    # A deferred transaction that reads before it writes fails if another one has written meanwhile.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("labmates_writes") else "BEGIN")


@cache  # building a statement takes longer than executing it
def _insert_new_into(table: sa.Table, dialect: str) -> Any:
    insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)  # only this dialect: their import is slow
    return insert.on_conflict_do_nothing(index_elements=table.primary_key).returning(*table.primary_key)


def _is_passing(error: DBAPIError) -> bool:
    """Whether a retry of the transaction may succeed."""
    if isinstance(error.orig, sqlite3.Error):
        return isinstance(error.orig, sqlite3.OperationalError) and "locked" in str(error.orig)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return error.connection_invalidated or isinstance(error, sa.exc.OperationalError)
    return state != _DISK_FULL and str(state).startswith(_PASSING_CLASSES)


def _is_starting(error: DBAPIError) -> bool:
    """Whether a PostgreSQL server reported that it is starting, stopping or full."""
    # Connection errors have no SQLSTATE, only the server's text.
    return any(words in str(error.orig) for words in _STARTING)


def _reason(error: DBAPIError) -> str:
    reason = " ".join(str(error.orig).split())
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # without its details
    return f"{reason}: {remedy}" if (remedy := _REMEDIES.get(code)) else reason
