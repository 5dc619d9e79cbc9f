"""An agent from outside in one step of the lab.

The agent runs its own loop. Each tool that it calls becomes the reply that the lab waits for, so that the lab
pays, carries out and records it like any other; the answer is what the lab's next call sends. The text with which the
agent ends is its last reply. Its model calls go to the seat's model while the lab waits, and are paid from the same
purse.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Unpack

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.errors import GraphInterrupt

from labmates.agents.tools import ToolError
from labmates.agents.transcript import message_to_data, said_in, text_of
from labmates.budgets.ledger import InsufficientFundsError
from labmates.errors import LabmatesError
from labmates.models.errors import ContextOverflowError, ModelCallError
from labmates.models.orders import order_of, with_orders
from labmates.models.protocols.base import RefusedRequestError
from labmates.models.reply import Reply, ToolCall
from labmates.records.events import LLMCallEvent
from labmates.workflows.call_records import inner_step, outer_step, recorded_reply
from labmates.workflows.caller import Caller
from labmates.workflows.calls import Call, CallOptions, Speaker, outside_reply

MOST_WAITING = 16
"""So many calls of tools, and as many of the model, may wait at once; a flood is refused."""
MOST_TEXT_CHARS = 60_000
CLOSING = "mark_complete"
BUDGET = "budget"
"""The tool that says what the seat may know of the pool; it costs nothing and is not recorded."""
_OVER = "your step is over; the lab answers no further call"
_INVALID = (400, 422)
"""HTTP statuses of requests that a server finds invalid; the agent wrote them, so they are not the run's faults."""


class SeatError(LabmatesError):
    """An agent from outside ended without a usable answer."""


Agent = Callable[["SeatSession"], Coroutine[Any, Any, str]]
"""Runs an agent in a session and returns the text with which it ends."""


@dataclass(frozen=True)
class SeatTerms:
    """The terms of a seat, the same in all of its steps.

    Attributes
    ----------
    agent
        Runs the agent.
    speaker
        The seat with the model that its own model calls reach.
    seconds
        Time limit of one reply.
    budget
        What the seat may read of the budget, from the purse of a call.
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
    """One step of an agent from outside.

    Parameters
    ----------
    place
        The step: the names of its calls without their numbers.
    call
        The first call of the lab.

    Attributes
    ----------
    key
        What the agent shows to reach its tools and its model; it is good for this step alone.
    opening
        What the agent is told: who it is, and its order.
    tools
        Its tools, in the form of OpenAI's function calling.
    """

    def __init__(self, place: str, call: Call, caller: Caller, terms: SeatTerms) -> None:
        self.place, self.key = place, f"lm-{secrets.token_urlsafe(24)}"
        self.opening, self._past = _opening(call.messages)
        self.tools = list(tools_of(call))
        self._caller, self._terms = caller, terms
        self._call: Call | None = None
        self._newest = call
        self._turn = asyncio.Event()
        self._asked: asyncio.Queue[_Asked] = asyncio.Queue()
        self._waiting: list[_Asked] = []
        self._replied: _Asked | None = None
        self._models: set[asyncio.Task[Reply]] = set()
        self._recorded = _recorded_models(caller, place)
        self._made_models = Counter(outer_step(event.step) for event in self._recorded)
        self._notes: list[str] = []
        self._fault: LabmatesError | None = None
        self._is_over = False
        self._running = asyncio.create_task(terms.agent(self))

    @property
    def speaker(self) -> Speaker:
        """The seat, with the model that the agent may ask."""
        return self._terms.speaker

    @property
    def order(self) -> str:
        """The order of the agent, as one text."""
        return "\n\n".join(text_of(message) for message in self.opening)

    @property
    def has_ended(self) -> bool:
        """Whether the agent has given its last reply."""
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
        """Call a tool, and wait for the lab's answer.

        Raises
        ------
        ToolError
            If too many calls wait already.
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
        """Call the seat's model, from the purse of the call that the lab waits for.

        Raises
        ------
        RefusedRequestError
            If the pool can't pay the call, too many wait already, the step is over, or the model's server finds the
            request invalid.
        """
        if len(self._models) >= MOST_WAITING:
            self.note(f"the agent made more than {MOST_WAITING} model calls at once; the rest were refused")
            raise RefusedRequestError(f"{MOST_WAITING} model calls are under way already; wait for their replies", 429)
        await self._turn.wait()
        call = self._call
        if call is None:
            raise RefusedRequestError(_OVER, 409)
        most = self._caller.whole_output(self.speaker.model)
        options["limit"] = min(options.get("limit") or most, most)
        # A program that leaves does not take back a call that a provider bills.
        task = asyncio.create_task(self._paid(call, with_orders(list(messages), self.opening), options))
        self._models.add(task)
        task.add_done_callback(self._models.discard)
        try:
            return await asyncio.shield(task)
        except InsufficientFundsError as error:
            raise RefusedRequestError("the budget of this seat can't pay another model call", 402) from error
        except ContextOverflowError as error:
            raise RefusedRequestError("context_length_exceeded: the transcript is too long") from error
        except LabmatesError as error:
            if isinstance(error, ModelCallError) and error.status in _INVALID:
                self.note("the model's server refused a request of the agent as invalid")
                raise RefusedRequestError(f"the model's server refused the request: {error}") from error
            self._fault = error
            raise RefusedRequestError("the model can't be reached", 502) from error

    async def reply(self, call: Call) -> Reply:
        """The agent's next reply: a call of a tool, or its last text.

        Raises
        ------
        LabmatesError
            If the model that the agent asks can't be reached, or the run is to stop.
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
        if asked is not None:
            self._waiting.remove(asked)
            self._replied = asked
            return self._made("", asked)
        await self.close()
        if self.place.endswith("/work"):
            return self._made("", _Asked(CLOSING, {"summary": text or "The agent ended without a summary."}))
        return self._made(text) if text else await self._failed("the agent ended without an answer")

    async def close(self) -> None:
        """End the agent. Model calls under way are awaited, since they are paid."""
        self._is_over = True
        if self._replied is not None:
            self._replied.reply("It is kept; your step is over.")
        for asked in self._waiting:
            asked.reply(f"Error: {_OVER}")
        self._turn.set()
        await asyncio.gather(*self._models, return_exceptions=True)
        self._running.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await self._running

    async def _next(self) -> tuple[str, _Asked | None]:
        """The next call of a tool that the record does not answer, or the agent's last text."""
        while True:
            asking = asyncio.ensure_future(self._asked.get())
            try:
                await asyncio.wait({asking, self._running}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    return self.clean(await self._ended())[:MOST_TEXT_CHARS].strip(), None
                asked = asking.result()
            finally:
                asking.cancel()
            if self._past and self._past[0][:2] == (asked.name, asked.arguments):
                asked.reply(self._past.popleft()[2])
                self._waiting.remove(asked)
                continue
            self._past.clear()
            return "", asked

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
            raise SeatError(f"the agent failed: {type(error).__name__}: {error}") from error

    def _answer(self, messages: Sequence[BaseMessage]) -> None:
        """Answer the call that was the last reply: with its result, or with what the lab remarks."""
        if self._replied is None:
            return
        text = text_of(messages[-1])
        if not isinstance(messages[-1], ToolMessage):
            text = text.removeprefix(text_of(self.opening[-1])).strip()
        self._replied.reply(text)
        self._replied = None

    def _made(self, text: str, asked: _Asked | None = None) -> Reply:
        calls = (ToolCall(self._newest.step, asked.name, asked.arguments),) if asked else ()
        notes, self._notes = tuple(self._notes), []
        return outside_reply(text, calls, notes)

    async def _failed(self, reason: str) -> Reply:
        await self.close()
        if self._fault is not None:
            raise self._fault
        self.note(reason)
        return self._made("")

    async def _paid(self, call: Call, messages: list[BaseMessage], options: CallOptions) -> Reply:
        """Make a model call of the agent; one that the record holds from before the run was resumed is replayed."""
        said = [said_in(message_to_data(message)) for message in messages]
        if recorded := next((event for event in self._recorded if self._was_sent(event, said)), None):
            self._recorded.remove(recorded)
            return recorded_reply(recorded, self._caller.recorder.bodies)
        step = inner_step(call.step, self._made_models[call.step])
        self._made_models[call.step] += 1
        name = f"{self.speaker.agent}: {step}"
        return (await self._caller.call(step, self.speaker, messages, call.purse, name=name, **options)).reply

    def _was_sent(self, event: LLMCallEvent, said: list[dict[str, Any]]) -> bool:
        bodies = self._caller.recorder.bodies
        return [said_in(bodies[number]) for number in event.messages] == said


class SeatAgent:
    """The agent on a seat, through all steps of a run: whoever asks it for a reply gets one of the step's session."""

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
        """End the step of the agent, if one goes on."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


def tools_of(call: Call) -> Sequence[dict[str, Any]]:
    """The tools that may be used for the reply to a call; a conversation names them also in steps that use none."""
    return () if call.step.split("/")[3] in ("plan", "bid", "deliberation") else call.tools


def _opening(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], deque[tuple[str, dict[str, Any], str]]]:
    """The order of an agent, and its tool calls so far with their answers: a resumed agent repeats them."""
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
    """The model calls that the record holds of an agent in a step."""
    calls = (event for event in caller.recorder.events if isinstance(event, LLMCallEvent))
    return [event for event in calls if event.step.startswith(f"{place}/") and outer_step(event.step)]
