"""Runs have hashes of the prompts, rules and code that they were made with; those of older runs are unknown."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column."""
    op.add_column("runs", sa.Column("made", sa.JSON(none_as_null=True)))
