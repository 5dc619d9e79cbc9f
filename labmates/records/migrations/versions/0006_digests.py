"""Hash chains over what runs have recorded, and a digest of each run that has ended.

Existing runs get theirs now, marked as late: they prove nothing of the time before the upgrade.
"""

import sqlalchemy as sa
from alembic import op

from labmates.records.bodies import Body
from labmates.records.digests import SEALED, Chain, run_digest, stored_digests
from labmates.records.migrations import watched

revision = "0006"
down_revision = "0005a"

_JSON = {"condition", "models", "settings", "metrics", "usage", "budget"}
_ENDED = ("completed", "exhausted")


def upgrade() -> None:
    """Add the columns and the table, and compute the chains and digests of existing runs."""
    op.add_column("runs", sa.Column("chain", sa.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("digest", sa.String(80)))
    op.create_table(
        "seals",
        sa.Column("run", sa.String(40), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("chain", sa.Text, nullable=False),
        sa.Column("digest", sa.String(80), nullable=False),
    )
    runs = sa.table(
        "runs", *(sa.column(name, sa.JSON if name in _JSON else None) for name in (*SEALED, "chain", "digest"))
    )
    connection = op.get_bind()
    begun = sa.select(runs.c.id).where(runs.c.status != "planned")
    for run_id in watched(connection.execute(begun).scalars().all()):
        row = connection.execute(sa.select(*(runs.c[name] for name in SEALED)).where(runs.c.id == run_id)).one()
        values = {"chain": str(_chain(connection, run_id))}
        if row.status in _ENDED:
            values["digest"] = run_digest({**row._mapping, **values}, late=True)
        connection.execute(sa.update(runs).where(runs.c.id == run_id).values(values))


def _chain(connection: sa.Connection, run_id: str) -> Chain:
    names = ("run", "seq", "type", "at", "step", "team", "agent")
    events = sa.table("events", *map(sa.column, names), sa.column("data", sa.JSON))
    bodies = sa.table("bodies", *map(sa.column, ("run", "number", "media", "data")))
    told = connection.execute(sa.select(events).where(events.c.run == run_id).order_by(events.c.seq))
    kept = connection.execute(sa.select(bodies).where(bodies.c.run == run_id).order_by(bodies.c.number))
    digests = stored_digests(Body(row.number, row.media, bytes(row.data)) for row in kept)
    return Chain().longer((row._asdict() for row in told), digests)
