"""Comparison of a run's copies in two stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import zip_longest
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.run import ENDED

_RUNS = schema.runs
_OWN = frozenset({"place", "most", "worker", "lease"})
"""Columns of a run's row that depend on the store."""


class Standing(Enum):
    """The state of the target's copy relative to the source's."""

    EQUAL = "equal"
    BEHIND = "behind"
    AHEAD = "ahead"
    DIFFERS = "differs"


def is_unbegun(row: Any) -> bool:
    """Whether a run was never started."""
    return bool(row.status == "planned" and row.attempt == 0)


def at_rest(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a run in a copy, where no worker holds it."""
    values = dict(row)
    if values["status"] == "running":
        values |= {"status": "interrupted", "error": "interrupted"}
    return {**values, "worker": None, "lease": None}


def compared(source: sa.Connection, target: sa.Connection, theirs: Any, mine: Any) -> tuple[Standing, str]:
    """Compare a run's copies in source and target, and name a difference; a copy that extends the other is ahead.

    The connections give JSON as text. `theirs` and `mine` are the rows in source and target, with study, key,
    replicate, seed, status and attempt.
    """
    for name in ("study", "key", "replicate", "seed"):
        if getattr(theirs, name) != getattr(mine, name):
            return Standing.DIFFERS, f"its {name} differs"
    if is_unbegun(theirs) or is_unbegun(mine):
        return _ordered(is_unbegun(mine) - is_unbegun(theirs)), ""
    lead = 0
    for table in (schema.events, schema.bodies):
        place, longer = _differing(source, target, table, theirs.id)
        if place is not None:
            return Standing.DIFFERS, f"{table.name[:-1] if table is schema.events else 'text'} {place} differs"
        if longer * lead < 0:
            return Standing.DIFFERS, "each has what the other does not"
        lead = lead or longer
    return (_ordered(lead), "") if lead else _of_rows(source, target, theirs.id)


def _of_rows(source: sa.Connection, target: sa.Connection, run_id: str) -> tuple[Standing, str]:
    query = sa.select(_RUNS).where(_RUNS.c.id == run_id)
    theirs, mine = (connection.execute(query).one()._mapping for connection in (source, target))
    ended = (theirs["status"] in ENDED, mine["status"] in ENDED)
    if not all(ended):
        further = [(has_ended, row["attempt"]) for has_ended, row in zip(ended, (theirs, mine), strict=True)]
        return _ordered((further[0] > further[1]) - (further[0] < further[1])), ""
    names = [name for name in theirs if name not in _OWN and _plain(theirs[name]) != _plain(mine[name])]
    return (Standing.DIFFERS, f"its {', '.join(names)} differ") if names else (Standing.EQUAL, "")


def _plain(value: Any) -> Any:
    return None if value == "null" else value  # JSON's null, and a column without a value


def _ordered(lead: int) -> Standing:
    """The target's state for the source's lead."""
    return Standing.EQUAL if lead == 0 else Standing.BEHIND if lead > 0 else Standing.AHEAD


def _differing(source: sa.Connection, target: sa.Connection, table: sa.Table, run_id: str) -> tuple[int | None, int]:
    """The number of the first different row, if any; else 1 if the source has more rows, -1 if the target has."""
    for number, (theirs, mine) in enumerate(zip_longest(_rows(source, table, run_id), _rows(target, table, run_id))):
        if theirs is None or mine is None:
            return None, -1 if theirs is None else 1
        if tuple(theirs) != tuple(mine):
            return number, 0
    return None, 0


def _rows(connection: sa.Connection, table: sa.Table, run_id: str) -> Iterator[Any]:
    query = sa.select(table).where(table.c.run == run_id).order_by(*table.primary_key)
    with connection.execute(query, execution_options={"yield_per": 200}) as rows:
        yield from rows
