"""Studies, claims on runs, attempts and forks."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add them; the table of the version becomes Alembic's own."""
    op.create_table(
        "studies",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("cap", sa.BigInteger),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.add_column("runs", sa.Column("attempt", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("worker", sa.String(200)))
    op.add_column("runs", sa.Column("lease", sa.Float))
    op.add_column("runs", sa.Column("place", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("most", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("origin", sa.String(60)))
    op.execute("update runs set attempt = 1")
    op.create_index("runs_of_study", "runs", ["study", "key", "replicate"], unique=True)
    op.create_index("runs_in_queue", "runs", ["study", "status", "place", "most", "spent"])
    op.create_table(
        "attempts",
        sa.Column("run", sa.String(40), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("worker", sa.String(200)),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.drop_table("labmates_meta")
