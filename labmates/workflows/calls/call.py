"""Model calls by agents, players or judges, answerers in place of a model, and the record of calls, for replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypedDict, cast

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.transcript import message_from_data, message_to_data
from labmates.budgets.budget import LostAttempt
from labmates.budgets.ledger import JournalLine
from labmates.budgets.prices import Price
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import Usage, estimate_messages
from labmates.models.conversation import Exchange
from labmates.models.errors import ContextOverflowError
from labmates.models.names import is_outside
from labmates.models.normalise import NO_TEXT
from labmates.models.orders import with_orders
from labmates.models.reply import Reply, ToolCall
from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, Event, LLMCallEvent, WarningEvent
from labmates.records.recorder import Recorder
from labmates.util.grouping import grouped

UNPAID = "the agent ended when its budget could not pay another model call"
"""Begins the note on a seat that failed for lack of money, which is no fault of the seat."""
_TOO_LONG, _LOST, _INNER = "/too_long", "/lost/", "/model/"


@dataclass(frozen=True)
class Speaker:
    """The caller of a model."""

    team: str
    agent: str
    model: str

    @cached_property
    def is_outside(self) -> bool:
        """Whether a person or an outside agent on a seat answers in place of a model."""
        return is_outside(self.model)


class Outsider(Protocol):
    """An answerer in place of a model: a person, or an agent with its own loop."""

    async def reply(self, call: Call) -> Reply:
        """The next reply; cancelled when the run stops."""


class CallOptions(TypedDict, total=False):
    """Optional parts of a call."""

    tools: Sequence[dict[str, Any]]  # listed tools, as OpenAI schemas
    # Names of the tools that the reply may use; by default all. The others are listed for prompt caches.
    usable: Collection[str]
    response_format: Mapping[str, Any] | None  # format enforced by the server
    tool_choice: str  # the tool that the reply must call; a name, or `ANY_TOOL`
    state_limit: bool  # always state the output limit
    limit: int  # output limit, in tokens; by default the model's, else the caller's


@dataclass(frozen=True)
class Call:
    """A call: its prompt, payer and limits."""

    step: str
    speaker: Speaker
    messages: list[BaseMessage]
    purse: Purse
    name: str
    seed: int
    tools: Sequence[dict[str, Any]] = ()
    usable: Collection[str] | None = None
    response_format: Mapping[str, Any] | None = None
    tool_choice: str = ""
    state_limit: bool = False
    inputs: int = 0  # estimated tokens of the transcript and the tools
    scale: float = 1.0  # reported tokens of the agent's previous input, as a share of their estimate
    reserved: int = 0  # reserved input tokens
    limit: int = 0  # output limit; 0 for the model's, until the call is made

    @property
    def where(self) -> dict[str, str]:
        """Step, team and agent of the call's events."""
        return {"step": self.step, "team": self.speaker.team, "agent": self.speaker.agent}

    @property
    def offered(self) -> list[dict[str, Any]]:
        """The tools that the reply may use."""
        return [tool for tool in self.tools if self.usable is None or tool["function"]["name"] in self.usable]

    def with_messages(self, messages: list[BaseMessage]) -> Call:
        """The same call with another transcript."""
        return replace(self, messages=messages, inputs=round(self.scale * estimate_messages(messages, self.tools)))


def outside_reply(text: str = "", calls: Sequence[ToolCall] = (), notes: tuple[str, ...] = ()) -> Reply:
    """A reply without cost; empty without text and calls."""
    message = AIMessage(
        text or ("" if calls else NO_TEXT),
        tool_calls=[{"id": call.id, "name": call.name, "args": call.arguments} for call in calls],
    )
    return Reply(
        text=text,
        tool_calls=tuple(calls),
        faults=() if text or calls else ("empty",),
        message=message,
        finish="tool_calls" if calls else "stop",
        usage=Usage(0, 0),
        bill=0,
        notes=notes,
    )


class CallRecord:
    """The record of a run's model calls."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def exchange(self, step: str, messages: Sequence[BaseMessage], purse: Purse, model: str) -> Exchange | None:
        """The recorded call of a step, noted as paid in `purse`; None if there is none.

        Raises `ContextOverflowError` if the shortest transcript overflowed the model's context.

        Parameters
        ----------
        messages
            The current transcript, with the orders that a record lacks.
        model
            Name of the model in errors.
        """
        for lost in (*self._uncertain(step), *self._inner(step)):
            purse.note(lost.amount)
        event = cast(LLMCallEvent | None, self._recorder.done("llm_call", step))
        charge = cast(ChargeEvent | None, self._recorder.done("charge", step))
        if event is None or charge is None:
            if self._recorder.done("warning", _too_long(step)) is not None:
                raise ContextOverflowError("the model's context could not hold the transcript", model=model)
            return None
        purse.note(charge.amount)
        bodies = self._recorder.bodies
        sent = [message_from_data(bodies[number]) for number in event.messages]
        return Exchange(recorded_reply(event, bodies), with_orders(sent, messages))

    def _inner(self, step: str) -> list[ChargeEvent]:
        """The charges of an external agent's model calls for its reply."""
        charges = self._charges(partial(inner_step, step))
        return charges + [lost for charge in charges for lost in self._uncertain(charge.step)]

    def _uncertain(self, step: str) -> list[ChargeEvent]:
        """The charges of attempts without a reply."""
        return self._charges(partial(_lost, step))

    def _charges(self, step: Callable[[int], str]) -> list[ChargeEvent]:
        """The charges of numbered steps up to the first without one."""
        charges: list[ChargeEvent] = []
        while (charge := self._recorder.done("charge", step(len(charges)))) is not None:
            charges.append(cast(ChargeEvent, charge))
        return charges

    def replied(self, call: Call, reply: Reply, price: Price, line: JournalLine, excess: int) -> None:
        """Record a call that brought a reply, and its charge.

        Parameters
        ----------
        line
            What its purse has paid.
        excess
            Micro-dollars that the bound of the run could not pay.
        """
        where = call.where
        lost = len(self._uncertain(call.step))
        self._recorder.emit(
            call_event(call, reply, self._recorder.bodies, **where, uncertain_attempts=lost),
            charge_event(
                where,
                reply.usage,
                price,
                amount=-line.amount,
                uncovered=line.uncovered,
                cached=reply.cached,
                bill=reply.bill,
                bill_from=reply.bill_from,
                excess=excess,
            ),
            *(
                WarningEvent(**{**where, "step": f"{call.step}/answer"}, text=f"{call.step}: {note}")
                for note in reply.notes
            ),
        )

    def lost(self, call: Call, price: Price, attempt: LostAttempt) -> None:
        """Record the charge of an attempt that brought no reply."""
        where = {**call.where, "step": _lost(call.step, len(self._uncertain(call.step)))}
        usage, line = replace(attempt.usage, estimated=not attempt.is_certain), attempt.entry
        paid = {"amount": -line.amount, "uncovered": line.uncovered, "bill": attempt.bill}
        self._recorder.emit(charge_event(where, usage, price, **paid, uncertain=True, reason=attempt.reason))

    def compacted(self, call: Call, inputs: int, context: int) -> None:
        """Record once that a call's transcript was compacted to `inputs` tokens, for a context of `context` tokens."""
        text = (
            f"{call.step}: the transcript was compacted from about {call.inputs:,} to {inputs:,} tokens, "
            f"for a context of {context:,}"
        )
        self._recorder.once(WarningEvent(**{**call.where, "step": f"{call.step}/compacted"}, text=text))

    def overflowed(self, call: Call, *, is_shortened: bool) -> None:
        """Record that a call overflowed the model's context."""
        result = "the transcript was shortened" if is_shortened else "it can't be shortened further"
        step = call.step if is_shortened else _too_long(call.step)
        text = f"{call.step}: the model's context overflowed; {result}"
        self._recorder.emit(WarningEvent(**{**call.where, "step": step}, text=text))


def charge_event(where: Mapping[str, Any], usage: Usage, price: Price, **more: Any) -> ChargeEvent:
    """The event of a charge for these tokens; `more` are further fields, with what was paid."""
    return ChargeEvent(
        **where,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        estimated=usage.estimated,
        input_price=price.input,
        output_price=price.output,
        **more,
    )


def call_event(call: Call, reply: Reply, bodies: Bodies, **more: Any) -> LLMCallEvent:
    """The event of a call; `more` are further fields."""
    keep = bodies.keep
    return LLMCallEvent(
        model=call.speaker.model,
        messages=[keep(message_to_data(message)) for message in call.messages],
        reply=keep(message_to_data(reply.message)),
        finish=reply.finish,
        output_limit=call.limit,
        cut_call=keep({"name": cut.name, "arguments": cut.arguments}) if (cut := reply.cut_call) else None,
        faults=list(reply.faults),
        attempts=reply.attempts,
        seconds=round(reply.seconds, 4),
        seed=call.seed,
        reasoning=keep(reply.reasoning) if reply.reasoning else None,
        raw=keep(reply.raw) if reply.raw else None,
        cached=reply.cached,
        notes=list(reply.notes),
        **vars(reply.usage),
        **more,
    )


def recorded_reply(event: LLMCallEvent, bodies: Bodies) -> Reply:
    """The reply in the record of a call."""
    message = cast(AIMessage, message_from_data(bodies[event.reply]))
    return Reply(
        text="" if message.content == NO_TEXT else str(message.content),
        tool_calls=tuple(ToolCall(str(c["id"]), c["name"], c["args"]) for c in message.tool_calls),
        faults=cast(Any, tuple(event.faults)),
        message=message,
        finish=cast(Any, event.finish),
        limit=event.output_limit,
        cut_call=_call_from_data(bodies[event.cut_call]) if event.cut_call is not None else None,
        usage=Usage(**{each.name: getattr(event, each.name) for each in fields(Usage)}),
        reasoning=bodies.text(event.reasoning) if event.reasoning else "",
        attempts=event.attempts,
        seconds=event.seconds,
        cached=event.cached,
        notes=tuple(event.notes),
        raw=bodies.text(event.raw) if event.raw is not None else "",
    )


def _call_from_data(data: Any) -> ToolCall:
    return ToolCall("", data["name"], data["arguments"])


def overflow_steps(events: Iterable[Event]) -> Counter[str]:
    """The number of context overflows, by step."""
    return Counter(event.step.removesuffix(_TOO_LONG) for event in events if isinstance(event, WarningEvent))


def lost_attempts(events: Iterable[Event]) -> dict[str, list[ChargeEvent]]:
    """The charges for attempts without a reply, by the step of their call."""
    lost = (event for event in events if isinstance(event, ChargeEvent) and event.uncertain)
    return grouped((charged_call(event), event) for event in lost)


def charged_call(charge: ChargeEvent) -> str:
    """The step of the charged call, also for an attempt without a reply."""
    return charge.step.rpartition(_LOST)[0] if charge.uncertain else charge.step


def inner_step(step: str, number: int) -> str:
    """The step of an external agent's model call for its reply in `step`."""
    return f"{step}{_INNER}{number}"


def outer_step(step: str) -> str:
    """The step of the external agent's reply to which a model call belongs; empty for other calls."""
    return step.rpartition(_INNER)[0]


def _lost(step: str, number: int) -> str:
    """The step of the charge for an attempt without a reply."""
    return f"{step}{_LOST}{number}"


def _too_long(step: str) -> str:
    """The step of the warning that the shortest transcript was too long."""
    return f"{step}{_TOO_LONG}"
