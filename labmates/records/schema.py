"""The tables of the store.

One body of a run (message, text, picture) is one row, and events name bodies by number. Scores are events too: a
judge adds its own, at the end of the run or later, and none is ever overwritten.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
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

VERSION = 1
"""Version of this schema; a store of another version is refused."""

metadata = MetaData()

meta = Table(
    "labmates_meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
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
    Index("runs_by_key", "kind", "key", "replicate"),
)

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
Index(
    "events_scores",
    events.c.run,
    sqlite_where=events.c.type == "score",
    postgresql_where=events.c.type == "score",
)

bodies = Table(
    "bodies",
    metadata,
    Column("run", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("media", String(8), nullable=False),
    Column("data", LargeBinary, nullable=False),
)
