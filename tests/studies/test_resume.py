from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import ChargeEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from tests.support.plays import busy
from tests.support.puppet import puppet
from tests.support.story import story

ROOT = Path(__file__).parents[2]
SETTINGS = RunSettings(sandbox="unsafe-local")
CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "prices": {"tool_call": "0.0001"}}

KILLED = """
    import os, sys
    import labmates.workflows.workshop
    from labmates.api import run
    from tests.support.plays import busy
    from tests.support.puppet import puppet

    labmates.workflows.workshop._TRIALS = 0  # as in the tests themselves
    calls = 0

    def play(heard):
        global calls
        calls += 1
        if calls == {dies_at}:
            os._exit(9)
        return busy(heard)

    with puppet(play) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, model=model, **{condition!r})
"""


async def whole(store: Store) -> tuple[RunRecord, dict[str, Any]]:
    with puppet(busy) as model:
        [run] = await arun("science", store=store.url, settings=SETTINGS, model=model, **CONDITION)
    return run, story(store, run.id)


@pytest.fixture(scope="module")
def expected_end(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRecord, dict[str, Any]]:
    """Return a run that nothing has stopped, and its story."""
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('whole')}/runs.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labmates.workflows.workshop._TRIALS", 0)
        found = asyncio.run(whole(store))
    store.close()
    return found


async def go_on(store: Store, run_id: str) -> RunRecord:
    with puppet(busy):
        [run] = await Session(store, SETTINGS).execute([stopped_run(store, run_id)])
    return run


@pytest.mark.parametrize("dies_at", [1, 2, 5, 9, 14, 21, 30, 38])
async def test_a_killed_run_goes_on_to_the_same_end_and_pays_no_step_twice(
    tmp_path: Path, dies_at: int, expected_end: tuple[RunRecord, dict[str, Any]]
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    expected_run, expected = expected_end
    code = textwrap.dedent(KILLED).format(dies_at=dies_at, store=store.url, condition=CONDITION)
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], cwd=ROOT, check=False, timeout=120)
    assert killed.returncode == 9
    [stopped] = [run for run in store.runs() if run.status == "running"]
    paid_before = {e.step: e.amount for e in store.events(stopped.id) if isinstance(e, ChargeEvent)}

    run = await go_on(store, stopped.id)

    assert run.status == "completed"
    assert story(store, run.id) == expected
    assert (run.budget, run.metrics, run.usage) == (expected_run.budget, expected_run.metrics, expected_run.usage)
    steps = [e.step for e in store.events(run.id) if isinstance(e, ChargeEvent)]
    assert len(steps) == len(set(steps))
    assert set(paid_before.items()) <= set(expected["charges"].items())
    store.close()


async def test_the_same_seed_gives_the_same_run_at_any_concurrency(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    stories = []
    for at_once in (1, 3):
        settings = SETTINGS.model_copy(update={"max_concurrent_runs": at_once})
        with puppet(busy) as model:
            runs = await arun("science", store=store.url, settings=settings, replicates=3, model=model, **CONDITION)
        stories.append([(story(store, run.id), run.metrics, run.budget, asdict(run.usage)) for run in runs])
    assert stories[0] == stories[1]
    assert stories[0][0][0]["calls"] != stories[0][1][0]["calls"]
    store.close()


async def test_a_run_that_has_ended_or_does_not_exist_is_not_resumed(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run, _ = await whole(store)
    with pytest.raises(UsageError, match=r"has ended \(completed\)"):
        stopped_run(store, run.id)
    with pytest.raises(UsageError, match="no run 'nope'"):
        stopped_run(store, "nope")
    store.close()


async def test_a_cancelled_run_is_recorded_as_interrupted_and_goes_on(
    tmp_path: Path, expected_end: tuple[RunRecord, dict[str, Any]]
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    _, expected = expected_end
    calls = 0

    def play(heard: Heard) -> Draft:
        nonlocal calls
        calls += 1
        if calls == 12:
            task.cancel()
        return busy(heard)

    with puppet(play) as model:
        task = asyncio.create_task(arun("science", store=store.url, settings=SETTINGS, model=model, **CONDITION))
        with pytest.raises(asyncio.CancelledError):
            await task
    [stopped] = [run for run in store.runs() if run.status == "interrupted"]
    assert stopped.budget is not None
    run = await go_on(store, stopped.id)
    assert (run.status, run.error) == ("completed", None)
    assert story(store, run.id) == expected
    store.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_done_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    code = textwrap.dedent(
        """
        import time
        from labmates.cli.main import main
        from tests.support.plays import busy
        from tests.support.puppet import puppet

        calls = 0

        def play(heard):
            global calls
            calls += 1
            if calls == 10:
                print("here", flush=True)
                time.sleep(0.5)
            return busy(heard)

        with puppet(play) as model:
            main(["run", "science", "--task", "anomaly", "--model", model, "--sandbox", "unsafe-local"])
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LABMATES_STORE": url},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    store = Store(url)
    [run] = store.runs()
    assert run.status == "interrupted"
    assert f"labmates run science --resume {run.id}" in errors
    store.close()
