"""Approval by a person: questions of a run as interrupts of its graph, and its record of the answers.

A node that interrupts its graph runs again from its start once the answer is there. This repeats no call: the record
holds what the node did before, and the answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, cast

from langgraph.types import Command, interrupt

from labmates.agents.prompts import render
from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import Recorder
from labmates.workflows.calls import Speaker
from labmates.workflows.stop_signal import Steps

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph

What = Literal["plan", "request", "write"]


@dataclass(frozen=True)
class Question:
    """A question to a person.

    Attributes
    ----------
    run
        Id of the run.
    step
        Stable name of the step that waits for the answer.
    team, agent
        Who proposes it.
    what
        What is proposed: to carry out a plan, to send a request to another team, or to write an artifact.
    name
        The team that plans, the team that is asked, or the artifact.
    text
        The proposal itself.
    """

    run: str
    step: str
    team: str
    agent: str
    what: What
    name: str
    text: str


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `automatic` tells that nobody was asked."""

    approved: bool
    reason: str = ""
    automatic: bool = False


HOW_TO_ANSWER = "Approve? Answer yes, or no and the reason, for instance: no, use the median"
_ANSWER = re.compile(r"(y|yes|n|no)\b[\s:,;.-]*(.*)", re.IGNORECASE | re.DOTALL)

Approver = Callable[[Question], Awaitable[Answer]]
"""Answers the questions of runs."""
Ask = Callable[[Question], bool | str | Awaitable[bool | str]]
"""Asks a person: True is yes, False is no, and a text is no with that reason."""


async def approve_all(question: Question) -> Answer:
    """Answer yes without asking anybody."""
    del question
    return Answer(approved=True, automatic=True)


def approver_of(ask: Ask) -> Approver:
    """The approver that asks a person; an ordinary function is called in a thread."""

    async def answer(question: Question) -> Answer:
        response = await asyncio.to_thread(ask, question)
        if isawaitable(response):
            response = await response
        if not isinstance(response, bool | str):
            raise UsageError(
                f"approve returned {response!r}; allowed: True for yes, False or the reason as a text for no"
            )
        return answer_of(response)

    return answer


def answer_of(response: bool | str) -> Answer:
    """The answer of a person: True is yes, False is no, and a text is no with that reason."""
    return Answer(approved=response is True, reason=response.strip() if isinstance(response, str) else "")


def read_answer(typed: object) -> bool | str | None:
    """The answer in what a person typed: True for yes, False or the reason for no; None if it is neither.

    Examples
    --------
    >>> read_answer("no: use the median")
    'use the median'
    """
    if isinstance(typed, bool):
        return typed
    match = _ANSWER.fullmatch(typed.strip()) if isinstance(typed, str) else None
    if match is None:
        return None
    is_yes, more = match[1].lower().startswith("y"), match[2]
    if is_yes:
        return None if more else True
    return more


class Approvals:
    """The questions of one run. One is asked at a time, and none whose answer is in the record.

    Parameters
    ----------
    points
        What has to be approved.
    approver
        Gives the answers; None where whoever invokes the graph answers its interrupts.
    past
        The record that a rerun follows, which answers instead of a person; None for a run that asks.
    repair_turns
        An agent may propose so often again what was refused in one step of its work.
    timeout
        Seconds after which a question without an answer counts as refused; None to wait for ever.
    """

    def __init__(
        self,
        points: Collection[str],
        approver: Approver | None,
        recorder: Recorder,
        past: Recorder | None,
        steps: Steps,
        repair_turns: int,
        timeout: float | None = None,
    ) -> None:
        self._points = points
        self._approver = approver
        self._recorder = recorder
        self._past = past
        self._steps = steps
        self._repair_turns = repair_turns
        self._timeout = timeout
        self._asking = asyncio.Lock()
        self._interrupted: set[str] = set()

    def cover(self, what: What) -> bool:
        """Whether this requires approval."""
        return what in self._points

    def refusal(self, what: What, step: str, speaker: Speaker, name: str, text: str) -> str:
        """The message about a refusal to the agent; empty if its proposal is approved, or needs no approval.

        Raises
        ------
        GraphInterrupt
            If the question has no answer yet.
        NewStepError
            If the record that a rerun follows holds no answer.
        """
        if not self.cover(what):
            return ""
        is_answered = self._recorder.done("approval", step) is not None
        if not is_answered and self._refusals(what, step, speaker.agent) > self._repair_turns:
            return render("refused_for_good", what=what)
        if self._past is not None:
            self._recorder.once(self._past.recorded("approval", step))
        elif not is_answered or step in self._interrupted:
            # LangGraph counts the interrupts of a node: one that runs again has to repeat those with an answer.
            self._interrupted.add(step)
            interrupt(asdict(Question(self._recorder.run_id, step, speaker.team, speaker.agent, what, name, text)))
        answer = cast(ApprovalEvent, self._recorder.recorded("approval", step))
        return "" if answer.approved else render("refused", what=what, reason=answer.reason or "none was given")

    async def answer(self, asked: Mapping[str, Any]) -> bool:
        """Have a question answered, and record the answer.

        Parameters
        ----------
        asked
            The value of an interrupt.

        Raises
        ------
        StoppedError
            If the run is to stop before the answer.
        """
        question = Question(**asked)
        if (approver := self._approver) is None:
            raise UsageError(f"there is no way to ask for approval of the {question.what} of {question.agent}")
        async with self._asking:
            answer = await self._steps.waiting(lambda: self._in_time(approver(question)))
        self._recorder.emit(approval_event(question, answer))
        await self._recorder.flush()
        return answer.approved

    async def _in_time(self, asking: Awaitable[Answer]) -> Answer:
        try:
            return await asyncio.wait_for(asking, self._timeout)
        except TimeoutError:
            return Answer(approved=False, reason=f"nobody answered within {self._timeout:g} s", automatic=True)

    def _refusals(self, what: What, step: str, agent: str) -> int:
        """The number of refusals of the agent in the same step of work, ``team/phase/agent/work``."""
        same_step = "/".join(step.split("/")[:4]) + "/"
        return sum(
            isinstance(event, ApprovalEvent)
            and (event.what, event.agent, event.approved) == (what, agent, False)
            and event.step.startswith(same_step)
            for event in self._recorder.events
        )


def approval_event(question: Question, answer: Answer) -> ApprovalEvent:
    """The event that records an answer."""
    where = {"step": question.step, "team": question.team, "agent": question.agent}
    return ApprovalEvent(**where, what=question.what, **asdict(answer))


async def invoke_answered(
    graph: CompiledStateGraph[Any, Any],
    state: Any,
    config: RunnableConfig,
    context: Any,
    answer: Callable[[Mapping[str, Any]], Awaitable[bool]],
) -> Any:
    """The last state of a graph whose interrupts are answered.

    A question is asked at once, while the nodes beside the interrupted one work on; all of them go on together.

    Parameters
    ----------
    answer
        Answers the value of an interrupt.
    """
    from langgraph.checkpoint.memory import InMemorySaver

    graph = graph.copy({"checkpointer": InMemorySaver()})  # A process that ends loses nothing: the run has its record.
    config = {**config, "configurable": {"thread_id": "run"}}
    order: Any = state
    while True:
        asked: dict[str, asyncio.Future[bool]] = {}
        parts: AsyncIterator[Any] = graph.astream(
            order, config, context=context, stream_mode=["updates", "values"], subgraphs=True
        )
        try:
            async for namespace, mode, part in parts:
                if mode == "updates":
                    for question in part.get("__interrupt__", ()):
                        if question.id not in asked:
                            asked[question.id] = asyncio.ensure_future(answer(question.value))
                elif not namespace:
                    state = part
            if not asked:
                return state
            order = Command(resume={name: await task for name, task in asked.items()})
        finally:
            for task in asked.values():
                task.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)
        config.pop("run_id", None)  # Each invocation is a separate trace.
