"""Human approval: a run's questions as interrupts of its graph, and a record of the answers.

Questions come from organisations that require approval and from interrupts in organisations as code. Once a question is
answered, LangGraph restarts the node that asked. No call is repeated: the node's earlier calls and the answer are
replayed from the record.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from inspect import isawaitable
from typing import Any, Final, Literal, cast

from langgraph.types import interrupt

from labmates.agents.prompts import render
from labmates.errors import UsageError
from labmates.records.events import ApprovalEvent
from labmates.records.recorder import Recorder
from labmates.workflows.calls.call import Speaker
from labmates.workflows.calls.stop_signal import Steps
from labmates.workflows.people.interrupts import Asked, is_review, question_text, reviewed, typed_value

What = Literal["plan", "request", "write", "review", "interrupt"]


@dataclass(frozen=True)
class Question:
    """A question to a person."""

    run: str  # id of the run
    step: str  # stable name of the waiting step
    # The proposer.
    team: str
    agent: str
    # What is proposed: to carry out a plan, to send a request to another team, or to write an artifact. ``review`` is
    # about calls of tools in an organisation as code, and ``interrupt`` any other question of it.
    what: What
    name: str  # the team that plans, the team that is asked, or the artifact; of an interrupt the node that asks
    text: str  # the proposal itself

    @property
    def heading(self) -> str:
        """Who asks, and for what."""
        return f"{self.agent} ({self.team}) {_ASKS.get(self.what, 'asks at')} {self.name}"

    @property
    def takes_anything(self) -> bool:
        """Whether the answer may be any JSON value."""
        return self.what == "interrupt"

    @property
    def how(self) -> str:
        """How to answer it, in a line."""
        return "Answer yes, no, any text, or JSON" if self.takes_anything else HOW_TO_ANSWER


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `automatic` if no person was asked. `value` is what an interrupt returns."""

    approved: bool
    reason: str = ""
    automatic: bool = False
    value: Any = None


_ASKS = {"plan": "plans for the team", "request": "asks the team", "write": "writes"}
HOW_TO_ANSWER = "Approve? Answer yes, or no and the reason, for instance: no, use the median"
NOBODY: Final = (
    "nobody can be asked here; start one run in a terminal (--replicates 1), answer in labmates view "
    "(--approve-in-viewer), or answer yes to all with --approve-all (approve_all: true in a study)"
)
"""The remedy for a question that reaches no person."""
_FIELDS: Final = {each.name for each in fields(Question)}
_ANSWER = re.compile(r"(y|yes|n|no)\b[\s:,;.-]*(.*)", re.IGNORECASE | re.DOTALL)

Approver = Callable[[Question], Awaitable[Answer]]
"""Answers the questions of runs."""
Ask = Callable[[Question], Any]
"""Asks a person: True is yes, False is no, and a text is no with that reason. An interrupt takes any JSON value."""


async def approve_all(question: Question) -> Answer:
    """Approve without asking a person."""
    return replace(answer_of(question, True), automatic=True)


def approver_of(ask: Ask) -> Approver:
    """An approver that asks a person; ordinary functions run in a thread."""

    async def answer(question: Question) -> Answer:
        response = await asyncio.to_thread(ask, question)
        return answer_of(question, await response if isawaitable(response) else response)

    return answer


def answer_of(question: Question, response: Any) -> Answer:
    """The answer of a person: True is yes, False is no, and a text is no with that reason.

    Raises `UsageError` if the question does not accept this answer.
    """
    if question.takes_anything:
        try:
            json.dumps(response, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the answer {response!r} is not JSON: {error}") from None
        return Answer(response is not False, value=response)
    if not isinstance(response, bool | str):
        raise UsageError(f"approve returned {response!r}; allowed: True for yes, False or the reason as a text for no")
    return Answer(approved=response is True, reason=response.strip() if isinstance(response, str) else "")


def read_reply(question: Question, typed: str) -> Answer | None:
    """The answer that a person typed; None if the question does not accept it."""
    said: Any = read_answer(typed)
    if question.takes_anything and said is not True:
        said = False if said == "" else typed_value(typed) if typed.strip() else None
    try:
        return None if said is None else answer_of(question, said)
    except UsageError:
        return None


def read_form(question: Question, form: Mapping[str, Any]) -> Answer:
    """The answer in a form: the ``decision`` ``yes``, ``no`` or ``text``, and the ``reason``, which is the text.

    Raises `UsageError` if the question does not accept this answer; the text is for the person.
    """
    decision, text = form.get("decision"), str(form.get("reason", ""))
    if decision in ("yes", "no"):
        plain_refusal = decision == "no" and not question.takes_anything
        answer = answer_of(question, text if plain_refusal else decision == "yes")
        return replace(answer, reason=text.strip() if decision == "no" else "")
    if decision != "text" or (read := read_reply(question, text)) is None:
        raise UsageError(f"{question.how}.")
    return read


def read_answer(typed: str) -> bool | str | None:
    """The answer in a typed text: True for yes, False or the reason for no; None if unclear.

    Examples
    --------
    >>> read_answer("no: use the median")
    'use the median'
    """
    match = _ANSWER.fullmatch(typed.strip())
    if match is None:
        return None
    if match[1].lower().startswith("y"):
        return None if match[2] else True
    return match[2]


@dataclass(eq=False)
class Approvals:
    """The questions of one run, asked one at a time; recorded answers are replayed.

    Parameters
    ----------
    points
        Kinds of proposals that need approval.
    approver
        Answers the questions; None if the caller of the graph answers its interrupts.
    past
        The record of a rerun, which replaces the person; None otherwise.
    repair_turns
        Maximum number of new proposals after refusals, per step of work.
    timeout
        Seconds after which an unanswered question counts as refused; None to wait indefinitely.
    team
        The team whose graph may interrupt.
    """

    points: Collection[str]
    approver: Approver | None
    recorder: Recorder
    past: Recorder | None
    steps: Steps
    repair_turns: int
    timeout: float | None = None
    team: str = ""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _interrupted: set[str] = field(default_factory=set)

    def cover(self, what: What) -> bool:
        """Whether this requires approval."""
        return what in self.points

    def refusal(self, what: What, step: str, speaker: Speaker, name: str, text: str) -> str:
        """The message to the agent about a refusal; empty if its proposal is approved, or needs no approval.

        Raises `GraphInterrupt` if the question has no answer yet; `NewStepError` if the record of a rerun lacks the
        answer.
        """
        if not self.cover(what):
            return ""
        is_answered = self.recorder.done("approval", step) is not None
        if not is_answered and self.is_closed(what, step, speaker.agent):
            return render("refused_for_good", what=what)
        if self.past is not None:
            self.recorder.once(self.past.recorded("approval", step))
        elif not is_answered or step in self._interrupted:
            # LangGraph counts the interrupts of a node: a rerun node must repeat the answered ones.
            self._interrupted.add(step)
            interrupt(asdict(Question(self.recorder.run_id, step, speaker.team, speaker.agent, what, name, text)))
        answer = cast(ApprovalEvent, self.recorder.recorded("approval", step))
        name = "unanswered" if answer.automatic else "refused"
        return "" if answer.approved else render(name, what=what, reason=answer.reason or "none was given")

    def is_closed(self, what: What, step: str, agent: str) -> bool:
        """Whether an agent's next proposal in the same step of work (``team/phase/agent/work``) would reach no person.

        That is so after too many refusals, and after a question that nobody answered: silence is no objection to mend.
        """
        same_step = "/".join(step.split("/")[:4]) + "/"
        refusals = [
            event.automatic
            for event in self.recorder.events
            if isinstance(event, ApprovalEvent)
            and (event.what, event.agent, event.approved) == (what, agent, False)
            and event.step.startswith(same_step)
        ]
        return any(refusals) or len(refusals) > self.repair_turns

    async def answer(self, asked: Asked) -> Any:
        """Obtain and record the answers to an interrupt, and return the value with which the graph resumes.

        Raises `StoppedError` if the run is stopped before the answer; `NewStepError` if the record being replayed has
        no answer; `UsageError` if no person can be asked, or the graph refuses an automatic answer.
        """
        if isinstance(asked.value, Mapping) and asked.value.keys() == _FIELDS:
            return (await self._answer(Question(**asked.value))).approved
        *graph, node = asked.task or ("its code",)
        agent = graph[-1] if graph else "graph"
        what: What = "review" if is_review(asked.value) else "interrupt"
        step = "/".join((self.team, "0", "interrupt", *asked.task, asked.number, "0"))
        text = "\n\n".join(filter(None, (asked.fault, question_text(asked.value))))
        event = await self._answer(Question(self.recorder.run_id, step, self.team, agent, what, node, text))
        if asked.fault and event.automatic:  # the same answer would be refused again, without end
            raise UsageError(f"{agent} ({self.team}) takes no automatic answer at {node}, so a person has to be asked")
        return reviewed(asked.value, event.approved, event.reason) if what == "review" else event.answer

    async def _answer(self, question: Question) -> ApprovalEvent:
        """The recorded answer to a question."""
        if (event := self.recorder.done("approval", question.step)) is not None:
            return cast(ApprovalEvent, event)
        if self.past is not None:
            recorded = cast(ApprovalEvent, self.past.recorded("approval", question.step))
            answer = Answer(recorded.approved, recorded.reason, recorded.automatic, recorded.answer)
        elif (approver := self.approver) is None:
            raise UsageError(f"{question.agent} ({question.team}) asks a person at {question.name}, but {NOBODY}")
        else:
            async with self._asking:
                answer = await self.steps.waiting(lambda: self._in_time(question, approver(question)))
        event = approval_event(question, answer)
        self.recorder.emit(event)
        await self.recorder.flush()
        return event

    async def _in_time(self, question: Question, asking: Awaitable[Answer]) -> Answer:
        try:
            return await asyncio.wait_for(asking, self.timeout)
        except TimeoutError:
            why = f"nobody answered within {self.timeout:g} s"
            refusal = answer_of(question, False if question.takes_anything else why)
            return replace(refusal, reason=why, automatic=True)


def approval_event(question: Question, answer: Answer) -> ApprovalEvent:
    """The event that records an answer."""
    return ApprovalEvent(
        step=question.step,
        team=question.team,
        agent=question.agent,
        what=question.what,
        approved=answer.approved,
        reason=answer.reason,
        automatic=answer.automatic,
        question=question.text if question.what in ("review", "interrupt") else "",
        answer=answer.value,
    )
