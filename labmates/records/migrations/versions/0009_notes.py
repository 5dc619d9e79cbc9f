"""Notes that people write beside the records of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add their table."""
    op.create_table(
        "notes",
        sa.Column("run", sa.String(40), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("event", sa.Integer),
        sa.Column("flag", sa.String(20), nullable=False),
        sa.Column("author", sa.String(80), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
