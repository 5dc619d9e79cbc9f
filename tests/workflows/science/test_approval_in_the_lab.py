from __future__ import annotations

import asyncio
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.organisation import Organisation
from labmates.api import arun
from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.events import ApprovalEvent, ArtifactEvent, Event, FailedReplyEvent, RequestEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.runs import new_runs, stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.people.approval import Question, approver_of
from labmates.workflows.people.live import ask_run, follow_run, socket_of
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.approving import LAB, REASON, improving, wants_better
from tests.support.children import run_child
from tests.support.puppet import puppet
from tests.support.story import story

CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "organisation": LAB}
SETTINGS = RunSettings(sandbox="unsafe-local")
KILLED = """
    import os
    from labmates.api import run
    from tests.support.approving import LAB, improving, wants_better
    from tests.support.puppet import puppet

    asked = 0

    def approve(question):
        global asked
        asked += 1
        if asked == {dies_at}:
            os._exit(9)
        return wants_better(question)

    with puppet(improving) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, approve=approve, model=model,
            task="anomaly", difficulty="easy", organisation=LAB)
"""


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"approve": ["plans"]}, "approve"),
        ({"approve": ["write", "write"]}, "is repeated"),
        ({"flow": ["survey", "authors"], "steps": ["work", "write"]}, "no phase of the flow has the step plan"),
        ({"graph": "code.py:make"}, "asks for approval in its code"),
    ],
)
def test_an_approval_that_can_not_be_asked_for_is_an_error(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Organisation.model_validate({**LAB, **changes})


def of_type(events: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def continued(store: Store, run: RunRecord) -> tuple[RunRecord, list[str]]:
    """The run as it ended, and the steps for which a person was asked."""
    asked: list[str] = []

    def approve(question: Question) -> bool | str:
        asked.append(question.step)
        return wants_better(question)

    with puppet(improving):
        [ended] = await Session(store, SETTINGS, approver=approver_of(approve)).execute([run])
    return ended, asked


async def test_what_a_person_refuses_is_improved_and_a_killed_run_asks_nothing_twice(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    with puppet(improving) as model:
        [whole] = await arun(
            "science", store=store.url, settings=SETTINGS, approve=wants_better, model=model, **CONDITION
        )
    events = store.events(whole.id)
    answers = of_type(events, ApprovalEvent)
    assert whole.status == "completed", whole.error
    assert Counter((event.what, event.agent, event.approved) for event in answers) == {
        ("write", "ana", False): 1,
        ("write", "ana", True): 1,
        ("plan", "ben", False): 1,
        ("plan", "ben", True): 1,
        ("request", "ben", False): 1,
        ("request", "ben", True): 1,
        ("write", "ben", False): 1,
        ("write", "ben", True): 1,
    }
    assert {event.reason for event in answers} == {"", REASON}
    assert [event.request for event in of_type(events, RequestEvent)] == ["a better count"]
    bodies = Bodies(store.bodies(whole.id))
    texts = [bodies.text(event.content) for event in of_type(events, ArtifactEvent)]
    assert ["better" in text for text in texts] == [True] * 2
    assert of_type(events, FailedReplyEvent) == []

    for dies_at in (4, 7):
        code = textwrap.dedent(KILLED).format(store=store.url, dies_at=dies_at)
        assert await asyncio.to_thread(run_child, code) == 9
        [stopped] = [run for run in store.runs() if run.status == "running"]
        resumed, asked = await continued(store, stopped_run(store, stopped.id))
        assert story(store, resumed.id) == story(store, whole.id)
        assert asked == [event.step for event in answers][dies_at - 1 :]

    replayed = await replay(store, store.run(whole.id))
    assert replayed.is_same, replayed.differences
    assert replayed.compared["approval"] == len(answers)

    with puppet(improving):
        branch = await fork(store, whole.id, at=events.index(answers[2]) + 1, changes={"repair_turns": 5})
    forked, asked = await continued(store, branch)
    assert forked.status == "completed"
    assert asked == [event.step for event in answers][3:]
    replayed = await replay(store, forked)
    assert replayed.is_same, replayed.differences
    store.close()


async def test_a_function_that_approves_excludes_settings_that_do(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    everything = SETTINGS.model_copy(update={"approve_all": True})
    with puppet(improving) as model:
        values = {"store": store.url, "model": model, **CONDITION}
        with pytest.raises(UsageError, match="approve and approve_all exclude each other"):
            await arun("science", settings=everything, approve=wants_better, **values)
    assert not list(store.runs())
    store.close()


async def test_what_stays_refused_is_not_carried_out(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    values = {**CONDITION, "repair_turns": 1}
    with puppet(improving) as model:
        [run] = await arun(
            "science", store=store.url, settings=SETTINGS, approve=lambda _: False, model=model, **values
        )
    events = store.events(run.id)
    assert of_type(events, RequestEvent) == of_type(events, ArtifactEvent) == []
    assert Counter((event.what, event.agent) for event in of_type(events, ApprovalEvent)) == {
        ("write", "ana"): 2,
        ("plan", "ben"): 2,
        ("request", "ben"): 1,
        ("write", "ben"): 2,
    }
    assert run.invalid
    store.close()


async def test_answers_in_the_viewer_make_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    settings = SETTINGS.model_copy(update={"approve_in_viewer": True})

    def wait_for(socket: Path) -> None:
        while not socket.exists():
            time.sleep(0.05)

    async def answering(run: RunRecord) -> None:
        await asyncio.to_thread(wait_for, socket_of(run.id))
        async for message in follow_run(run.id, {"do": "follow"}):
            if question := message.get("question"):
                answer = wants_better(Question(**question))
                said = {"decision": "yes"} if answer is True else {"decision": "no", "reason": answer}
                await ask_run(run.id, {"do": "reply", "step": question["step"], **said})

    with puppet(improving) as model:
        condition = ScienceCondition.model_validate({**CONDITION, "model": model})
        [run] = new_runs(condition, seed=0, replicates=1, settings=settings)
        [ended], _ = await asyncio.gather(Session(store, settings).execute([run]), answering(run))
        [again] = new_runs(condition, seed=0, replicates=1, settings=SETTINGS)
        [other] = await Session(store, SETTINGS, approver=approver_of(wants_better)).execute([again])
    assert story(store, ended.id) == story(store, other.id)
    assert (await replay(store, ended)).is_same
    store.close()
