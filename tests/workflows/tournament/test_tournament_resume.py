from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import ChargeEvent, Event
from labmates.records.run import RunRecord
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from tests.support.puppet import puppet
from tests.support.tournaments import Arena, lively, reply
from tests.support.tournaments import arena as open_arena

ROOT = Path(__file__).parents[2]
CONDITION: dict[str, Any] = {"structure": "sa", "team_size": "2", "rounds": 6, "plan_every": 3}

KILLED = """
    import os
    from labmates.api import run
    from tests.support.puppet import puppet
    from tests.support.tournaments import lively, reply

    calls = 0

    def play(heard):
        global calls
        calls += 1
        if calls == {dies_at}:
            os._exit(9)
        return reply(lively)(heard)

    with puppet(play) as model:
        run("tournament", store={store!r}, model=model, **{condition!r})
"""


@pytest_asyncio.fixture
async def whole(tmp_path: Path) -> AsyncIterator[tuple[Arena, RunRecord]]:
    """Return a tournament that nothing has stopped."""
    (tmp_path / "whole").mkdir()
    with open_arena(tmp_path / "whole") as arena:
        yield arena, await arena.play(reply(lively), **CONDITION)


def story(events: list[Event]) -> Counter[str]:
    """Return what was recorded, whatever the time and the order of matches that go on at once."""
    left_out = {"at", "seconds", "messages", "reply"}
    return Counter(
        repr(sorted(event.model_dump(exclude=left_out).items())) for event in events if event.type != "error"
    )


async def gone_on(arena: Arena, run_id: str) -> RunRecord:
    with puppet(reply(lively)):
        [run] = await Session(arena.store, RunSettings()).execute([stopped_run(arena.store, run_id)])
    return run


def assert_same(arena: Arena, run: RunRecord, whole: tuple[Arena, RunRecord]) -> None:
    expected_arena, expected = whole
    assert run.status == "completed"
    assert arena.found(run).matches == expected_arena.found(expected).matches
    assert run.metrics == expected.metrics
    assert asdict(run.usage) == asdict(expected.usage)
    assert Counter(arena.prompts(run)) == Counter(expected_arena.prompts(expected))
    assert story(arena.events(run)) == story(expected_arena.events(expected))
    paid = Counter(event.step for event in arena.events(run) if isinstance(event, ChargeEvent))
    assert set(paid.values()) == {1}


async def test_a_tournament_that_failed_goes_on_to_the_same_end_and_pays_no_call_twice(
    tmp_path: Path, whole: tuple[Arena, RunRecord]
) -> None:
    for fails_at in (1, 9, 40, 90):
        calls = 0

        def play(heard: Heard, fails_at: int = fails_at) -> Draft:
            nonlocal calls
            calls += 1
            if calls >= fails_at:
                raise RuntimeError("the model is gone")
            return reply(lively)(heard)

        folder = tmp_path / str(fails_at)
        folder.mkdir()
        with open_arena(folder) as arena:
            failed = await arena.play(play, **CONDITION)
            assert failed.status == "failed"
            assert (
                sum(isinstance(event, ChargeEvent) for event in arena.events(failed)) >= fails_at - 4
            )  # others were under way
            assert_same(arena, await gone_on(arena, failed.id), whole)


@pytest.mark.parametrize(
    "dies_at", [30, pytest.param(75, marks=pytest.mark.slow("tests/workflows/tournament/test_tournament_resume.py"))]
)
async def test_a_killed_tournament_goes_on_to_the_same_end(
    tmp_path: Path, dies_at: int, whole: tuple[Arena, RunRecord]
) -> None:
    with open_arena(tmp_path) as arena:
        code = textwrap.dedent(KILLED).format(dies_at=dies_at, store=arena.store.url, condition=CONDITION)
        command = [sys.executable, "-c", code]
        killed = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, env=os.environ, check=False, timeout=120)
        assert killed.returncode == 9
        [stopped] = [run for run in arena.store.runs() if run.status == "running"]
        assert_same(arena, await gone_on(arena, stopped.id), whole)


async def test_a_tournament_is_told_again_from_its_record_alone(whole: tuple[Arena, RunRecord]) -> None:
    from labmates.studies.replay import replay

    arena, run = whole
    report = await replay(arena.store, run)
    assert report.is_same, report.differences
