"""Runs with their events and bodies."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "labmates_meta",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("study", sa.String(200)),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("replicate", sa.Integer, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("condition", sa.JSON, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("models", sa.JSON, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("usage", sa.JSON, nullable=False),
        sa.Column("budget", sa.JSON),
        sa.Column("sandbox", sa.String(40)),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("version", sa.String(40), nullable=False),
    )
    op.create_index("runs_by_key", "runs", ["kind", "key", "replicate"])
    op.create_table(
        "events",
        sa.Column("run", sa.String(40), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("type", sa.String(20), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("team", sa.String(80), nullable=False),
        sa.Column("agent", sa.String(80), nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
    )
    score = sa.text("type = 'score'")
    op.create_index("events_scores", "events", ["run"], sqlite_where=score, postgresql_where=score)
    op.create_table(
        "bodies",
        sa.Column("run", sa.String(40), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("media", sa.String(8), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
