"""One paid model call: reserve, call, settle, record. A call that the record already holds is told again from it.

Every kind of experiment makes its calls here, so that each is charged, counted, seeded and traced in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.transcript import compact, message_from_data, message_to_data, shorten, with_limit
from labmates.budgets.ledger import Entry, InsufficientFundsError, Ledger
from labmates.budgets.meter import CallMeter, Money
from labmates.budgets.prices import Price, PriceList
from labmates.budgets.purse import Purse
from labmates.models.errors import ContextOverflowError
from labmates.models.hub import ModelHub
from labmates.models.names import parse_model
from labmates.models.normalise import NO_TEXT
from labmates.models.orders import with_orders
from labmates.models.reply import Reply, ToolCall, Usage
from labmates.models.tokens import estimate_messages, most_tokens
from labmates.models.window import reply_limit
from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, Event, FailedReplyEvent, LLMCallEvent, WarningEvent
from labmates.records.recorder import Recorder
from labmates.seeds import derive
from labmates.workflows.brake import Steps

LEAST_OUTPUT_TOKENS = 256
"""A call for which the pool can't pay at least this much output does not start."""
CONTEXT_TOKENS = 131_072
"""What a model's context is taken to hold where nothing else is said: that of most models in use."""
_LIMIT_LINE_TOKENS = 32
"""No line that states a limit on a reply has more."""
_TOO_LONG, _LOST = "/too_long", "/lost/"


@dataclass(frozen=True)
class Speaker:
    """Who makes a call."""

    team: str
    agent: str
    model: str


@dataclass(frozen=True)
class Exchange:
    """A model's reply, and the transcript as it was really sent.

    It was shortened where the model's context asked for it, and ends with the output limit where that was stated.
    """

    reply: Reply
    sent: list[BaseMessage]


class Caller:
    """Makes the model calls of one run.

    Parameters
    ----------
    max_output_tokens
        Output limit of each call.
    bound
        What the run may spend, beside a purse of credits; calls whose provider's price is known draw on both.
    lowers_limit
        Lower that limit where the purse can't pay it, down to `LEAST_OUTPUT_TOKENS`; else such a call is
        not made.
    steps
        The steps of the run, which may be asked to stop.
    context_tokens
        What the models' context holds, transcript and reply together, where a model's own settings don't say; None for
        what the shipped table has. A transcript that would not fit into that, or into `CONTEXT_TOKENS`, is compacted
        before the call; the limit on the reply is lowered to what the transcript leaves of a context that is known.
    """

    def __init__(
        self,
        hub: ModelHub,
        recorder: Recorder,
        *,
        seed: int,
        prices: PriceList,
        max_output_tokens: int,
        temperature: float | None,
        steps: Steps | None = None,
        context_tokens: int | None = None,
        lowers_limit: bool = True,
        bound: Ledger | None = None,
    ) -> None:
        self.hub = hub
        self.recorder = recorder
        self.steps = steps or Steps()
        self.max_output_tokens = max_output_tokens
        self._seed = seed
        self._prices = prices
        self._temperature = temperature
        self._context_tokens = context_tokens
        self._lowers_limit = lowers_limit
        self._bound = bound

    async def call(
        self,
        step: str,
        speaker: Speaker,
        messages: Sequence[BaseMessage],
        purse: Purse,
        *,
        tools: Sequence[dict[str, Any]] = (),
        response_format: Mapping[str, Any] | None = None,
        name: str,
        state_limit: bool = False,
    ) -> Exchange:
        """Make one call.

        A limit on the output that is lower than `max_output_tokens`, because the purse can't pay more, is stated at the
        end of the transcript.

        Parameters
        ----------
        step
            Stable name of this call in the run.
        name
            Readable name of the call in a trace.
        response_format
            What the server holds the reply to.
        state_limit
            State the output limit whatever it is.

        Raises
        ------
        InsufficientFundsError
            If the purse can't pay a call, or another attempt of it.
        ContextOverflowError
            If the model's context can't hold the transcript and a reply, however short the transcript.
        EndpointError
            If the model can't be reached or gives no usable answer.
        StoppedError
            If the run is to stop.
        """
        for charge in self._uncertain(step):
            purse.note(charge.amount)
        if (told := self._told(step, messages, purse)) is not None:
            return told
        if self.recorder.done("warning", _too_long(step)) is not None:
            raise ContextOverflowError("the model's context could not hold the transcript", model=speaker.model)
        sent = self._compacted(step, speaker, messages, tools)
        while True:
            try:
                async with self.steps.step():
                    return await self._paid(step, speaker, sent, purse, tools, response_format, name, state_limit)
            except ContextOverflowError:
                shorter = shorten(sent)
                self._overflowed(step, speaker, shorter)
                if shorter is None:
                    raise
                sent = shorter

    def most_output(
        self, speaker: Speaker, messages: list[BaseMessage], funds: int, tools: Sequence[dict[str, Any]] = ()
    ) -> int:
        """Return the output limit that `funds` micro-dollars pay for a call that states it, in tokens.

        It is below 0 if they don't even pay the input, or the model's context does not even hold it.

        Parameters
        ----------
        messages
            The transcript without the limit.
        """
        whole = self.whole_output(speaker.model)
        inputs = estimate_messages(with_limit(messages, whole), tools)
        price = self._prices.of(speaker.model).dearest
        window = self._window(speaker.model) or inputs + whole
        return min(whole, price.most_output(inputs, funds), window - inputs)

    def whole_output(self, model: str) -> int:
        """Return the output limit of a model's calls where funds don't lower it: its own, else the condition's."""
        return parse_model(model).settings.max_output_tokens or self.max_output_tokens

    async def _paid(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        purse: Purse,
        tools: Sequence[dict[str, Any]],
        response_format: Mapping[str, Any] | None,
        name: str,
        state_limit: bool,
    ) -> Exchange:
        # A pool is in credits, by the condition's price list; a bound is in dollars.
        charged = self.hub.price(speaker.model)
        price = self._prices.of(speaker.model) if self._lowers_limit or charged is None else charged
        messages, inputs, limit = self._sized(speaker, messages, tools, purse.available, price, state_limit)
        where = {"step": step, "team": speaker.team, "agent": speaker.agent}
        prices = {"input_price": price.input, "output_price": price.output}

        def lost(entry: Entry, reason: str, bill: int | None) -> None:
            number = len(self._uncertain(step))
            at = {**where, "step": _lost(step, number)}
            tokens = {"input_tokens": inputs, "output_tokens": limit}
            told = {"estimated": True, "uncertain": True, "reason": reason, "bill": bill}
            self.recorder.emit(
                ChargeEvent(**at, amount=-entry.amount, uncovered=entry.uncovered, **tokens, **prices, **told)
            )

        reserved = inputs if self._lowers_limit else most_tokens(messages, tools)
        money = None if self._bound is None or charged is None else Money(self._bound, charged)
        meter = CallMeter(purse, price, step, inputs, limit, reserved=reserved, lost=lost, money=money)
        seed = derive(self._seed, step)
        try:
            reply = await self.hub.call(
                speaker.model,
                messages,
                tools=tools,
                seed=seed,
                max_output_tokens=limit,
                temperature=self._temperature,
                meter=meter,
                response_format=response_format,
                config={
                    "run_name": name,
                    "tags": [speaker.team, speaker.agent],
                    "metadata": {**where, "model": speaker.model, "run": self.recorder.run_id},
                },
            )
        except BaseException:
            meter.spare()
            raise
        usage = reply.usage
        billed = reply.bill if money is not None or not self._lowers_limit else None
        entry = meter.settle(usage.cost(price) if self._lowers_limit or billed is None else billed, billed)
        keep = self.recorder.bodies.keep
        self.recorder.emit(
            LLMCallEvent(
                **where,
                model=speaker.model,
                messages=[keep(message_to_data(message)) for message in messages],
                reply=keep(message_to_data(reply.message)),
                finish=reply.finish,
                output_limit=limit,
                cut_call=keep(_call_data(reply.cut_call)) if reply.cut_call else None,
                faults=list(reply.faults),
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                estimated=usage.estimated,
                attempts=reply.attempts,
                seconds=round(reply.seconds, 4),
                seed=seed,
                reasoning=keep(reply.reasoning) if reply.reasoning else None,
                cached=reply.cached,
                cached_tokens=usage.cached_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                uncertain_attempts=len(self._uncertain(step)),
                notes=list(reply.notes),
            ),
            ChargeEvent(
                **where,
                amount=-entry.amount,
                uncovered=entry.uncovered,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                **prices,
                estimated=usage.estimated,
                cached=reply.cached,
                bill=reply.bill,
                excess=meter.excess,
            ),
            *(WarningEvent(**{**where, "step": f"{step}/answer"}, text=f"{step}: {note}") for note in reply.notes),
        )
        await self.recorder.flush()
        return Exchange(replace(reply, limit=limit), messages)

    def _sized(
        self,
        speaker: Speaker,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any]],
        funds: int,
        price: Price,
        state_limit: bool,
    ) -> tuple[list[BaseMessage], int, int]:
        """Return the transcript as it is sent, its estimated tokens, and the output limit that the funds pay.

        A bound reserves more tokens than the prompt can have, a pool of credits as many as it is estimated to have.
        """
        size = estimate_messages if self._lowers_limit else most_tokens
        inputs = estimate_messages(messages, tools)
        wanted = self.whole_output(speaker.model)
        whole = reply_limit(wanted, inputs + _LIMIT_LINE_TOKENS, self._window(speaker.model), speaker.model)
        limit = min(whole, price.dearest.most_output(size(messages, tools), funds))
        state_limit = state_limit or limit < wanted
        if state_limit:
            # No limit that can be stated takes more tokens than the highest one.
            stated = with_limit(messages, wanted)
            inputs = estimate_messages(stated, tools)
            limit = min(whole, price.dearest.most_output(size(stated, tools), funds))
        if limit < (min(LEAST_OUTPUT_TOKENS, whole) if self._lowers_limit else whole):
            raise InsufficientFundsError("the pool can't pay another reply")
        return with_limit(messages, limit) if state_limit else messages, inputs, limit

    def failed(self, step: str, speaker: Speaker, reason: str) -> None:
        """Record that a reply could not be used as it was."""
        if self.recorder.done("failed_reply", step) is None:
            self.recorder.emit(FailedReplyEvent(step=step, team=speaker.team, agent=speaker.agent, reason=reason))

    def _uncertain(self, step: str) -> list[ChargeEvent]:
        """Return the charges of attempts of a call that brought no reply."""
        charges = (self.recorder.done("charge", _lost(step, number)) for number in count())
        return cast(list[ChargeEvent], list(takewhile(lambda charge: charge is not None, charges)))

    def _told(self, step: str, messages: Sequence[BaseMessage], purse: Purse) -> Exchange | None:
        event = cast(LLMCallEvent | None, self.recorder.done("llm_call", step))
        charge = cast(ChargeEvent | None, self.recorder.done("charge", step))
        if event is None or charge is None:
            return None
        purse.note(charge.amount)
        bodies = self.recorder.bodies
        sent = [message_from_data(bodies[number]) for number in event.messages]
        return Exchange(recorded_reply(event, bodies), with_orders(sent, messages))

    def _compacted(
        self, step: str, speaker: Speaker, messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]
    ) -> list[BaseMessage]:
        """Return the transcript, compacted if it and a whole reply would not fit the model's context.

        A limit on the reply that is more than half of the context leaves half of it to the transcript.
        """

        def size(transcript: Sequence[BaseMessage]) -> int:
            return estimate_messages(transcript, tools)

        context = self._context_of(speaker.model)
        room = max(context - self.whole_output(speaker.model), context // 2)
        sent = compact(messages, size, room)
        if sent != list(messages):
            text = (
                f"{step}: the transcript was compacted from about {size(messages):,} to {size(sent):,} tokens, "
                f"for a context of {context:,}"
            )
            where = {"team": speaker.team, "agent": speaker.agent}
            self.recorder.once(WarningEvent(step=f"{step}/compacted", **where, text=text))
        return sent

    def _context_of(self, model: str) -> int:
        given = parse_model(model).settings.context_tokens or self._context_tokens
        return given or min(self.hub.context(model) or CONTEXT_TOKENS, CONTEXT_TOKENS)

    def _window(self, model: str) -> int | None:
        """Return the context of a model; None if nobody knows it."""
        return parse_model(model).settings.context_tokens or self._context_tokens or self.hub.context(model)

    def _overflowed(self, step: str, speaker: Speaker, shorter: list[BaseMessage] | None) -> None:
        said = "it can't be shortened further" if shorter is None else "the transcript was shortened"
        self.recorder.emit(
            WarningEvent(
                step=_too_long(step) if shorter is None else step,
                team=speaker.team,
                agent=speaker.agent,
                text=f"{step}: the model's context overflowed; {said}",
            )
        )


def recorded_reply(event: LLMCallEvent, bodies: Bodies) -> Reply:
    """Return the reply that a model gave, out of the record of the call."""
    message = cast(AIMessage, message_from_data(bodies[event.reply]))
    return Reply(
        text="" if message.content == NO_TEXT else str(message.content),
        tool_calls=tuple(ToolCall(str(c["id"]), c["name"], c["args"]) for c in message.tool_calls),
        faults=cast(Any, tuple(event.faults)),
        message=message,
        finish=cast(Any, event.finish),
        limit=event.output_limit,
        cut_call=_call_from_data(bodies[event.cut_call]) if event.cut_call is not None else None,
        usage=Usage(
            event.input_tokens,
            event.output_tokens,
            event.reasoning_tokens,
            event.estimated,
            event.cached_tokens,
            event.cache_write_tokens,
        ),
        reasoning=bodies.text(event.reasoning) if event.reasoning else "",
        attempts=event.attempts,
        seconds=event.seconds,
        cached=event.cached,
        notes=tuple(event.notes),
    )


def _call_data(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}


def _call_from_data(data: Any) -> ToolCall:
    return ToolCall("", data["name"], data["arguments"])


def overflow_steps(events: Iterable[Event]) -> Counter[str]:
    """Return how often the transcript of each step was too long for its model, by step."""
    return Counter(event.step.removesuffix(_TOO_LONG) for event in events if isinstance(event, WarningEvent))


def lost_attempts(events: Iterable[Event]) -> dict[str, list[str]]:
    """Return why attempts brought no reply though they may be billed, by the step of their call."""
    found: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, ChargeEvent) and event.uncertain:
            found.setdefault(event.step.rpartition(_LOST)[0], []).append(event.reason)
    return found


def _lost(step: str, number: int) -> str:
    """Return the step under which stands the charge of an attempt of a call that brought no reply."""
    return f"{step}{_LOST}{number}"


def _too_long(step: str) -> str:
    """Return the step under which stands that a transcript was too long in its shortest version."""
    return f"{step}{_TOO_LONG}"
