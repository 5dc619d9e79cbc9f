from __future__ import annotations

import asyncio
import os
import signal
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
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
from tests.support.children import Child, run_child
from tests.support.plays import busy, busy_without_code
from tests.support.puppet import Play, puppet
from tests.support.story import story

SETTINGS = RunSettings(sandbox="unsafe-local")
CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "prices": {"tool_call": "0.0001"}}

KILLED = """
    import os, sys
    import labmates.sandboxes.pool
    from labmates.api import run
    from tests.support.plays import {play}
    from tests.support.puppet import puppet

    labmates.sandboxes.pool._TRIALS = 0  # as in the tests themselves
    calls = 0

    def play(heard):
        global calls
        calls += 1
        if calls == {dies_at}:
            os._exit(9)
        return {play}(heard)

    with puppet(play) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, model=model, **{condition!r})
"""


async def whole(store: Store, play: Play) -> tuple[RunRecord, dict[str, Any]]:
    with puppet(play) as model:
        [run] = await arun("science", store=store.url, settings=SETTINGS, model=model, **CONDITION)
    return run, story(store, run.id)


End = tuple[RunRecord, dict[str, Any]]


@pytest.fixture(scope="module")
def expected_end(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Play], End]:
    """Return what gives the run of a play that nothing has stopped, and its story."""

    @cache
    def end(play: Play) -> End:
        store = Store(f"sqlite:///{tmp_path_factory.mktemp('whole')}/runs.db")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labmates.sandboxes.pool._TRIALS", 0)
            found = asyncio.run(whole(store, play))
        store.close()
        return found

    return end


async def go_on(store: Store, run_id: str, play: Play) -> RunRecord:
    with puppet(play):
        [run] = await Session(store, SETTINGS).execute([stopped_run(store, run_id)])
    return run


FURTHER = pytest.mark.slow("tests/studies/test_resume.py")


@pytest.mark.parametrize(
    ("play", "dies_at"),
    [  # with code where it has run before, and is still to run
        *((busy_without_code, dies_at) for dies_at in (2, 38)),
        *((busy, dies_at) for dies_at in (14, 30)),
        *(pytest.param(busy_without_code, dies_at, marks=FURTHER) for dies_at in (1, 5)),
        *(pytest.param(busy, dies_at, marks=FURTHER) for dies_at in (9, 21)),
    ],
)
async def test_a_killed_run_goes_on_to_the_same_end_and_pays_no_step_twice(
    tmp_path: Path, play: Play, dies_at: int, expected_end: Callable[[Play], End]
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    expected_run, expected = await asyncio.to_thread(expected_end, play)
    code = textwrap.dedent(KILLED).format(play=play.__name__, dies_at=dies_at, store=store.url, condition=CONDITION)
    assert await asyncio.to_thread(run_child, code) == 9
    [stopped] = [run for run in store.runs() if run.status == "running"]
    paid_before = {e.step: e.amount for e in store.events(stopped.id) if isinstance(e, ChargeEvent)}

    run = await go_on(store, stopped.id, play)

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
        with puppet(busy_without_code) as model:  # with code it is held by the command line's tests
            runs = await arun("science", store=store.url, settings=settings, replicates=3, model=model, **CONDITION)
        stories.append([(story(store, run.id), run.metrics, run.budget, asdict(run.usage)) for run in runs])
    assert stories[0] == stories[1]
    assert stories[0][0][0]["calls"] != stories[0][1][0]["calls"]
    store.close()


async def test_a_run_that_has_ended_or_does_not_exist_is_not_resumed(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run, _ = await whole(store, busy_without_code)
    with pytest.raises(UsageError, match=r"has ended \(completed\)"):
        stopped_run(store, run.id)
    with pytest.raises(UsageError, match="no run 'nope'"):
        stopped_run(store, "nope")
    store.close()


async def test_a_cancelled_run_is_recorded_as_interrupted_and_goes_on(
    tmp_path: Path, expected_end: Callable[[Play], End]
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    _, expected = await asyncio.to_thread(expected_end, busy)
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
    run = await go_on(store, stopped.id, busy)
    assert (run.status, run.error) == ("completed", None)
    assert story(store, run.id) == expected
    store.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_done_and_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    sent = tmp_path / "sent"
    code = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from labmates.cli.main import main
        from tests.support.plays import busy
        from tests.support.puppet import puppet

        calls = 0

        def play(heard):
            global calls
            calls += 1
            if calls == 10:
                print("here", flush=True)
                while not Path({str(sent)!r}).exists():
                    time.sleep(0.01)
            return busy(heard)

        with puppet(play) as model:
            main(["run", "science", "--task", "anomaly", "--model", model, "--sandbox", "unsafe-local"])
        """
    )
    with Child(code, {**os.environ, "LABMATES_STORE": url}) as process:
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        sent.touch()
        _, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    store = Store(url)
    [run] = store.runs()
    assert run.status == "interrupted"
    assert f"labmates run science --resume {run.id}" in errors
    store.close()
