from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.models.scripted import BASELINES
from labmates.records import schema
from labmates.records.claims import Claims
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.audit import audit, begun_runs
from labmates.studies.processes import work_in_processes
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import Bound, enter, stored_spec, work_on
from labmates.util.bounded_yaml import Source
from labmates.util.process_ids import this_worker
from labmates.workflows.calls.stop_signal import StopSignal
from tests.support.chaos import Chaos
from tests.support.children import Child, command
from tests.support.openai_server import OpenAIServer, fault, serve_model
from tests.support.studies import conditions_of

DATA: dict[str, Any] = {
    "name": "s",
    "kind": "science",
    "models": ["scripted:silent"],
    "fixed": {"difficulty": "easy", "task": "anomaly", "deliberation_rounds": 0},
    "grid": {"visibility": ["full", "team", "hidden"]},
    "replicates": 2,
    "sandbox": "unsafe-local",
}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    yield store
    store.close()


def study(**changes: Any) -> StudySpec:
    return read_spec(Source("s.yaml", {**DATA, **changes}, {}))


def check_ledgers(store: Store) -> None:
    """Check that every run is there once, and nothing was done or paid twice."""
    assert [fault for _, found in audit(store, begun_runs(store)) for fault in found] == []


async def test_a_study_is_executed_once_and_grows(store: Store) -> None:
    spec = study()
    assert enter(store, spec).new == 6
    assert await work_on(store, spec) == 6
    assert study_counts(store, "s").runs == {"completed": 6}
    before = {run.id: run for run in store.runs()}
    assert (enter(store, spec).new, await work_on(store, spec)) == (0, 0)
    grown = study(replicates=3)
    assert (enter(store, grown).new, await work_on(store, grown)) == (3, 3)
    after = {run.id: run for run in store.runs()}
    assert {run_id: after[run_id] for run_id in before} == before
    assert sorted({run.seed for run in after.values()}) == [0, 1, 2]
    assert stored_spec(store, None) == grown
    check_ledgers(store)


async def test_a_run_of_a_study_is_the_run_that_its_seed_makes(store: Store, tmp_path: Path) -> None:
    from labmates.api import arun

    spec = study(grid={"visibility": ["team"]}, replicates=1, seed=5)
    enter(store, spec)
    await work_on(store, spec)
    [run] = store.runs()
    alone = await arun("science", store=f"sqlite:///{tmp_path}/x.db", seed=5, settings={"sandbox": "unsafe-local"},
                       model="scripted:silent", visibility="team", **DATA["fixed"])  # fmt: skip
    assert (run.key, run.metrics, run.budget) == (alone[0].key, alone[0].metrics, alone[0].budget)


async def test_the_cap_is_never_broken_and_raising_it_goes_on(store: Store) -> None:
    spec = study(cap="0.25", fixed={**DATA["fixed"], "budget": "0.1"})
    enter(store, spec)
    await work_on(store, spec)
    counts = study_counts(store, "s")
    assert counts.spent <= 250_000
    assert counts.cannot_go_on(spec.cap)
    left = counts.of("planned")
    assert left > 0
    raised = study(cap="9", fixed={**DATA["fixed"], "budget": "0.1"})
    enter(store, raised)
    assert await work_on(store, raised) == left


def test_runs_that_wait_follow_a_study_that_was_mended(store: Store) -> None:
    enter(store, study())
    changed = study(seed=5, judges=["openai:judge"], connection={"base_url": "http://127.0.0.1:9/v1"})
    assert enter(store, changed).new == 0
    claims = Claims(store, this_worker())
    [run] = claims.next("s", 1, attempts=5)
    assert (run.seed, run.settings) == (5, changed.settings().model_dump(mode="json"))
    asked = sa.select(schema.runs.c.most).where(schema.runs.c.id == run.id)
    most = store.read(lambda connection: connection.execute(asked).scalar_one())
    assert most == Bound(changed).of(conditions_of(changed)[0]) > Bound(study()).of(conditions_of(changed)[0])
    with pytest.raises(UsageError, match=r"begun with other seeds \(replicate 0 with 5, not 6\).*another name"):
        enter(store, study(seed=6))
    assert stored_spec(store, "s") == changed


def test_a_cap_that_can_not_pay_one_run_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match=r"cap: \$0.05 can't pay one run: the cheapest may cost \$1"):
        enter(store, study(cap="0.05"))
    enter(store, study(cap="1"))


async def test_the_brake_lets_steps_end_and_the_study_goes_on_later(store: Store) -> None:
    spec = study(replicates=1)
    enter(store, spec)
    stop_signal = StopSignal()

    def watch(run: Any, event: Any) -> None:
        if event is not None and event.type == "llm_call":
            stop_signal.pull()

    assert await work_on(store, spec, stop_signal=stop_signal, watch=watch) == 3
    stopped = study_counts(store, "s")
    assert stopped.of("completed") == 0
    assert stopped.of("interrupted") > 0
    assert stopped.spent > 0
    assert await work_on(store, spec) == 3
    assert study_counts(store, "s").runs == {"completed": 3}
    check_ledgers(store)


async def test_runs_that_fail_keep_their_reason_and_go_on_when_told(store: Store) -> None:
    from labmates.records.studies import failure_reasons, retry_failed

    silent = serve_model(BASELINES.get("silent")(), latency=0)
    behaviours = [silent]
    with OpenAIServer(lambda request, number: behaviours[-1](request, number)) as server:
        connection = {"base_url": server.base_url, "max_retries": 0}
        spec = study(models=["openai:m"], connection=connection, replicates=1)
        enter(store, spec)
        behaviours.append(_refuse)
        await work_on(store, spec)
        assert study_counts(store, "s").runs == {"failed": 3}
        [(reason, number)] = failure_reasons(store, "s", 5)
        assert number == 3
        assert "500" in reason
        behaviours.append(silent)
        assert retry_failed(store, "s") == 3
        await work_on(store, spec)
    assert study_counts(store, "s").runs == {"completed": 3}
    [run, *_] = list(store.runs())
    assert [(number, status) for number, status, _ in store.attempts(run.id)] == [(1, "failed")]


async def _refuse(_request: Any, _number: int) -> Any:
    return fault(500)


def wait_for(store: Store, *statuses: str, at_least: int = 1) -> None:
    """Wait until so many runs are in these states."""
    end = time.monotonic() + 200
    while study_counts(store, "s").of(*statuses) < at_least:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow("tests/studies/test_study.py")
async def test_dying_workers_and_a_lost_database_lose_nothing_and_pay_nothing_twice(store: Store) -> None:
    spec = study(replicates=3, concurrency={"max_concurrent_runs": 3}, attempts=50)
    enter(store, spec)
    chaos = Chaos(store, "s", runs=9, kills=3, cuts=3)
    async with asyncio.TaskGroup() as group:
        group.create_task(work_in_processes(store.url, "s", 2, StopSignal()))
        group.create_task(chaos.make())
    assert study_counts(store, "s").runs == {"completed": 9}
    assert any(status == "lost" for run in list(store.runs()) for _, status, _ in store.attempts(run.id))
    check_ledgers(store)


def test_a_worker_ends_cleanly_when_it_is_told_to(store: Store) -> None:
    spec = study(replicates=4, concurrency={"max_concurrent_runs": 2})
    enter(store, spec)
    with Child(command("worker", "--study", "s"), {**os.environ, "LABMATES_STORE": store.url}) as worker:
        wait_for(store, "running")
        worker.send_signal(signal.SIGINT)
        _, errors = worker.communicate()
    assert worker.returncode == 130
    assert "Stopping" in errors
    assert "Traceback" not in errors
    assert study_counts(store, "s").of("running") == 0
    assert study_counts(store, "s").of("planned", "interrupted") > 0
