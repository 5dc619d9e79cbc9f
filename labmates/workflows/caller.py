"""One paid model call: reserve, call, settle, record. A call that the record already holds is replayed from it.

Agents, players and judges make their calls here, so that each is charged, counted, seeded and traced in the same way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile
from typing import Any, Unpack, cast

from langchain_core.messages import BaseMessage

from labmates.agents.transcript import compact, message_from_data, shorten, with_limit
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, JournalLine, Ledger
from labmates.budgets.meter import CallMeter, Money
from labmates.budgets.prices import FREE, Price, PriceList
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import estimate_messages, most_tokens
from labmates.models.asking import Exchange
from labmates.models.errors import ContextOverflowError, reply_limit
from labmates.models.hub import ModelHub
from labmates.models.names import is_outside, parse_model
from labmates.models.reply import Reply
from labmates.records.events import FailedReplyEvent, LLMCallEvent
from labmates.records.recorder import Recorder
from labmates.seeds import derive
from labmates.workflows.call_records import CallRecord, inner_step, recorded_reply
from labmates.workflows.calls import Call, CallOptions, Outsider, Speaker, no_outsider
from labmates.workflows.live import Live
from labmates.workflows.stop_signal import Steps

CONTEXT_TOKENS = 131_072
"""What a model's context is taken to hold where nothing else is said: that of most models in use."""
_LIMIT_LINE_TOKENS = 32
"""No line that states a limit on a reply has more."""


@dataclass(frozen=True)
class Terms:
    """The price of a model's calls, and their limits in tokens.

    Attributes
    ----------
    price
        What a call is charged by.
    billed
        What the provider charges; None where nobody knows.
    output
        Output limit where funds don't lower it: the model's own, else the condition's.
    window
        Context of the model; None if nobody knows it.
    context
        Transcripts that don't fit into it are compacted.
    """

    price: Price
    billed: Price | None
    output: int
    window: int | None
    context: int


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
        not made. The purse then is a pool in credits, charged by the price list; else it is a bound in money, charged
        with what the provider charges where that is known.
    insist
        Let a call fail where the server refuses the temperature; else it is asked without it.
    steps
        The steps of the run, which may be asked to stop.
    context_tokens
        What the models' context holds, transcript and reply together, where a model's own settings don't say; None for
        what the shipped table has. A transcript that would not fit into that, or into `CONTEXT_TOKENS`, is compacted
        before the call; the limit on the reply is lowered to what the transcript leaves of a context that is known.
    live
        The link to the pages that show the run, which may listen to replies; None for none.

    Attributes
    ----------
    outsiders
        Finds who answers in place of a model, by the model's name; such replies cost nothing.
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
        insist: bool = True,
        bound: Ledger | None = None,
        live: Live | None = None,
    ) -> None:
        self.hub = hub
        self.recorder = recorder
        self._events = CallRecord(recorder)
        self.steps = steps or Steps()
        self.max_output_tokens = max_output_tokens
        self._seed = seed
        self._prices = prices
        self._temperature = temperature
        self._context_tokens = context_tokens
        self._lowers_limit = lowers_limit
        self._insist = insist
        self._bound = bound
        self._live = live
        self.outsiders: Callable[[str], Outsider | None] = no_outsider
        self._terms: dict[str, Terms] = {}

    async def call(
        self,
        step: str,
        speaker: Speaker,
        messages: Sequence[BaseMessage],
        purse: Purse,
        *,
        name: str,
        **options: Unpack[CallOptions],
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
        options
            See `CallOptions`.

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
        if (recorded := self._events.exchange(step, messages, purse, speaker.model)) is not None:
            return recorded
        inputs = estimate_messages(messages, options.get("tools", ()))
        asked = Call(step, speaker, list(messages), purse, name, derive(self._seed, step), inputs=inputs, **options)
        asked = self._compacted(asked)
        while True:
            try:
                if is_outside(speaker.model):
                    return await self._paid(self._affordable(asked))
                async with self.steps.step():
                    return await self._paid(self._affordable(asked))
            except ContextOverflowError:
                shorter = self._shortened(asked)
                if shorter is None:
                    raise
                asked = asked.with_messages(shorter)

    def most_output(
        self, speaker: Speaker, messages: list[BaseMessage], funds: int, tools: Sequence[dict[str, Any]] = ()
    ) -> int:
        """The output limit that `funds` micro-dollars pay for a call that states it, in tokens.

        It is below 0 if they don't even pay the input, or the model's context does not even hold it.

        Parameters
        ----------
        messages
            The transcript without the limit.
        """
        terms = self._terms_of(speaker.model)
        inputs = estimate_messages(with_limit(messages, terms.output), tools)
        window = terms.window or inputs + terms.output
        return min(terms.output, terms.price.dearest.most_output(inputs, funds), window - inputs)

    def whole_output(self, model: str) -> int:
        """The output limit of a model's calls where funds don't lower it: its own, else the condition's."""
        return self._terms_of(model).output

    def failed(self, step: str, speaker: Speaker, reason: str) -> None:
        """Record that a reply could not be used as it was."""
        self.recorder.once(FailedReplyEvent(step=step, team=speaker.team, agent=speaker.agent, reason=reason))

    def _terms_of(self, model: str) -> Terms:
        if model not in self._terms:
            # The terms of those who answer in place of a model: nothing is paid, and nothing is too long.
            self._terms[model] = (
                Terms(price=FREE, billed=FREE, output=self.max_output_tokens, window=None, context=sys.maxsize)
                if is_outside(model)
                else self._model_terms(model)
            )
        return self._terms[model]

    def _model_terms(self, model: str) -> Terms:
        settings = parse_model(model).settings
        known = self.hub.context(model)
        given = settings.context_tokens or self._context_tokens
        billed, listed = self.hub.price(model), self._prices.of(model)
        return Terms(
            price=listed if self._lowers_limit or billed is None else billed,
            billed=billed,
            output=settings.max_output_tokens or self.max_output_tokens,
            window=given or known,
            context=given or min(known or CONTEXT_TOKENS, CONTEXT_TOKENS),
        )

    def _affordable(self, call: Call) -> Call:
        """The call with the output limit that its purse pays, stated where it has to be.

        A bound reserves more tokens than the prompt can have, a pool of credits as many as it is estimated to have.
        """
        terms = self._terms_of(call.speaker.model)
        wanted = call.limit or terms.output
        whole = reply_limit(wanted, call.inputs + _LIMIT_LINE_TOKENS, terms.window, call.speaker.model)
        # No limit that can be stated takes more tokens than the highest one.
        stated = call.with_messages(with_limit(call.messages, wanted))
        states = call.state_limit or whole < wanted
        limit = call.purse.affordable(
            terms.price,
            whole,
            self._reserved(stated if states else call),
            stated=partial(self._reserved, stated),
            least=LEAST_OUTPUT_TOKENS if self._lowers_limit else whole,
        )
        if states or limit < whole:
            call = replace(stated, messages=with_limit(call.messages, limit))
        return replace(call, reserved=self._reserved(call), limit=limit)

    def _reserved(self, call: Call) -> int:
        """The input tokens to reserve for a call."""
        return call.inputs if self._lowers_limit else most_tokens(call.messages, call.tools)

    async def _paid(self, call: Call) -> Exchange:
        """Make a call: the meter reserves before each attempt, and the reply is charged and recorded."""
        meter, reply = self._meter(call), None
        try:
            reply = await self._reply(call, meter)
            # Charge a pool of credits by its price list, a bound with the provider's bill where that is known.
            listed = reply.usage.cost(self._terms_of(call.speaker.model).price)
            if self._lowers_limit:
                meter.settle(listed, None if meter.money is None else reply.bill)
            else:
                meter.settle(listed if reply.bill is None else reply.bill, reply.bill)
        finally:
            meter.spare()
            self._record(call, reply, meter)
        await self.recorder.flush()
        return Exchange(replace(reply, limit=call.limit), call.messages)

    def _meter(self, call: Call) -> CallMeter:
        """The payer of a call: its purse, and beside a pool of credits the bound of the run where a bill is known."""
        terms = self._terms_of(call.speaker.model)
        return CallMeter(
            call.purse,
            terms.price,
            call.step,
            call.inputs,
            call.limit,
            reserved=call.reserved,
            lost=partial(self._lost, call),
            money=None if self._bound is None or terms.billed is None else Money(self._bound, terms.billed),
        )

    async def _reply(self, call: Call, meter: CallMeter) -> Reply:
        speaker = call.speaker
        if (outsider := self.outsiders(speaker.model)) is not None:
            started = time.monotonic()
            reply = await self.steps.waiting(partial(outsider.reply, call))
            meter.begin()
            return replace(reply, seconds=time.monotonic() - started)
        with nullcontext() if self._live is None else self._live.reply(call.step, speaker.agent):
            return await self.hub.call(
                speaker.model,
                call.messages,
                tools=call.tools,
                seed=call.seed,
                max_output_tokens=call.limit,
                temperature=self._temperature,
                insist=self._insist,
                meter=meter,
                response_format=call.response_format,
                tool_choice=call.tool_choice,
                config={
                    "run_name": call.name,
                    "tags": [tag for tag in (speaker.team, speaker.agent) if tag],
                    "metadata": {**call.where, "model": speaker.model, "run": self.recorder.run_id},
                },
            )

    def _record(self, call: Call, reply: Reply | None, meter: CallMeter) -> None:
        """Record a call that brought a reply."""
        if reply is not None and meter.paid is not None:
            self._events.replied(call, reply, self._terms_of(call.speaker.model).price, meter.paid, meter.excess)

    def _lost(self, call: Call, entry: JournalLine, reason: str, bill: int | None) -> None:
        """Record the charge of an attempt that brought no reply and may be billed."""
        self._events.lost(call, self._terms_of(call.speaker.model).price, entry, reason, bill)

    def _compacted(self, call: Call) -> Call:
        """The call with a transcript that leaves room for a whole reply in the model's context.

        A limit on the reply that is more than half of the context leaves half of it to the transcript.
        """
        terms = self._terms_of(call.speaker.model)
        room = max(terms.context - terms.output, terms.context // 2)
        if call.inputs <= room:
            return call
        sent = compact(call.messages, lambda transcript: estimate_messages(transcript, call.tools), room)
        if sent == call.messages:
            return call
        shorter = call.with_messages(sent)
        self._events.compacted(call, shorter.inputs, terms.context)
        return shorter

    def _shortened(self, call: Call) -> list[BaseMessage] | None:
        """A shorter transcript for a call that overflowed the model's context; None if there is none."""
        shorter = shorten(call.messages)
        self._events.overflowed(call, is_shortened=shorter is not None)
        return shorter


class RecordedOutsider:
    """Answers from the record that a rerun follows: a person, or an agent whose model calls are made again from it."""

    def __init__(self, caller: Caller, past: Recorder) -> None:
        self._caller, self._past = caller, past

    async def reply(self, call: Call) -> Reply:
        """The recorded reply.

        Raises
        ------
        NewStepError
            If the record holds none.
        """
        numbered = (self._past.done("llm_call", inner_step(call.step, number)) for number in count())
        for event in cast(Iterator[LLMCallEvent], takewhile(lambda event: event is not None, numbered)):
            sent = [message_from_data(self._past.bodies[number]) for number in event.messages]
            speaker = replace(call.speaker, model=event.model)
            limit = event.output_limit or 0
            await self._caller.call(event.step, speaker, sent, call.purse, name=event.step, limit=limit)
        event = cast(LLMCallEvent, self._past.recorded("llm_call", call.step))
        return replace(recorded_reply(event, self._past.bodies), bill=0)
