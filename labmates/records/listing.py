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
    page: int = 1,
    size: int | None = PAGE,
) -> list[RunRecord]:
    """The runs on a page of a list, from 1; without a size, the list is one page.

    Raises `UsageError` if a status, an order or a search is invalid.
    """
    if sort not in SORTS:
        raise unknown_name("order", sort, SORTS)
    column: sa.ColumnElement[Any] = _STUDY if sort == "study" else _RUNS.c[sort]
    order = [each.desc() if descending else each.asc() for each in (column, _RUNS.c.id)]
    query = sa.select(_RUNS.c.id).where(*conditions(chosen, is_sqlite=database.is_sqlite)).order_by(*order)
    # Ids first: sorting whole rows is slow.
    ids = query.limit(size).offset((page - 1) * (size or 0)).subquery()
    whole = sa.select(*RUN_COLUMNS).where(_RUNS.c.id.in_(sa.select(ids.c.id))).order_by(*order)
    return list(map(run_record, database.rows(whole)))


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


def conditions(chosen: Chosen, *, is_sqlite: bool) -> Iterable[sa.ColumnElement[bool]]:
    """Yield the SQL conditions of a filter. Raises `UsageError` if its status or its search is invalid."""
    if chosen.status and chosen.status not in STATUSES:
        raise unknown_name("status", chosen.status, STATUSES)
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
