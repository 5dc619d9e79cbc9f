"""An external agent in one step of the lab.

The agent runs its own loop. Each of its tool calls becomes the reply that the lab waits for, so that the lab pays,
carries out and records it like any other; the lab's next call brings the answer. The agent's final text is its last
reply. Its model calls go to the seat's model while the lab waits, and are paid from the same purse.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Unpack

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.errors import GraphInterrupt

from labmates.agents.steps import kinds_by_label, label_of
from labmates.agents.tools import ToolError
from labmates.agents.transcript import message_to_data, said_in, text_of
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.tokens import ATTACHED
from labmates.errors import LabmatesError
from labmates.models.attached import without
from labmates.models.errors import ContextOverflowError, EndpointError
from labmates.models.orders import order_of, with_orders
from labmates.models.reply import Reply, ToolCall
from labmates.records.events import LLMCallEvent
from labmates.workflows.calls.call import (
    UNPAID,
    Call,
    CallOptions,
    Speaker,
    inner_step,
    outer_step,
    outside_reply,
    recorded_reply,
)
from labmates.workflows.calls.caller import Caller
from labmates_doors.memory import Memory
from labmates_doors.protocols.base import RefusedRequestError

_log = logging.getLogger("labmates.seats")

MOST_WAITING = 16
"""Most waiting tool calls, and most waiting model calls; more are refused."""
MOST_MODEL_CALLS = 200
"""Most model calls in a step: far more than a reply of a model seat takes, and an end for a loop without one."""
MOST_TEXT_CHARS = 60_000
CLOSING = "mark_complete"
LAST_SECONDS = 5
"""Time for an agent to end by itself after it has marked its step complete."""
BUDGET = "budget"
"""The tool that shows the seat's view of the pool; free and not recorded."""
_OVER = "your step is over; the lab answers no further call"
_INVALID = (400, 422)
"""HTTP statuses of invalid requests, which are the agent's fault, not the run's."""


class SeatError(LabmatesError):
    """An external agent ended without a usable answer."""


Agent = Callable[["SeatSession"], Coroutine[Any, Any, str]]
"""Runs an agent in a session; returns its last text."""


@dataclass(frozen=True)
class SeatTerms:
    """The terms of a seat, common to all its steps.

    Attributes
    ----------
    speaker
        The seat, with the model for the agent's calls.
    seconds
        Time limit of one reply.
    budget
        The seat's view of the budget during a call.
    """

    agent: Agent
    speaker: Speaker
    seconds: float
    budget: Callable[[Call], str]


@dataclass
class _Asked:
    """A tool call that waits for its answer."""

    name: str
    arguments: dict[str, Any]
    answer: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def reply(self, text: str) -> None:
        if not self.answer.done():
            self.answer.set_result(text)


class SeatSession:
    """One step of an external agent.

    Parameters
    ----------
    place
        Prefix of the steps of its calls.
    call
        The first call of the lab.

    Attributes
    ----------
    key
        The agent's key for its tools and its model, valid for this step.
    opening
        The system prompt and the agent's order.
    tools
        The tools of its step, as OpenAI schemas.
    step
        What the step is, for instance ``work`` or ``plan``.
    """

    def __init__(self, place: str, call: Call, caller: Caller, terms: SeatTerms) -> None:
        self.place, self.key = place, f"lm-{secrets.token_urlsafe(24)}"
        self.step = label_of(f"{place}/0")
        self.opening, self._past = _opening(call.messages)
        self.tools = call.offered
        self._caller, self._terms = caller, terms
        self._call: Call | None = None
        self._newest = call
        self._turn = asyncio.Event()
        self._asked: asyncio.Queue[_Asked] = asyncio.Queue()
        self._waiting: list[_Asked] = []
        self._replied: list[_Asked] = []
        self._is_broke = False
        self._models: set[asyncio.Task[Reply]] = set()
        self._memory = Memory()
        self._recorded = _recorded_models(caller, place)
        self._made_models = Counter(outer_step(event.step) for event in self._recorded)
        self._notes: list[str] = []
        self._cut = ""
        self._fault: LabmatesError | None = None
        self._is_over = False
        self._running = asyncio.create_task(terms.agent(self))

    @property
    def speaker(self) -> Speaker:
        """The seat, with the agent's model."""
        return self._terms.speaker

    @property
    def order(self) -> str:
        """The order of the agent, as one text."""
        return "\n\n".join(text_of(message) for message in self.opening)

    @property
    def has_ended(self) -> bool:
        """Whether the agent has sent its last reply."""
        return self._is_over

    def note(self, text: str) -> None:
        """Record an agent's action outside its work; each text once."""
        if text not in self._notes and len(self._notes) < MOST_WAITING:
            self._notes.append(text)

    def clean(self, text: str) -> str:
        """A text of the agent without the session's key."""
        return text.replace(self.key, "[key]")

    def budget(self) -> str:
        """The agent's view of the pool."""
        return self._terms.budget(self._newest) or "You may not read the budget."

    async def use(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The lab's answer to a tool call.

        Raises
        ------
        ToolError
            If too many calls are waiting.
        """
        if name == BUDGET:
            return self.budget()
        if self._is_over:
            raise ToolError(_OVER)
        if len(self._waiting) >= MOST_WAITING:
            self.note(f"the agent called more than {MOST_WAITING} tools at once; the rest were refused")
            raise ToolError(f"{MOST_WAITING} calls wait already; wait for their answers")
        asked = _Asked(name, json.loads(self.clean(json.dumps(dict(arguments)))))
        self._waiting.append(asked)
        self._asked.put_nowait(asked)
        return await asked.answer

    async def ask(self, messages: Sequence[BaseMessage], **options: Unpack[CallOptions]) -> Reply:
        """A reply of the seat's model, paid from the purse of the lab's waiting call.

        Raises
        ------
        RefusedRequestError
            If the pool can't pay the call, too many calls are waiting, the step is over, or the request is invalid.
        """
        if len(self._models) >= MOST_WAITING:
            self.note(f"the agent made more than {MOST_WAITING} model calls at once; the rest were refused")
            raise RefusedRequestError(f"{MOST_WAITING} model calls are under way already; wait for their replies", 429)
        if self._made_models.total() >= MOST_MODEL_CALLS:
            self.note(f"the agent made {MOST_MODEL_CALLS} model calls in one step; the rest were refused")
            raise RefusedRequestError(f"your step has had {MOST_MODEL_CALLS} model calls; end it")
        await self._turn.wait()
        call = self._call
        if call is None:
            raise RefusedRequestError(_OVER, 409)
        most = self._caller.whole_output(self.speaker)
        options["limit"] = min(options.get("limit") or most, most)
        # A provider bills the call even if the program leaves.
        task = asyncio.create_task(self._paid(call, with_orders(list(messages), self.opening), options))
        self._models.add(task)
        task.add_done_callback(self._models.discard)
        try:
            return await asyncio.shield(task)
        except InsufficientFundsError as error:
            self._is_broke = True
            raise RefusedRequestError(f"the budget of this seat can't pay another model call: {error}", 402) from error
        except ContextOverflowError as error:
            raise RefusedRequestError("context_length_exceeded: the transcript is too long") from error
        except LabmatesError as error:
            if isinstance(error, EndpointError) and error.status in _INVALID:
                self.note("the model's server refused a request of the agent as invalid")
                raise RefusedRequestError(f"the model's server refused the request: {error}") from error
            self._fault = error
            raise RefusedRequestError("the model can't be reached", 502) from error

    async def reply(self, call: Call) -> Reply:
        """The agent's next reply: the calls of tools that it made at once, or its last text.

        Raises
        ------
        LabmatesError
            If the agent's model is unreachable, or the run is stopped.
        """
        self._answer(call.messages)
        self._call = self._newest = call
        self._turn.set()
        try:
            async with asyncio.timeout(self._terms.seconds):
                text, asked = await self._next()
        except TimeoutError:
            return await self._failed(f"the agent gave no reply within {self._terms.seconds:g} s, and was ended")
        except SeatError as error:
            return await self._failed(self.clean(str(error)))
        finally:
            self._turn.clear()
            self._call = None
        if asked:
            self._replied = asked
            return self._made("", *asked)
        await self.close()
        if not text:
            return await self._failed(f"the agent ended without a text{self._cut}")
        kind = kinds_by_label().get(self.step)
        if kind is not None and kind.does == "work":
            return self._made("", _Asked(CLOSING, {"summary": text}))
        return self._made(text)

    async def close(self) -> None:
        """End the agent, after its open model calls, which are paid."""
        self._is_over = True
        is_closing = any(asked.name == CLOSING for asked in self._replied)
        for asked in self._replied:
            asked.reply("It is kept; your step is over.")
        for asked in self._waiting:
            asked.reply(f"Error: {_OVER}")
        self._turn.set()
        await asyncio.gather(*self._models, return_exceptions=True)
        if is_closing:
            await asyncio.wait({self._running}, timeout=LAST_SECONDS)
        self._running.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._running

    async def _next(self) -> tuple[str, list[_Asked]]:
        """The next unrecorded tool calls, or the agent's last text."""
        while True:
            asking = asyncio.ensure_future(self._asked.get())
            try:
                await asyncio.wait({asking, self._running}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    return self.clean(await self._ended())[:MOST_TEXT_CHARS].strip(), []
                asked = asking.result()
            finally:
                asking.cancel()
            if self._past and self._past[0][:2] == (asked.name, asked.arguments):
                asked.reply(self._past.popleft()[2])
                self._waiting.remove(asked)
                continue
            self._past.clear()
            batch = [asked]
            while not self._asked.empty():
                batch.append(self._asked.get_nowait())
            self._waiting = [each for each in self._waiting if each not in batch]
            return "", batch

    async def _ended(self) -> str:
        try:
            return await self._running
        except (SeatError, asyncio.CancelledError):
            raise
        except GraphInterrupt as error:
            raise SeatError(
                "the agent's graph asks a person by an interrupt, which only an organisation as code can"
            ) from error
        except Exception as error:
            _log.info("the agent of the seat %s failed in %s", self.speaker.agent, self.place, exc_info=error)
            raise SeatError(f"the agent failed: {type(error).__name__}: {error}") from error

    def _answer(self, messages: Sequence[BaseMessage]) -> None:
        """Answer the tool calls of the last reply with their results, or with the lab's remark."""
        if not self._replied:
            return
        results = [text_of(message) for message in messages[-len(self._replied) :] if isinstance(message, ToolMessage)]
        if not results:
            results = [text_of(messages[-1]).removeprefix(text_of(self.opening[-1])).strip()] * len(self._replied)
        for asked, text in zip(self._replied, results, strict=True):
            asked.reply(text)
        self._replied = []

    def _made(self, text: str, *asked: _Asked) -> Reply:
        step = self._newest.step
        calls = [
            ToolCall(f"{step}/{number}" if number else step, each.name, each.arguments)
            for number, each in enumerate(asked)
        ]
        notes, self._notes = tuple(self._notes), []
        return outside_reply(text, calls, notes)

    async def _failed(self, reason: str) -> Reply:
        await self.close()
        if self._fault is not None:
            raise self._fault
        self.note(f"{UNPAID}: {reason}" if self._is_broke else reason)
        return self._made("")

    async def _paid(self, call: Call, messages: list[BaseMessage], options: CallOptions) -> Reply:
        """A model call of the agent; a resumed run's recorded calls are replayed."""
        reply = await self._answered(call, self._memory.joined(messages), options)
        self._memory.keep(reply.message)
        is_cut = reply.finish == "length"
        self._cut = f", after a reply of its model that was cut at its limit of {reply.limit} tokens" if is_cut else ""
        return reply

    async def _answered(self, call: Call, messages: list[BaseMessage], options: CallOptions) -> Reply:
        said = [_said(message_to_data(message)) for message in messages]
        if recorded := next((event for event in self._recorded if self._was_sent(event, said)), None):
            self._recorded.remove(recorded)
            return recorded_reply(recorded, self._caller.recorder.bodies)
        step = inner_step(call.step, self._made_models[call.step])
        self._made_models[call.step] += 1
        name = f"{self.speaker.agent}: {step}"
        return (await self._caller.call(step, self.speaker, messages, call.purse, name=name, **options)).reply

    def _was_sent(self, event: LLMCallEvent, said: list[dict[str, Any]]) -> bool:
        bodies = self._caller.recorder.bodies
        return [_said(bodies[number]) for number in event.messages] == said


def _said(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data of a message without attachments, which depend on the model."""
    return without(said_in(data), [ATTACHED])


class SeatAgent:
    """The external agent on a seat in all steps of a run, with one session per step."""

    def __init__(self, caller: Caller, terms: SeatTerms) -> None:
        self._caller, self._terms = caller, terms
        self._session: SeatSession | None = None

    async def reply(self, call: Call) -> Reply:
        """The agent's next reply; see `SeatSession.reply`."""
        place = call.step.rpartition("/")[0]
        if self._session is None or self._session.place != place or self._session.has_ended:
            await self.leave()
            self._session = SeatSession(place, call, self._caller, self._terms)
        return await self._session.reply(call)

    async def leave(self) -> None:
        """End the current session, if any."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


def _opening(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], deque[tuple[str, dict[str, Any], str]]]:
    """The order of an agent, and its answered tool calls so far, which a resumed agent repeats."""
    orders = [place for place, message in enumerate(messages) if order_of(message) is not None]
    first = orders[-1] + 1 if orders else len(messages)
    later = messages[first:]
    answers = {message.tool_call_id: text_of(message) for message in later if isinstance(message, ToolMessage)}
    if not answers:
        return list(messages), deque()
    calls = [call for message in later if isinstance(message, AIMessage) for call in message.tool_calls]
    past = ((call["name"], call["args"], answers[str(call["id"])]) for call in calls if str(call["id"]) in answers)
    return list(messages[:first]), deque(past)


def _recorded_models(caller: Caller, place: str) -> list[LLMCallEvent]:
    """The recorded model calls of an agent in a step."""
    calls = (event for event in caller.recorder.events if isinstance(event, LLMCallEvent))
    return [event for event in calls if event.step.startswith(f"{place}/") and outer_step(event.step)]
