"""Claims of runs by workers: leases renewed by heartbeats and fenced by the number of the attempt.

The store arbitrates. A worker claims a run for `LEASE_SECONDS` and renews the lease while it lives. After its death the
lease expires (at once if the process is known to be dead on this machine), and another worker takes the run over as the
next attempt. From then on, writes of the earlier attempt are refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import StoreError
from labmates.records.rows import RUN_COLUMNS, run_record, run_row
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import WAITING, committed
from labmates.util.process_ids import worker_state

_log = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
"""Duration of a lease without a heartbeat."""
BEAT_SECONDS = 10.0
"""Interval of heartbeats."""
_RUNS, _STUDIES = schema.runs, schema.studies


class Claims:
    """The claims of one `worker`, whose name has the format of `labmates.util.process_ids.this_worker`."""

    def __init__(self, store: Store, worker: str) -> None:
        self._store = store
        self._worker = worker

    def new(self, run: RunRecord) -> RunRecord:
        """Create and claim a new run outside studies."""
        return self.all_new([run])[0]

    def all_new(self, runs: Iterable[RunRecord]) -> list[RunRecord]:
        """Create and claim new runs outside studies, which keep their order, in one transaction."""
        now = time.time()
        claimed = [replace(run, status="running", attempt=1, worker=self._worker, started=now) for run in runs]

        def write(connection: sa.Connection) -> None:
            lease = self._store.now(connection) + LEASE_SECONDS
            rows = [{**run_row(run), "lease": lease, "place": place} for place, run in enumerate(claimed)]
            self._store.insert_new(connection, _RUNS, rows)

        self._store.write(write)
        return claimed

    def take(self, run_id: str) -> RunRecord:
        """Claim an unfinished run, to resume it.

        Raises `UsageError` if the run is unknown, has ended, or another worker holds it.
        """

        def write(connection: sa.Connection) -> RunRecord:
            query = sa.select(_RUNS.c.status, _RUNS.c.worker, _RUNS.c.lease).where(_RUNS.c.id == run_id)
            query = query.with_for_update()
            row = connection.execute(query).one_or_none()
            if row is None:
                raise UsageError(f"there is no run '{run_id}' in the store {self._store.shown_url}")
            if row.status in ENDED:
                raise UsageError(f"the run '{run_id}' has ended ({row.status}); only an unfinished run can continue")
            now = self._store.now(connection)
            if row.status == "running" and not is_lost(row.worker, row.lease, now):
                raise UsageError(
                    f"the run '{run_id}' goes on: {row.worker} holds it, for {max(0.0, row.lease - now):.0f} s more if "
                    "it does not answer"
                )
            return self._claim(connection, [run_id], now)[0]

        return self._store.write(write)

    def next(self, study: str, most: int, *, attempts: int, without: Collection[str] = ()) -> list[RunRecord]:
        """Claim up to `most` waiting runs of a study, in queue order; none with a model in `without`.

        The list is empty if all runs have ended or are held by others, or if the study's cap can't pay another run. A
        run whose workers have died in `attempts` attempts fails.
        """
        models = sa.cast(_RUNS.c.models, sa.Text)
        others = [sa.not_(models.contains(json.dumps(model), autoescape=True)) for model in without]

        def write(connection: sa.Connection) -> list[RunRecord]:
            cap = connection.execute(sa.select(_STUDIES.c.cap).where(_STUDIES.c.name == study).with_for_update()).one()
            now = self._store.now(connection)
            self._free_lost(connection, study, now, attempts)
            waits = sa.and_(_RUNS.c.study == study, _RUNS.c.status.in_(WAITING), *others)
            query = sa.select(_RUNS.c.id, _RUNS.c.most, _RUNS.c.spent).where(waits).order_by(_RUNS.c.place)
            query = query.with_for_update(skip_locked=True)
            if cap.cap is None:
                return self._claim(connection, connection.execute(query.limit(most)).scalars().all(), now)
            left = cap.cap - committed(connection, study)
            chosen = []
            for row in connection.execute(query.where(_RUNS.c.most - _RUNS.c.spent <= left).limit(most)).all():
                if (cost := max(0, row.most - row.spent)) <= left:
                    left -= cost
                    chosen.append(row.id)
            return self._claim(connection, chosen, now)

        return self._store.write(write)

    def free_lost(self, study: str, *, attempts: int) -> None:
        """Release the runs of a study whose workers have died, as `next` does before it claims."""

        def write(connection: sa.Connection) -> None:
            connection.execute(sa.select(_STUDIES.c.name).where(_STUDIES.c.name == study).with_for_update())
            self._free_lost(connection, study, self._store.now(connection), attempts)

        self._store.write(write)

    def give_back(self, runs: Iterable[RunRecord]) -> None:
        """Release the runs that this worker still holds, after a cancellation before their start."""
        held = {run.id: run.attempt for run in runs}

        def write(connection: sa.Connection) -> None:
            for run_id, attempt in sorted(held.items()):
                mine = sa.and_(_RUNS.c.id == run_id, _RUNS.c.attempt == attempt, _RUNS.c.status == "running")
                values = {"status": "interrupted", "error": "interrupted", "worker": None, "lease": None}
                connection.execute(sa.update(_RUNS).where(mine).values(values))

        if held:
            self._store.write(write)

    def renew(self, runs: Iterable[RunRecord]) -> set[str]:
        """Renew the leases of runs and return the ids of lost runs."""
        held = {run.id: run.attempt for run in runs}

        def write(connection: sa.Connection) -> set[str]:
            lease = self._store.now(connection) + LEASE_SECONDS
            lost = set()
            for run_id, attempt in sorted(held.items()):
                mine = sa.and_(_RUNS.c.id == run_id, _RUNS.c.attempt == attempt, _RUNS.c.status == "running")
                if not connection.execute(sa.update(_RUNS).where(mine).values(lease=lease)).rowcount:
                    lost.add(run_id)
            return lost

        return self._store.write(write) if held else set()

    async def renewed(self, held: Callable[[], Sequence[RunRecord]]) -> AsyncIterator[RunRecord]:
        """Renew the leases of the `held` runs with every heartbeat; yields lost runs, and never ends."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            runs = held()
            try:
                lost = await asyncio.to_thread(self.renew, runs)
            except StoreError as error:  # If the store stays unreachable, the runs' writes fail.
                _log.warning("leases could not be renewed: %s", error)
                continue
            for run in runs:
                if run.id in lost:
                    yield run

    def _claim(self, connection: sa.Connection, ids: Sequence[str], now: float) -> list[RunRecord]:
        values: dict[str, Any] = {
            "status": "running",
            "error": None,
            "attempt": _RUNS.c.attempt + 1,
            "worker": self._worker,
            "lease": now + LEASE_SECONDS,
            "started": sa.case((_RUNS.c.attempt == 0, now), else_=_RUNS.c.started),
        }
        update = sa.update(_RUNS).where(_RUNS.c.id.in_(ids)).values(values).returning(*RUN_COLUMNS)
        claimed = {run.id: run for run in map(run_record, connection.execute(update))} if ids else {}
        return [claimed[run_id] for run_id in ids]

    def _free_lost(self, connection: sa.Connection, study: str, now: float, attempts: int) -> None:
        running = sa.and_(_RUNS.c.study == study, _RUNS.c.status == "running")
        held = connection.execute(
            sa.select(_RUNS.c.worker, sa.func.min(_RUNS.c.lease)).where(running).group_by("worker")
        )
        for worker, earliest in held.all():
            if not is_lost(worker, earliest, now):
                continue
            whose = sa.and_(running, _RUNS.c.worker == worker)
            if worker is not None and worker_state(worker) != "dead":
                whose = sa.and_(whose, _RUNS.c.lease < now)
            query = sa.select(_RUNS.c.id, _RUNS.c.attempt).where(whose).with_for_update(skip_locked=True)
            lost = connection.execute(query).all()
            reason = f"its worker died or was cut off: {worker}"
            rows = [
                {"run": row.id, "number": row.attempt, "worker": worker, "status": "lost", "reason": reason, "at": now}
                for row in lost
            ]
            self._store.insert_new(connection, schema.attempts, rows)
            for often in (False, True):
                ids = [row.id for row in lost if (row.attempt >= attempts) == often]
                values: dict[str, Any] = {"status": "interrupted", "error": reason, "worker": None, "lease": None}
                if often:
                    values |= {"status": "failed", "error": f"{reason} (attempt {attempts} of {attempts})"}
                if ids:
                    connection.execute(sa.update(_RUNS).where(_RUNS.c.id.in_(ids)).values(values))


def is_lost(worker: str | None, lease: float | None, now: float) -> bool:
    """Whether the worker of a run has died or its lease has expired."""
    return lease is None or lease < now or worker is None or worker_state(worker) == "dead"
