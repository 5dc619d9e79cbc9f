"""What an interrupt asks, which answers it takes, and how a graph with interrupts is brought to its end."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel

from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import NewStepError, Recorder
from labmates.workflows.calls.stop_signal import Steps
from labmates.workflows.people.answered import invoke_answered
from labmates.workflows.people.approval import (
    Approvals,
    Approver,
    Question,
    What,
    answer_of,
    approve_all,
    approver_of,
    read_form,
    read_reply,
)
from labmates.workflows.people.interrupts import is_review, question_text, reviewed


def question(what: What = "interrupt") -> Question:
    return Question("run", "lab/0/interrupt/0/0", "lab", "graph", what, "node", "Text.")


ACTIONS = [
    {"name": "write", "args": {"text": "a"}, "description": "Requires approval\n\nTool: write\nArgs: {}"},
    {"name": "send", "args": {"to": ["ben"]}, "description": "Look at the address."},
]


def test_middleware_asks_about_all_calls_at_once_and_gets_a_decision_for_each() -> None:
    value = {"action_requests": ACTIONS, "review_configs": []}
    assert is_review(value)
    assert question_text(value) == 'calls write\ntext: a\n\nLook at the address.\n\ncalls send\nto: [\n  "ben"\n]'
    assert reviewed(value, True, "") == {"decisions": [{"type": "approve"}] * 2}
    assert reviewed(value, False, "no") == {"decisions": [{"type": "reject", "message": "no"}] * 2}
    single = {"type": "tool_approval", **ACTIONS[0]}
    assert (is_review(single), question_text(single)) == (True, "calls write\ntext: a")
    assert reviewed(single, False, "") == {"type": "reject"}
    assert not is_review("Why?")


class Odd:
    """A value that JSON does not know."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Why?", "Why?"),
        ({"a": [1, "ä"]}, '{\n  "a": [\n    1,\n    "ä"\n  ]\n}'),
        ({"a": Odd()}, '{\n  "a": "<tests.workflows.test_interrupts.Odd object>"\n}'),
        ({(1, 2): Odd()}, "{(1, 2): <tests.workflows.test_interrupts.Odd object>}"),
        (None, "null"),
    ],
)
def test_any_value_is_shown_as_the_same_text_in_each_process(value: Any, text: str) -> None:
    assert question_text(value) == text


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("yes", True),
        ("no", False),
        (" No. ", False),
        ("no, use the median", "no, use the median"),
        ("blue", "blue"),
        ('{"a": [1]}', {"a": [1]}),
        ("17", 17),
        ("NaN", None),
        ("  ", None),
    ],
)
def test_what_a_person_types_is_a_value_that_the_interrupt_takes_or_no_answer(typed: str, value: Any) -> None:
    answer = read_reply(question(), typed)
    assert (None if answer is None else answer.value) == value


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("yes", (True, "")),
        ("no", (False, "")),
        ("no: too long", (False, "too long")),
        ("blue", None),
    ],
)
def test_a_review_takes_yes_or_no_and_a_reason(typed: str, answer: tuple[bool, str] | None) -> None:
    read = read_reply(question("review"), typed)
    assert (None if read is None else (read.approved, read.reason)) == answer


def test_a_form_sends_yes_no_with_a_reason_or_its_text() -> None:
    no = read_form(question("review"), {"decision": "no", "reason": " too long"})
    assert (no.approved, no.reason, no.value) == (False, "too long", None)
    plain = read_form(question(), {"decision": "no", "reason": "too long"})
    assert (plain.approved, plain.reason, plain.value) == (False, "too long", False)
    text = read_form(question(), {"decision": "text", "reason": "17"})
    assert (text.approved, text.value) == (True, 17)
    for refused in ({"decision": "text", "reason": "17"}, {"decision": "perhaps"}, {}):
        with pytest.raises(UsageError, match="Answer yes, or no"):
            read_form(question("review"), refused)


@pytest.mark.parametrize(("what", "response"), [("interrupt", object()), ("review", 3)])
def test_an_answer_that_an_interrupt_does_not_take_is_told(what: What, response: Any) -> None:
    with pytest.raises(UsageError, match=r"is not JSON|approve returned 3"):
        answer_of(question(what), response)


class Said(TypedDict):
    """Answers that nodes got."""

    said: Annotated[list[Any], lambda a, b: a + b]


def graph(*values: Any, schema: Any = None, beside: int = 1, checkpointer: Any = None) -> Any:
    """A graph within a graph: nodes side by side that ask these one after the other."""

    async def ask(state: Any) -> Said:
        return Said(said=[[interrupt(value, response_schema=schema) for value in values]])

    inner = StateGraph(Said)
    inner.add_node("ask", ask)
    inner.add_conditional_edges(START, lambda state: [Send("ask", state)] * beside)
    outer = StateGraph(Said)
    outer.add_node("lab", inner.compile(checkpointer=checkpointer))
    outer.add_edge(START, "lab")
    return outer.compile()


async def said(graph: Any, approver: Approver | None, recorder: Recorder, **options: Any) -> Any:
    approvals = Approvals([], approver, recorder, options.pop("past", None), Steps(), 1, **options, team="team")
    return (await invoke_answered(graph, Said(said=[]), {}, None, approvals.answer))["said"]


async def test_a_graph_that_takes_no_automatic_answer_ends_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"\(team\) takes no automatic answer at ask"):
        await said(graph("How many each?", schema=list[int]), approve_all, Recorder(None, None))


async def test_each_interrupt_has_a_name_that_does_not_change_and_its_own_answer() -> None:
    recorder = Recorder(None, None)
    answers = await said(graph("a", "b", beside=3), approver_of(lambda asked: asked.step), recorder)
    steps = [step for steps_of_node in answers for step in steps_of_node]
    assert len(set(steps)) == 6
    assert all(step.startswith("team/0/interrupt/ask/") for step in steps)
    assert sorted(event.step for event in recorder.events) == sorted(steps)
    again = Recorder(None, None, events=recorder.events)
    assert await said(graph("a", "b", beside=3), None, again) == answers
    rerun = Recorder(None, None)
    assert await said(graph("a", "b", beside=3), None, rerun, past=recorder) == answers
    assert {event.step: event for event in rerun.events}.keys() == set(steps)
    with pytest.raises(NewStepError, match="interrupt/ask/"):
        await said(graph("a", "b", "c", beside=1), None, Recorder(None, None), past=recorder)


class Age(BaseModel):
    """An answer with a schema."""

    years: int


async def test_an_answer_that_breaks_the_schema_is_asked_for_again_and_the_record_repeats_that() -> None:
    recorder, texts = Recorder(None, None), list[str]()

    def ask(asked: Question) -> Any:
        texts.append(asked.text)
        return {"years": "many"} if len(texts) == 1 else {"years": 17}

    answers = await said(graph("Your age?", schema=Age), approver_of(ask), recorder)
    assert answers == [[Age(years=17)]]
    assert texts[0] == "Your age?"
    assert texts[1].startswith("Not a valid answer. years: Input should be a valid integer")
    assert texts[1].endswith("\n\nYour age?")
    assert await said(graph("Your age?", schema=Age), None, Recorder(None, None, events=recorder.events)) == answers


async def test_a_refused_review_gives_its_reason_and_the_record_repeats_it() -> None:
    value, recorder = {"action_requests": ACTIONS, "review_configs": []}, Recorder(None, None)
    no = {"decisions": [{"type": "reject", "message": "use the median"}] * 2}
    assert await said(graph(value), approver_of(lambda _: "use the median"), recorder) == [[no]]
    [event] = recorder.events
    assert isinstance(event, ApprovalEvent)
    assert (event.what, event.approved, event.reason) == ("review", False, "use the median")
    assert event.question.startswith("calls write")
    assert await said(graph(value), None, Recorder(None, None), past=recorder) == [[no]]
    assert await said(graph(value), approve_all, Recorder(None, None)) == [[{"decisions": [{"type": "approve"}] * 2}]]


async def test_where_nobody_can_be_asked_the_error_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"graph \(team\) asks a person at ask, but nobody .*--approve-all"):
        await said(graph("Why?"), None, Recorder(None, None))


async def test_a_graph_without_a_checkpointer_is_told_and_not_asked_for_without_end() -> None:
    with pytest.raises(UsageError, match=r"node ask did not resume after its interrupt.*checkpointer=False"):
        await said(graph("Why?", checkpointer=False), approve_all, Recorder(None, None))


async def test_an_automatic_yes_and_a_timeout_are_recorded_as_such() -> None:
    async def nobody(asked: Question) -> Any:
        await asyncio.Event().wait()

    recorder = Recorder(None, None)
    assert await said(graph("Why?"), approve_all, recorder) == [[True]]
    late = Recorder(None, None)
    assert await said(graph("Why?"), nobody, late, timeout=0.01) == [[False]]
    [yes], [no] = recorder.events, late.events
    assert isinstance(yes, ApprovalEvent)
    assert isinstance(no, ApprovalEvent)
    assert (yes.approved, yes.automatic, yes.question, yes.answer) == (True, True, "Why?", True)
    assert (no.approved, no.automatic, no.reason) == (False, True, "nobody answered within 0.01 s")
