"""Metrics of old runs of the lab under their present names, by intention to treat.

What was ``quality``, a rule on the words of a text, is ``heuristic_quality``. A report in which the first version of
``verified`` could read no findings has accuracy 0; ``readable`` tells which runs these are. Judging a run again gives
it what is missing (skill, and the quality of today).
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_CHUNK = 500


def upgrade() -> None:
    """Rename one metric, and add those that the first version of the judge left out."""
    runs = sa.table("runs", sa.column("id"), sa.column("kind"), sa.column("metrics", sa.JSON))
    events = sa.table("events", *map(sa.column, ("run", "seq", "type")), sa.column("data", sa.JSON))
    connection = op.get_bind()
    mine = connection.execute(sa.select(runs.c.id, runs.c.metrics).where(runs.c.kind == "science")).all()
    for start in range(0, len(mine), _CHUNK):
        some = {row.id: row.metrics for row in mine[start : start + _CHUNK]}
        scores = sa.select(events.c.run, events.c.data).where(events.c.run.in_(list(some)), events.c.type == "score")
        read: dict[str, dict[str, float]] = {run: {} for run in some}
        for row in connection.execute(scores.order_by(events.c.run, events.c.seq)):
            read[row.run] |= _of_score(row.data)
        for run, metrics in some.items():
            old = _data(metrics)
            new = {"heuristic_quality" if name == "quality" else name: value for name, value in old.items()}
            new = {**read[run], **new} if "quality" in old or "completeness" in old else new
            if new != old and "heuristic_quality" not in old:
                connection.execute(sa.update(runs).where(runs.c.id == run).values(metrics=new))


def _of_score(data: Any) -> dict[str, float]:
    score = _data(data)
    if (score["judge"], score["metric"], score["version"]) != ("verified", "accuracy", "1") or score.get("failed"):
        return {}
    return {"accuracy": score["value"] or 0.0, "readable": float("credits" in score.get("details", {}))}


def _data(value: Any) -> dict[str, Any]:
    return dict(json.loads(value) if isinstance(value, str) else value)
