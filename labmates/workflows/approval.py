"""Approval by a person: the questions that a run asks before it goes on, and its record of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from inspect import isawaitable
from typing import Literal, cast

from labmates.agents.prompts import render
from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import Recorder
from labmates.workflows.calls import Speaker
from labmates.workflows.stop_signal import Steps

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
        return Answer(approved=response is True, reason=response.strip() if isinstance(response, str) else "")

    return answer


class Approvals:
    """The questions of one run. One is asked at a time, and none whose answer is in the record.

    Parameters
    ----------
    points
        What has to be approved.
    approver
        Gives the answers; needed where anything has to be approved.
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

    def cover(self, what: What) -> bool:
        """Whether this has to be approved."""
        return what in self._points

    async def refusal(self, what: What, step: str, speaker: Speaker, name: str, text: str) -> str:
        """The message about a refusal to the agent; empty if its proposal is approved, or needs no approval.

        Raises
        ------
        StoppedError
            If the run is to stop before the answer.
        NewStepError
            If the record that a rerun follows holds no answer.
        """
        if not self.cover(what):
            return ""
        event = cast(ApprovalEvent | None, self._recorder.done("approval", step))
        if event is None:
            if self._refusals(what, step, speaker.agent) > self._repair_turns:
                return render("refused_for_good", what=what)
            question = Question(self._recorder.run_id, step, speaker.team, speaker.agent, what, name, text)
            event = await self._answered(question)
            self._recorder.emit(event)
            await self._recorder.flush()
        return "" if event.approved else render("refused", what=what, reason=event.reason or "none was given")

    async def _answered(self, question: Question) -> ApprovalEvent:
        if self._past is not None:
            return cast(ApprovalEvent, self._past.recorded("approval", question.step))
        if (approver := self._approver) is None:
            raise UsageError(f"nobody can be asked to approve the {question.what} of {question.agent}")
        async with self._asking:
            answer = await self._steps.waiting(lambda: self._in_time(approver(question)))
        where = {"step": question.step, "team": question.team, "agent": question.agent}
        return ApprovalEvent(
            **where, what=question.what, approved=answer.approved, reason=answer.reason, automatic=answer.automatic
        )

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
