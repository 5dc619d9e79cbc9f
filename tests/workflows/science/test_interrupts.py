"""Interrupts of organisations as code: asked of a person, recorded, and never a reason to repeat a call."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.records.events import ApprovalEvent, ChargeEvent, LLMCallEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.people.approval import Question, approver_of
from tests.support.children import run_child
from tests.support.interrupting import CODE, answering, working
from tests.support.puppet import puppet
from tests.support.story import story

SETTINGS = RunSettings(sandbox="unsafe-local")
CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "prices": {"tool_call": "0.001"}}
KILLED = """
    import os
    from labmates.api import run
    from tests.support.interrupting import answering, working
    from tests.support.puppet import puppet

    asked = 0

    def approve(question):
        global asked
        asked += 1
        if asked == {dies_at}:
            os._exit(9)
        return answering(question)

    with puppet(working) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, approve=approve, model=model,
            **{condition!r})
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "asking.py").write_text(CODE)
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        yield store


def condition(folder: Path, function: str, **values: Any) -> dict[str, Any]:
    return {**CONDITION, "organisation": f"{folder}/asking.py:{function}", **values}


def answers(store: Store, run: RunRecord) -> list[ApprovalEvent]:
    return [event for event in store.events(run.id) if isinstance(event, ApprovalEvent)]


async def play(store: Store, approve: Callable[[Question], Any] | None, **values: Any) -> RunRecord:
    with puppet(working) as model:
        [run] = await arun("science", store=store.url, settings=SETTINGS, approve=approve, model=model, **values)
    return store.run(run.id)


async def continued(store: Store, run: RunRecord) -> tuple[RunRecord, list[str]]:
    """The run as it ended, and the steps for which a person was asked."""
    asked: list[str] = []

    def approve(question: Question) -> Any:
        asked.append(question.step)
        return answering(question)

    with puppet(working):
        [ended] = await Session(store, SETTINGS, approver=approver_of(approve)).execute([run])
    return ended, asked


FURTHER = pytest.mark.slow("tests/workflows/science/test_interrupts.py")


@pytest.mark.parametrize(
    ("function", "asks", "calls", "tools"),
    [
        pytest.param("reviewed", 2, 4, 2, marks=FURTHER),
        pytest.param("each", 2, 4, 2, marks=FURTHER),
        ("checkpointed", 2, 4, 2),
        ("parallel", 7, 7, 3),
        ("function", 2, 3, 2),
    ],
)
async def test_an_interrupt_is_answered_once_and_no_call_is_repeated(
    store: Store, tmp_path: Path, function: str, asks: int, calls: int, tools: int
) -> None:
    values = condition(tmp_path, function)
    whole = await play(store, answering, **values)
    assert (whole.status, whole.error, whole.invalid) == ("completed", None, None)
    events = store.events(whole.id)
    of = {kind: [e for e in events if isinstance(e, kind)] for kind in (LLMCallEvent, ToolCallEvent, ChargeEvent)}
    asked = answers(store, whole)
    assert [len(asked), *(len(of[kind]) for kind in (LLMCallEvent, ToolCallEvent))] == [asks, calls, tools]
    assert len({event.step for event in of[ChargeEvent]}) == len(of[ChargeEvent]) == calls + tools
    assert len({event.step for event in asked}) == asks
    assert {event.what for event in asked} <= {"interrupt", "review"}
    told = story(store, whole.id)

    dies_at = asks // 2 + 1
    code = textwrap.dedent(KILLED).format(store=store.url, dies_at=dies_at, condition=values)
    assert await asyncio.to_thread(run_child, code) == 9
    [stopped] = [run for run in store.runs() if run.status == "running"]
    resumed, again = await continued(store, stopped_run(store, stopped.id))
    assert story(store, resumed.id) == told
    assert len(again) == asks - dies_at + 1
    assert (resumed.usage, resumed.budget) == (whole.usage, whole.budget)

    replayed = await replay(store, whole)
    assert replayed.is_same, replayed.differences
    assert replayed.compared["approval"] == asks

    branch = await fork(store, whole.id, at=events.index(asked[0]) + 1, changes={"temperature": 0.5})
    forked, again = await continued(store, branch)
    assert story(store, forked.id) == told
    assert len(again) == asks - 1
