"""Replies of models that are kept to be used again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add their table."""
    op.create_table(
        "calls",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("reply", sa.LargeBinary, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
