"""Metrics of old games by their present direction: cooperation and efficiency, 1 where play is best for all.

``cooperation`` stands beside the paper's ``pareto_proximity``, of which it is the opposite; ``efficiency`` replaces
``welfare_proximity``, which was a distance of our own.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005a"
down_revision = "0005"

_CHUNK = 500


def upgrade() -> None:
    """Add what is missing to the metrics of behavioural games."""
    runs = sa.table("runs", sa.column("id"), sa.column("kind"), sa.column("metrics", sa.JSON))
    connection = op.get_bind()
    mine = [row.id for row in connection.execute(sa.select(runs.c.id).where(runs.c.kind == "game"))]
    for start in range(0, len(mine), _CHUNK):
        some = sa.select(runs.c.id, runs.c.metrics).where(runs.c.id.in_(mine[start : start + _CHUNK]))
        for row in connection.execute(some).all():
            new = _turned(dict(json.loads(row.metrics) if isinstance(row.metrics, str) else row.metrics))
            if new is not None:
                connection.execute(sa.update(runs).where(runs.c.id == row.id).values(metrics=new))


def _turned(metrics: dict[str, Any]) -> dict[str, Any] | None:
    """Metrics with cooperation and efficiency; None if nothing changes."""
    new = dict(metrics)
    if "pareto_proximity" in metrics:
        new.setdefault("cooperation", 1.0 - metrics["pareto_proximity"])
    if "welfare_proximity" in metrics:
        new.setdefault("efficiency", 1.0 - new.pop("welfare_proximity"))
    return new if new != metrics else None
