"""A real Ray on this machine, started once by the executor's own means, serves all tests of this file."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from labmates.errors import MissingExtraError, UsageError
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies import ray_cluster
from labmates.studies.ray_cluster import connected, share_of_sandboxes
from labmates.studies.ray_executor import work_on_ray
from labmates.studies.source import read_source
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter
from labmates.workflows.brake import Brake

pytestmark = [pytest.mark.needs("ray"), pytest.mark.xdist_group("ray")]

WORKERS = 2
STUDY = """
name: quiet
kind: science
models: [scripted:silent]
fixed: {{difficulty: easy}}
grid: {{task: [ecology, anomaly]}}
replicates: {replicates}
sandbox: unsafe-local
concurrency: {{runs: 2}}
"""


def no_trials() -> None:
    """Let workers start no sandbox ahead, as in the tests themselves."""
    from labmates.workflows import workshop

    workshop._TRIALS = 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ray(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        token = tmp_path_factory.mktemp("ray") / "token"
        token.write_text("only-of-these-tests-0123456789abcdef")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
        import ray

        patch.setattr(ray, "init", partial(ray.init, runtime_env={"worker_process_setup_hook": no_trials}))
        async with connected(None, workers=WORKERS, sandboxes=4):
            yield ray


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    yield store
    store.close()


def entered(store: Store, replicates: int = 6, more: str = "") -> StudySpec:
    spec = read_spec(read_source(STUDY.format(replicates=replicates) + more, "quiet.yaml"))
    enter(store, spec)
    return spec


async def until_ended(store: Store, most: int = 1) -> None:
    """Wait until so many runs have ended and others go on."""
    while True:
        counts = await asyncio.to_thread(study_counts, store, "quiet")
        if counts.of("completed") >= most and counts.of("running"):
            return
        await asyncio.sleep(0.02)


def busy_pids(store: Store) -> list[int]:
    """Return the processes that hold runs."""
    return [int(worker.rsplit("-", 2)[1]) for worker in study_counts(store, "quiet").workers]


def assert_all_ended_once(store: Store, spec: StudySpec) -> None:
    runs = list(store.runs(study=spec.name))
    assert Counter(run.status for run in runs) == {"completed": 2 * spec.replicates}
    assert max(Counter((run.key, run.replicate) for run in runs).values()) == 1
    for run in runs:
        assert Counter(event.type for event in store.events(run.id))["score"] > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_study_ends_with_each_run_there_once(ray: Any, store: Store, capfd: Any) -> None:
    spec = entered(store)
    assert await work_on_ray(store.url, spec, workers=WORKERS) == 12
    assert_all_ended_once(store, spec)
    assert await work_on_ray(store.url, spec, workers=WORKERS) == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_worker_loses_nothing_and_prints_nothing(ray: Any, store: Store, capfd: Any) -> None:
    spec = entered(store)
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=WORKERS))
    await until_ended(store)
    [pid, *_] = busy_pids(store)
    os.kill(pid, signal.SIGKILL)
    assert await working == 12
    assert_all_ended_once(store, spec)
    lost = [attempt for run in store.runs() for attempt in store.attempts(run.id)]
    assert {status for _, status, _ in lost} == {"lost"}
    assert all(f"-{pid}-" in reason for _, _, reason in lost)
    assert capfd.readouterr().out == ""


@pytest.mark.asyncio(loop_scope="module")
async def test_the_brake_ends_runs_at_their_next_step(ray: Any, store: Store) -> None:
    spec, brake = entered(store, replicates=200), Brake()
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=WORKERS, brake=brake))
    await until_ended(store)
    brake.pull()
    ended = await working
    counts = study_counts(store, "quiet")
    assert (counts.of("running"), counts.of("completed"), counts.of("failed")) == (0, ended, 0)
    assert 0 < ended < counts.total


@pytest.mark.asyncio(loop_scope="module")
async def test_when_cancelled_no_worker_is_left(ray: Any, store: Store) -> None:
    spec = entered(store, replicates=200)
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=WORKERS))
    await until_ended(store)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    counts = study_counts(store, "quiet")
    assert (counts.of("running"), counts.of("failed")) == (0, 0)
    assert counts.of("planned") > 0


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_worker_refuses_is_said_with_its_machine(ray: Any, store: Store) -> None:
    spec = entered(store, more="connection: {base_url: 'http://127.0.0.1:9/v1'}\n").model_copy(
        update={"kind": "science", "judges": ("openai:nobody",)}
    )
    with pytest.raises(UsageError, match=f"a worker on {socket.gethostname()}: "):
        await work_on_ray(store.url, spec, workers=WORKERS)
    assert study_counts(store, "quiet").of("planned") == 12


@pytest.mark.asyncio(loop_scope="module")
async def test_a_second_connection_is_refused(ray: Any, store: Store) -> None:
    with pytest.raises(UsageError, match="connected to Ray already"):
        await work_on_ray(store.url, entered(store), workers=WORKERS, address="127.0.0.1:6379")


def run_alone(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=90, check=False)
