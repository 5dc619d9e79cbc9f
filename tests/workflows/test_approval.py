from __future__ import annotations

import asyncio

import pytest

from labmates.cli.approval import read_answer
from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import NewStepError, Recorder
from labmates.workflows.approval import Answer, Approvals, Approver, Question, approve_all, approver_of
from labmates.workflows.calls import Speaker
from labmates.workflows.stop_signal import Steps, StoppedError, StopSignal

BEN = Speaker("authors", "ben", "scripted:silent")
QUESTION = Question("run", "authors/0/ben/plan/0", "authors", "ben", "plan", "authors", "Look, then write.")


def approvals(
    approver: Approver | None, recorder: Recorder, steps: Steps | None = None, past: Recorder | None = None
) -> Approvals:
    return Approvals(["plan"], approver, recorder, past, steps or Steps(), 1)


async def test_a_rerun_takes_answers_from_its_record_and_asks_nobody() -> None:
    past, now = Recorder(None, None), Recorder(None, None)
    past.emit(ApprovalEvent(step=QUESTION.step, team="authors", agent="ben", what="plan", approved=False, reason="no"))
    rerun = approvals(approve_all, now, past=past)
    assert await rerun.refusal("plan", QUESTION.step, BEN, "authors", "text")
    assert now.events == past.events
    with pytest.raises(NewStepError, match="authors/0/ben/plan/1"):
        await rerun.refusal("plan", "authors/0/ben/plan/1", BEN, "authors", "text")


async def test_a_question_without_an_answer_in_time_counts_as_refused() -> None:
    async def nobody(question: Question) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError(question)

    recorder = Recorder(None, None)
    waiting = Approvals(["plan"], nobody, recorder, None, Steps(), 1, timeout=0.01)
    assert "nobody answered within 0.01 s" in await waiting.refusal("plan", QUESTION.step, BEN, "authors", "text")
    [event] = recorder.events
    assert isinstance(event, ApprovalEvent)
    assert (event.approved, event.automatic) == (False, True)


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
        await approver_of(lambda _: None)(QUESTION)  # type: ignore[arg-type, return-value]


async def test_nobody_is_asked_for_what_needs_no_approval_or_has_its_answer() -> None:
    recorder = Recorder(None, None)
    assert await approvals(None, recorder).refusal("write", "authors/0/ben/write/0", BEN, "notes", "text") == ""
    recorder.emit(ApprovalEvent(step=QUESTION.step, agent="ben", what="plan", approved=False, reason="too long"))
    assert "too long" in await approvals(None, recorder).refusal("plan", QUESTION.step, BEN, "authors", "text")


async def test_an_agent_that_is_refused_too_often_is_told_to_go_on() -> None:
    recorder = Recorder(None, None)
    refusing = approvals(approver_of(lambda _: "no use"), recorder)
    steps = [f"authors/0/ben/plan/{number}" for number in range(4)]
    told = [await refusing.refusal("plan", step, BEN, "authors", "text") for step in steps]
    assert ["no use" in text for text in told] == [True, True, False, False]
    assert "too often" in told[-1]
    assert len(recorder.events) == 2
    assert "no use" in await refusing.refusal("plan", "authors/1/ben/plan/0", BEN, "authors", "text")


async def test_automatic_answers_are_recorded_as_such() -> None:
    recorder = Recorder(None, None)
    assert await approvals(approve_all, recorder).refusal("plan", QUESTION.step, BEN, "authors", "text") == ""
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
    for step in ("authors/0/ben/plan/0", "authors/0/ben/plan/1"):
        with pytest.raises(StoppedError):
            await waiting.refusal("plan", step, BEN, "authors", "text")
    assert recorder.events == []
