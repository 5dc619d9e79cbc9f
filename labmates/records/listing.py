"""Paged lists of runs, and selection of runs by id or property."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import sqlalchemy as sa

from labmates.errors import UsageError, unknown_name
from labmates.records import schema
from labmates.records.database import Database
from labmates.records.rows import RUN_COLUMNS, run_record
from labmates.records.run import RunRecord, RunStatus
from labmates.records.search import matching_runs, parse_query
from labmates.records.store import Store

_RUNS = schema.runs

PAGE: Final = 50
"""Runs per page."""
STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)
Sort = Literal["started", "seconds", "spent", "kind", "status", "study", "id"]
SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
_STUDY = sa.func.coalesce(_RUNS.c.study, "")
_MOST_NEAR = 5
_MOST_VALUE: Final = 2**63
"""Larger numbers don't fit a database column."""


@dataclass(frozen=True)
class Chosen:
    """A filter of runs; empty fields match all."""

    study: str = ""
    kind: str = ""
    status: str = ""
    model: str = ""  # a part of the name of one of the run's models
    task: str = ""
    text: str = ""  # a part of the run's id, condition or error
    ids: tuple[str, ...] = ()
    key: tuple[str, ...] = ()  # keys of conditions
    search: str = ""  # a full-text query; see `labmates.records.search.parse_query`

    @property
    def is_all(self) -> bool:
        """Whether the filter matches all runs."""
        return self == Chosen()


@dataclass(frozen=True)
class ListedRun:
    """A run in a list, with its cost (judges included) in micro-dollars."""

    run: RunRecord
    spent: int


@dataclass(frozen=True)
class RunPage:
    """A page of a list of runs; `before` and `after` are positions for `run_page`, empty at the ends of the list."""

    rows: tuple[ListedRun, ...]
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Facets:
    """Numbers of runs by study (newest first; then by status), by kind, and by status."""

    studies: Mapping[str, Mapping[str, int]]
    kinds: Mapping[str, int]
    statuses: Mapping[str, int]

    @property
    def total(self) -> int:
        """Number of all runs."""
        return sum(self.statuses.values())


def run_page(
    database: Database,
    chosen: Chosen,
    *,
    sort: str = "started",
    descending: bool = True,
    after: str = "",
    before: str = "",
    size: int = PAGE,
) -> RunPage:
    """The page of runs after or before a position of another page.

    Raises `UsageError` if a status, an order, a position or a search is invalid.
    """
    if sort not in SORTS:
        raise unknown_name("order", sort, SORTS)
    if chosen.status and chosen.status not in STATUSES:
        raise unknown_name("status", chosen.status, STATUSES)
    column: sa.ColumnElement[Any] = _STUDY if sort == "study" else _RUNS.c[sort]
    backwards = bool(before)
    query = sa.select(_RUNS.c.id).where(*conditions(chosen, is_sqlite=database.is_sqlite))
    if place := after or before:
        value, run_id = _place(place, sort)
        here, there = sa.tuple_(column, _RUNS.c.id), sa.tuple_(sa.literal(value), sa.literal(run_id))
        query = query.where(here < there if descending != backwards else here > there)
    down = descending != backwards
    order = [each.desc() if down else each.asc() for each in (column, _RUNS.c.id)]
    # Ids first: sorting whole rows is slow.
    ids = query.order_by(*order).limit(size + 1).subquery()
    whole = sa.select(*RUN_COLUMNS, _RUNS.c.spent).where(_RUNS.c.id.in_(sa.select(ids.c.id))).order_by(*order)
    rows = database.rows(whole)
    more = len(rows) > size
    rows = rows[:size]
    if backwards:
        rows.reverse()
    if not rows:
        return RunPage(())
    first, last = (_place_of(row, sort) for row in (rows[0], rows[-1]))
    has_before = more if backwards else bool(after)
    has_after = bool(before) if backwards else more
    listed = tuple(ListedRun(run_record(row), row.spent) for row in rows)
    return RunPage(listed, first if has_before else "", last if has_after else "")


def run_count(database: Database, chosen: Chosen) -> int:
    """The number of runs that a filter matches."""
    query = sa.select(sa.func.count()).select_from(_RUNS).where(*conditions(chosen, is_sqlite=database.is_sqlite))
    return database.read(lambda connection: connection.execute(query).scalar_one())


def facets(database: Database) -> Facets:
    """The numbers of runs in a store by filter value; reads only indices."""

    def read(connection: sa.Connection) -> Facets:
        number = sa.func.count()
        kinds = connection.execute(sa.select(_RUNS.c.kind, number).group_by(_RUNS.c.kind).order_by(_RUNS.c.kind)).all()
        groups = sa.select(_RUNS.c.study, _RUNS.c.status, number).group_by(_RUNS.c.study, _RUNS.c.status)
        newest = sa.select(schema.studies.c.name).order_by(schema.studies.c.created.desc(), schema.studies.c.name)
        studies: dict[str, dict[str, int]] = {name: {} for name in connection.execute(newest).scalars()}
        statuses = dict.fromkeys(STATUSES, 0)
        for study, status, count in connection.execute(groups):
            statuses[status] = statuses.get(status, 0) + count
            if study is not None:
                studies.setdefault(study, {})[status] = count
        return Facets(studies, {row[0]: row[1] for row in kinds}, {name: n for name, n in statuses.items() if n})

    return database.read(read)


def near_ids(database: Database, run_id: str) -> list[str]:
    """The ids of runs that share the longest prefix with `run_id`."""
    for length in range(len(run_id), 0, -1):
        start = run_id[:length]
        query = sa.select(_RUNS.c.id).where(_RUNS.c.id.startswith(start, autoescape=True)).order_by(_RUNS.c.id)
        with database.reading() as connection:
            if ids := list(connection.execute(query.limit(_MOST_NEAR)).scalars()):
                return ids
    return []


def conditions(chosen: Chosen, *, is_sqlite: bool) -> Iterable[sa.ColumnElement[bool]]:
    """Yield the SQL conditions of a filter."""
    for name in ("study", "kind", "status"):
        if value := getattr(chosen, name):
            yield _RUNS.c[name] == value
    if chosen.task:
        yield _RUNS.c.condition["task"].as_string() == chosen.task
    if chosen.ids:
        yield _RUNS.c.id.in_(chosen.ids)
    if chosen.key:
        yield _RUNS.c.key.in_(chosen.key)
    if chosen.model:
        yield sa.cast(_RUNS.c.models, sa.Text).contains(_as_json(chosen.model), autoescape=True)
    if chosen.text:
        text = chosen.text
        yield sa.or_(
            _RUNS.c.id.contains(text, autoescape=True),
            _RUNS.c.error.contains(text, autoescape=True),
            sa.cast(_RUNS.c.condition, sa.Text).contains(_as_json(text), autoescape=True),
        )
    if chosen.search:
        yield _RUNS.c.id.in_(matching_runs(parse_query(chosen.search), is_sqlite=is_sqlite))


def _as_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _place_of(row: Any, sort: str) -> str:
    value = row._mapping[sort]
    return json.dumps(["" if value is None else value, row.id], separators=(",", ":"))


def _place(place: str, sort: str) -> tuple[Any, str]:
    """A parsed position: the value in the sorted column, and the id of a run."""
    try:
        value, run_id = json.loads(place)
    except (ValueError, TypeError, RecursionError):
        value, run_id = None, None
    wanted = (int, float) if sort in ("started", "seconds", "spent") else (str,)
    is_fit = isinstance(value, wanted) and not isinstance(value, bool) and isinstance(run_id, str)
    if not is_fit or (isinstance(value, int | float) and not abs(value) < _MOST_VALUE):
        raise UsageError(f"'{place[:80]}' is not a position in this list; start at its first page")
    return value, run_id


def select_runs(
    store: Store, ids: Sequence[str] = (), *, kind: str | None = None, study: str | None = None, task: str | None = None
) -> list[RunRecord]:
    """The runs with these ids or prefixes of ids, or all in the store's order, filtered by kind, study and task.

    Raises `UsageError` if an id is unknown, or no run is left.
    """
    named = {run.id: run for run in map(store.run, dict.fromkeys(ids))}
    chosen = list(named.values()) if ids else list(store.runs(kind=kind))
    wanted = {"kind": kind, "study": study, "task": task}
    runs = [
        run
        for run in chosen
        if kind in (None, run.kind) and study in (None, run.study) and task in (None, run.condition.get("task"))
    ]
    if not runs:
        asked = ", ".join(f"{name} '{value}'" for name, value in wanted.items() if value is not None)
        raise UsageError(f"the store {store.shown_url} has no run{f' of {asked}' if asked else ''}")
    return runs
