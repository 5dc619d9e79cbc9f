"""Batches of providers by request, until the reply is recorded."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add their table."""
    op.create_table(
        "batches",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("token", sa.String(32), nullable=False, index=True),
        sa.Column("batch", sa.String(200)),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
