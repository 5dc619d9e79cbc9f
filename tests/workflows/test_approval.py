from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import NewStepError, Recorder
from labmates.workflows.calls.call import Speaker
from labmates.workflows.calls.stop_signal import Steps, StoppedError, StopSignal
from labmates.workflows.people.answered import invoke_answered
from labmates.workflows.people.approval import (
    Answer,
    Approvals,
    Approver,
    Question,
    approve_all,
    approver_of,
    read_answer,
)

BEN = Speaker("authors", "ben", "scripted:silent")
QUESTION = Question("run", "authors/0/ben/plan/0", "authors", "ben", "plan", "authors", "Look, then write.")


def approvals(
    approver: Approver | None, recorder: Recorder, steps: Steps | None = None, past: Recorder | None = None
) -> Approvals:
    return Approvals(["plan"], approver, recorder, past, steps or Steps(), 1)


class Told(TypedDict):
    """What the nodes of a graph were told of their proposals."""

    texts: Annotated[list[list[str]], operator.add]


async def told(asking: Approvals, *nodes: Sequence[str], beside: Callable[[], Awaitable[None]] | None = None) -> Any:
    """What nodes that propose plans one after the other are told; they run side by side, named by their steps."""
    graph = StateGraph(Told)

    def add(name: str, steps: Sequence[str]) -> None:
        async def node(state: Told) -> Told:
            return Told(texts=[[asking.refusal("plan", step, BEN, "authors", "text") for step in steps]])

        graph.add_node(name, node)

    for place, steps in enumerate(nodes):
        add(str(place), steps)
        graph.add_edge(START, str(place))
    if beside is not None:

        async def work(state: Told) -> Told:
            await beside()
            return Told(texts=[])

        graph.add_node("work", work)
        graph.add_edge(START, "work")
    return (await invoke_answered(graph.compile(), Told(texts=[]), {}, None, asking.answer))["texts"]


def steps(*numbers: int, phase: int = 0) -> list[str]:
    return [f"authors/{phase}/ben/plan/{number}" for number in numbers]


def test_a_rerun_takes_answers_from_its_record_and_asks_nobody() -> None:
    past, now = Recorder(None, None), Recorder(None, None)
    past.emit(ApprovalEvent(step=QUESTION.step, team="authors", agent="ben", what="plan", approved=False, reason="no"))
    rerun = approvals(approve_all, now, past=past)
    assert rerun.refusal("plan", QUESTION.step, BEN, "authors", "text")
    assert now.events == past.events
    with pytest.raises(NewStepError, match="authors/0/ben/plan/1"):
        rerun.refusal("plan", "authors/0/ben/plan/1", BEN, "authors", "text")


async def test_a_question_without_an_answer_in_time_counts_as_refused() -> None:
    async def nobody(question: Question) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError(question)

    recorder = Recorder(None, None)
    [[text, again]] = await told(Approvals(["plan"], nobody, recorder, None, Steps(), 1, timeout=0.01), steps(0, 1))
    assert text == "Nobody was there to approve this plan: nobody answered within 0.01 s. Go on without it."
    assert again == "No further plan is asked about in this step. Go on without another one."
    [event] = recorder.events
    assert isinstance(event, ApprovalEvent)
    assert (event.approved, event.automatic) == (False, True)


async def test_each_question_of_a_node_gets_its_own_answer_and_is_asked_once() -> None:
    recorder, asked = Recorder(None, None), list[str]()

    def ask(question: Question) -> str:
        asked.append(question.step)
        return f"not {question.step}"

    asking = Approvals(["plan"], approver_of(ask), recorder, None, Steps(), 9)
    recorder.emit(ApprovalEvent(step=steps(1)[0], agent="ben", what="plan", approved=True))  # of a process that died
    first, second = await told(asking, steps(0, 1, 2, 3), steps(4, 5))
    assert [text.partition("not ")[2].split()[0].rstrip(".") for text in (*first, *second) if text] == steps(
        0, 2, 3, 4, 5
    )
    assert first[1] == ""
    assert sorted(asked) == steps(0, 2, 3, 4, 5)
    assert [event.step for event in recorder.events[1:]] == asked


async def test_a_question_is_asked_while_the_nodes_beside_it_work() -> None:
    answered = asyncio.Event()

    async def ask(question: Question) -> bool:
        answered.set()
        return True

    async def wait() -> None:
        await answered.wait()

    async with asyncio.timeout(60):
        texts = await told(approvals(approver_of(ask), Recorder(None, None)), steps(0), beside=wait)
    assert texts == [[""]]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("yes\n", True),
        (" Y ", True),
        ("no", ""),
        ("n: use the median\n", "use the median"),
        ("No, it is too long", "it is too long"),
        ("yes but shorter", None),
        ("perhaps", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_an_answer_is_yes_or_no_with_a_reason_and_nothing_in_between(line: str, answer: bool | str | None) -> None:
    assert read_answer(line) == answer


@pytest.mark.parametrize(
    ("said", "answer"),
    [(True, Answer(True)), (False, Answer(False)), ("", Answer(False)), (" why ", Answer(False, "why"))],
)
async def test_a_function_or_a_coroutine_answers(said: bool | str, answer: Answer) -> None:
    async def later(question: Question) -> bool | str:
        return said

    assert [await approver_of(lambda _: said)(QUESTION), await approver_of(later)(QUESTION)] == [answer, answer]


async def test_an_answer_of_another_type_is_an_error_that_names_what_is_allowed() -> None:
    with pytest.raises(UsageError, match="True for yes, False or the reason"):
        await approver_of(lambda _: None)(QUESTION)


def test_nobody_is_asked_for_what_needs_no_approval_or_has_its_answer() -> None:
    recorder = Recorder(None, None)
    assert approvals(None, recorder).refusal("write", "authors/0/ben/write/0", BEN, "notes", "text") == ""
    recorder.emit(ApprovalEvent(step=QUESTION.step, agent="ben", what="plan", approved=False, reason="too long"))
    assert "too long" in approvals(None, recorder).refusal("plan", QUESTION.step, BEN, "authors", "text")


async def test_an_agent_that_is_refused_too_often_is_told_to_go_on() -> None:
    recorder = Recorder(None, None)
    refusing = approvals(approver_of(lambda _: "no use"), recorder)
    [texts] = await told(refusing, steps(0, 1, 2, 3))
    assert ["no use" in text for text in texts] == [True, True, False, False]
    assert "No further" in texts[-1]
    assert len(recorder.events) == 2
    [[text]] = await told(refusing, steps(0, phase=1))
    assert "no use" in text


async def test_automatic_answers_are_recorded_as_such() -> None:
    recorder = Recorder(None, None)
    assert await told(approvals(approve_all, recorder), steps(0)) == [[""]]
    [event] = recorder.events
    assert isinstance(event, ApprovalEvent)
    assert (event.approved, event.automatic) == (True, True)


async def test_a_run_that_is_to_stop_waits_for_no_answer_and_records_none() -> None:
    stop, recorder = StopSignal(), Recorder(None, None)

    async def stops(question: Question) -> bool:
        stop.pull()
        await asyncio.Event().wait()
        return True

    waiting = approvals(approver_of(stops), recorder, Steps(stop))
    for number in (0, 1):
        with pytest.raises(StoppedError):
            await told(waiting, steps(number))
    assert recorder.events == []
