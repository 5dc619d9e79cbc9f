"""Why an ended run may not be used.

Runs that older versions made are judged by what stands in their row: the share of failed decisions of the whole run
(limit 20 %, as for new runs, though not by model), or model calls of which every reply failed.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_MOST_FAILED = 0.2


def upgrade() -> None:
    """Add the reason, and give it to the old runs that have one."""
    op.add_column("runs", sa.Column("invalid", sa.Text))
    names = ("id", "kind", "status", "metrics", "usage")
    runs = sa.table("runs", *map(sa.column, (*names, "invalid")))
    query = sa.select(*(runs.c[name] for name in names)).where(runs.c.status.in_(("completed", "exhausted")))
    connection = op.get_bind()
    found = [(row.id, reason) for row in connection.execute(query) if (reason := _reason(row))]
    for run_id, reason in found:
        connection.execute(sa.update(runs).where(runs.c.id == run_id).values(invalid=reason))


def _reason(row: Any) -> str | None:
    metrics, usage = _data(row.metrics), _data(row.usage)
    failed = metrics.get("failed_decision_rate")
    if row.kind in ("game", "dilemma") and failed is not None and failed > _MOST_FAILED:
        return f"{failed:.0%} of its decisions failed (at most {_MOST_FAILED:.0%} may)"
    calls = usage.get("llm_calls", 0)
    if calls and usage.get("failed_replies", 0) >= calls:
        return f"no reply could be used, of {calls}"
    return None


def _data(value: Any) -> dict[str, Any]:
    """A column of JSON, which SQLite gives as text."""
    return dict(json.loads(value) if isinstance(value, str) else value)
