"""A real Ray on this machine, started once by the executor's own means, serves all tests of this file."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.settings import RunSettings
from labmates.studies.source import read_study
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import enter, stored_spec
from labmates.workflows.calls.stop_signal import StopSignal
from labmates_ray import cluster
from labmates_ray.cluster import connected
from labmates_ray.executor import SANDBOX, share_of_sandboxes, work_on_ray
from tests.docs.pages import SHELL, blocks_of
from tests.support.plugins import ROOT

pytestmark = [pytest.mark.needs("ray"), pytest.mark.xdist_group("ray")]
SLOW = pytest.mark.slow("packages/labmates-ray/labmates_ray")

WORKERS = 2
STUDY = """
name: quiet
kind: science
models: [scripted:silent]
fixed: {{difficulty: easy, solo: true}}
grid: {{task: [ecology, anomaly]}}
replicates: {replicates}
sandbox: unsafe-local
concurrency: {{max_concurrent_runs: 2}}
"""


def no_trials() -> None:
    """Let workers start no sandbox ahead, as in the tests themselves."""
    from labmates.sandboxes import pool as sandbox_pool

    sandbox_pool._TRIALS = 0


@pytest.fixture(scope="module")
def ray(ray_environment: None) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        import ray

        patch.setattr(ray, "init", partial(ray.init, runtime_env={"worker_process_setup_hook": no_trials}))
        with connected(None, cpus=WORKERS, resources={SANDBOX: 4}):
            yield ray


def entered(store: Store, replicates: int = 6) -> StudySpec:
    spec = read_spec(read_study(STUDY.format(replicates=replicates), "quiet.yaml"))
    enter(store, spec)
    return spec


async def until(store: Store, *statuses: str) -> None:
    """Wait until there are runs in each of these states."""
    while not all(map((await asyncio.to_thread(study_counts, store, "quiet")).of, statuses)):  # noqa: ASYNC110
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


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_a_study_ends_with_each_run_there_once(ray: Any, store: Store) -> None:
    spec = entered(store)
    assert await work_on_ray(store.url, spec, workers=WORKERS) == 12
    assert_all_ended_once(store, spec)
    assert await work_on_ray(store.url, spec, workers=1) == 0


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_a_killed_worker_loses_nothing_and_prints_nothing(ray: Any, store: Store, capfd: Any) -> None:
    spec = entered(store, replicates=4)
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=WORKERS))
    await until(store, "completed", "running")
    [pid, *_] = busy_pids(store)
    os.kill(pid, signal.SIGKILL)
    assert await working == 8
    assert_all_ended_once(store, spec)
    lost = [attempt for run in store.runs() for attempt in store.attempts(run.id)]
    assert {status for _, status, _ in lost} == {"lost"}
    assert all(f"-{pid}-" in reason for _, _, reason in lost)
    assert capfd.readouterr().out == ""


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_the_brake_ends_runs_at_their_next_step(ray: Any, store: Store) -> None:
    spec, stop_signal = entered(store, replicates=200), StopSignal()
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=1, stop_signal=stop_signal))
    await until(store, "running")
    stop_signal.pull()
    ended = await working
    counts = study_counts(store, "quiet")
    assert (counts.of("running"), counts.of("completed"), counts.of("failed")) == (0, ended, 0)
    assert ended < counts.total


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_when_cancelled_no_worker_is_left(ray: Any, store: Store) -> None:
    spec = entered(store, replicates=200)
    working = asyncio.create_task(work_on_ray(store.url, spec, workers=WORKERS))
    await until(store, "running")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    counts = study_counts(store, "quiet")
    assert (counts.of("running"), counts.of("failed")) == (0, 0)
    assert counts.of("planned") > 0


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_worker_refuses_is_said_with_its_machine(ray: Any, store: Store) -> None:
    spec = entered(store).model_copy(update={"sandbox": "nowhere"})
    with pytest.raises(UsageError, match=f"a worker on {socket.gethostname()}: "):
        await work_on_ray(store.url, spec, workers=WORKERS)
    assert study_counts(store, "quiet").of("planned") == 12


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_a_second_connection_is_refused(ray: Any, store: Store) -> None:
    with pytest.raises(UsageError, match="connected to Ray already"):
        await work_on_ray(store.url, entered(store), workers=WORKERS, address="127.0.0.1:6379")


def shown_on_the_page(**options: str) -> list[str]:
    """Return the arguments of the command for a cluster, as the page on clusters has it, with other values."""
    page = ROOT / "packages" / "labmates-ray" / "docs" / "studies" / "ray.md"
    lines = [line for block in blocks_of(page) if block.language in SHELL for line in block.text.splitlines()]
    [line] = [line for line in lines if "ray:auto" in line]
    name, *arguments = shlex.split(line)
    assert name == "labmates"
    for option, value in options.items():
        arguments[arguments.index(f"--{option}") + 1] = value
    return arguments


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_a_cluster_that_runs_is_used_and_goes_on(ray: Any, store: Store, tmp_path: Path) -> None:
    (tmp_path / "STUDY.yaml").write_text(STUDY.format(replicates=1))
    address = ray.get_runtime_context().gcs_address
    arguments = shown_on_the_page(executor=f"ray:{address}", workers="1", store=store.url)
    command = partial(subprocess.run, [sys.executable, "-m", "labmates.cli.main", *arguments], cwd=tmp_path)
    ended = await asyncio.to_thread(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "2 runs: 2 completed" in ended.stdout
    spec = stored_spec(store, "quiet")
    assert_all_ended_once(store, spec)
    assert ray.cluster_resources()["CPU"] == WORKERS


@pytest.fixture
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        pytest.param("127.0.0.1:1", "nothing answered within 3 s", marks=SLOW),
        ("nonsense", "HOST:PORT of the head node, or auto"),
        ("127.0.0.1:port", "HOST:PORT of the head node, or auto"),
        ("ray://127.0.0.1:10001", "on a node of the cluster"),
    ],
)
@pytest.mark.usefixtures("unconnected")
async def test_an_address_without_a_cluster_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 3.0)
    with pytest.raises(UsageError) as caught:
        await work_on_ray(store.url, entered(store), workers=1, address=address)
    assert f"'{address}'" in str(caught.value)
    assert said in str(caught.value)


def test_settings_of_older_runs_name_the_same_cluster() -> None:
    settings = RunSettings().model_dump(mode="json")
    assert RunSettings.model_validate({**settings, "ray_address": None}) == RunSettings()
    named = RunSettings.model_validate({**settings, "executor": "ray", "ray_address": "head:6379"})
    assert named == RunSettings(executor="ray:head:6379")


@SLOW
@pytest.mark.asyncio(loop_scope="module")
async def test_a_file_is_no_store_for_many_machines(ray: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates_ray.executor.is_one_machine", lambda _: False)
    with pytest.raises(UsageError, match="give a store in PostgreSQL"):
        await work_on_ray(store.url, entered(store), workers=1)


@pytest.mark.parametrize(
    ("nodes", "workers", "share"),
    [([8], 1, 8), ([8], 3, 2), ([3], 8, 1), ([8, 8, 8, 8], 4, 8), ([8, 8, 8, 8], 5, 4), ([0, 10, 2], 2, 5)],
)
def test_the_share_is_the_most_with_which_all_workers_fit(nodes: list[int], workers: int, share: int) -> None:
    assert share_of_sandboxes(nodes, workers) == share


def test_a_cluster_without_sandboxes_is_told_how_to_declare_them() -> None:
    with pytest.raises(UsageError, match=r"ray start … --resources='\{\"sandbox\": 8\}'"):
        share_of_sandboxes([0, 0], 1)
