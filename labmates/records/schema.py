"""The tables of the store.

Each body of a run (message, text, picture) is a row, and events refer to bodies by number. Scores are events too:
judges add them at the end of the run or later, and none is overwritten.

A change of these tables is a migration (`records.migrations`); `VERSION` is the newest one.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = "0011"
"""The newest migration; older stores must be upgraded."""
OLDEST = "0009"
"""The oldest version that can be upgraded."""
UPGRADES_OLDER = "114e862f"
"""The last commit of labmates that upgrades stores older than `OLDEST`."""

metadata = MetaData()

version = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))

studies = Table(
    "studies",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("spec", JSON, nullable=False),
    Column("cap", BigInteger),
    Column("created", Float, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("study", String(200)),
    Column("key", String(64), nullable=False),
    Column("replicate", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("status", String(20), nullable=False),
    Column("error", Text),
    # Why the ended run is invalid.
    Column("invalid", Text),
    Column("condition", JSON, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("models", JSON, nullable=False),
    Column("metrics", JSON, nullable=False),
    Column("usage", JSON, nullable=False),
    Column("budget", JSON),
    Column("sandbox", String(40)),
    Column("started", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("version", String(40), nullable=False),
    # Hashes of prompts, rules and code by part; NULL in older runs.
    Column("made", JSON(none_as_null=True)),
    # The claim: the number of the attempt fences off workers without a lease.
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("worker", String(200)),
    Column("lease", Float),
    # Place in the study's queue, and cost and bound in micro-dollars.
    Column("place", Integer, nullable=False, server_default="0"),
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("most", BigInteger, nullable=False, server_default="0"),
    # Origin of a fork, as RUN@EVENT or RUN@EVENT#CONTINUATION.
    Column("origin", String(60)),
    # Hashes of its record (`records.digests`): so far, and at its end.
    Column("chain", Text, nullable=False, server_default=""),
    Column("digest", String(80)),
    Index("runs_by_key", "kind", "key", "replicate"),
    Index("runs_of_study", "study", "key", "replicate", unique=True),
    Index("runs_in_queue", "study", "status", "place", "most", "spent"),
)

seals = Table(
    "seals",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("metrics", JSON, nullable=False),
    Column("chain", Text, nullable=False),
    Column("digest", String(80), nullable=False),
)
"""States of a run's row before additions to the ended run, with their digests."""

attempts = Table(
    "attempts",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("worker", String(200)),
    Column("status", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Float, nullable=False),
)
"""Attempts that did not complete their run, with the reason."""

events = Table(
    "events",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("type", String(20), nullable=False),
    Column("at", Float, nullable=False),
    Column("step", Text, nullable=False),
    Column("team", String(80), nullable=False),
    Column("agent", String(80), nullable=False),
    Column("data", JSON, nullable=False),
)
_IS_SCORE = events.c.type == "score"
_scores = Index("events_scores", events.c.run, sqlite_where=_IS_SCORE)


def fit_to_postgresql() -> None:
    """Add PostgreSQL's options to the tables; their import is slow, so SQLite skips it."""
    _scores.dialect_options["postgresql"]["where"] = _IS_SCORE


bodies = Table(
    "bodies",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("media", String(8), nullable=False),
    Column("data", LargeBinary, nullable=False),
)

calls = Table(
    "calls",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("reply", LargeBinary, nullable=False),
    Column("at", Float, nullable=False),
)
"""Cached replies of models by hash of the request; see `records.shared_calls`."""

OF_RUNS = [table for table in metadata.sorted_tables if "run" in table.c]
"""The tables whose rows belong to runs."""

search_index = MetaData()
"""The tables of full-text search. They derive from the bodies and are never copied; see `records.search`."""

search_runs = Table(
    "search_runs",
    search_index,
    Column("run", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    # The run's chain when its texts were indexed; empty before.
    Column("chain", Text, nullable=False),
    Column("bodies", Integer, nullable=False),
)

search_texts = Table(
    "search_texts",
    search_index,
    # Never reused: SQLite's index keeps the words of deleted texts.
    Column("id", Integer, primary_key=True),
    Column("run", ForeignKey(runs.c.id, ondelete="CASCADE"), nullable=False, index=True),
    Column("number", Integer, nullable=False),
    sqlite_autoincrement=True,
)
"""Indexed parts of bodies; their words are in ``search_words`` under the same id."""


def create_search_index(connection: Connection) -> None:
    """Create the tables of full-text search; SQLite without FTS5 gets no words and can't search."""
    search_index.create_all(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS search_words "
            "(id integer PRIMARY KEY REFERENCES search_texts ON DELETE CASCADE, words tsvector NOT NULL)"
        )
        connection.exec_driver_sql("CREATE INDEX IF NOT EXISTS search_words_index ON search_words USING gin (words)")
    elif connection.exec_driver_sql("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").first():
        connection.exec_driver_sql(
            "CREATE VIRTUAL TABLE IF NOT EXISTS search_words "
            "USING fts5(words, content='', tokenize='unicode61 remove_diacritics 0')"
        )
