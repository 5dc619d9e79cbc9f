"""Verification of a run's hash chains and digests against what the store holds of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from labmates.records import schema
from labmates.records.bodies import Body
from labmates.records.digests import LATE, Chain, digests, stored_digests
from labmates.records.run import ENDED
from labmates.records.store import Store

_RUNS, _SEALS, _EVENTS, _BODIES = schema.runs, schema.seals, schema.events, schema.bodies
Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Record:
    """All that the store holds of a run which a digest covers."""

    row: Row
    seals: Sequence[Row]
    events: Sequence[Row]
    bodies: Sequence[Body]


def begun_runs(store: Store, *, study: str | None = None) -> list[str]:
    """The ids of all runs of which there is a record, also of one that says it was not begun, oldest first."""
    begun = sa.or_(_RUNS.c.status != "planned", _RUNS.c.chain != "", _RUNS.c.digest.is_not(None))
    query = sa.select(_RUNS.c.id).where(begun).order_by(_RUNS.c.started, _RUNS.c.id)
    if study is not None:
        query = query.where(_RUNS.c.study == study)
    return store.database.read(lambda connection: list(connection.execute(query).scalars()))


def ended_digests(store: Store, *, study: str | None = None) -> list[str]:
    """The digests of the runs that have ended: all, or those of a study."""
    query = sa.select(_RUNS.c.digest).where(_RUNS.c.digest.is_not(None))
    if study is not None:
        query = query.where(_RUNS.c.study == study)
    return store.database.read(lambda connection: list(connection.execute(query).scalars()))


def unproven(store: Store, run_id: str) -> Iterator[str]:
    """Yield the parts of a run's record that its hash chains and digests don't cover.

    Raises
    ------
    ValueError
        If a row can't be read.
    StoreError
        If the store can't be read.
    """
    record = _read(store, run_id)
    row = record.row
    if row["status"] == "planned":
        yield "it has a record, though it says that it was not begun"
    if (row["digest"] is not None) != (row["status"] in ENDED):
        has = "a digest, though it has not ended" if row["digest"] else "no digest, though it has ended"
        yield f"it has {has} ({row['status']})"
    yield from _unchained(record)
    if row["digest"] is not None:
        yield from _unsealed(record)


def is_late(digest: str | None) -> bool:
    """Whether a digest was computed by an upgrade of the store, long after the run ended."""
    return digest is not None and digest.startswith(LATE)


def _read(store: Store, run_id: str) -> _Record:
    def read(connection: sa.Connection) -> _Record:
        def rows(table: sa.Table, order: str) -> Sequence[Row]:
            query = sa.select(table).where(table.c.run == run_id).order_by(table.c[order])
            return [row._asdict() for row in connection.execute(query)]

        whole = sa.select(_RUNS).where(_RUNS.c.id == run_id)
        while True:
            before = connection.execute(whole).one()._asdict()
            seals, events, bodies = rows(_SEALS, "number"), rows(_EVENTS, "seq"), rows(_BODIES, "number")
            if connection.execute(whole).one().chain == before["chain"]:  # nothing was added meanwhile
                return _Record(before, seals, events, [Body(b["number"], b["media"], b["data"]) for b in bodies])

    return store.database.read(read)


def _unchained(record: _Record) -> Iterator[str]:
    chain, events, bodies = Chain(), iter(record.events), stored_digests(record.bodies)
    for state in (*record.seals, record.row):
        covered = Chain.parse(state["chain"])
        more = max(0, covered.events - chain.events), max(0, covered.bodies - chain.bodies)
        chain = chain.longer(islice(events, more[0]), islice(bodies, more[1]))
        if (chain.events, chain.event_head) != (covered.events, covered.event_head):
            yield f"its first {covered.events} events are not those that its hash chain covers"
        if (chain.bodies, chain.body_head) != (covered.bodies, covered.body_head):
            yield f"its first {covered.bodies} texts and files are not those that its hash chain covers"
        if chain != covered:
            return
    if added := (sum(1 for _ in events), sum(1 for _ in bodies)):
        for number, what in zip(added, ("events", "texts and files"), strict=True):
            if number:
                yield f"it has {number} {what} that its hash chain does not cover"


def _unsealed(record: _Record) -> Iterator[str]:
    had = [state["digest"] for state in (*record.seals, record.row)]
    if [seal["number"] for seal in record.seals] != list(range(len(record.seals))):
        yield "the list of its earlier digests has a gap"
    elif had != digests(record.row, record.seals):
        yield "its row, its metrics or an earlier digest differ from its digest"
