"""Paid model calls: reserve, call, settle, record; recorded calls are replayed.

Agents, players and judges share this path, so that calls are charged, counted, seeded and traced in one way.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from operator import mul
from typing import Any, Final, TypeVar, Unpack

from langchain_core.messages import BaseMessage

from labmates.agents.transcript import append_line, compact, shorten, with_limit, with_persona
from labmates.budgets.budget import CallMeter, LostAttempt, Money
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, Ledger
from labmates.budgets.prices import FREE, Price, PriceList
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import TEMPLATE_TOKENS, estimate_messages, token_bound
from labmates.models.attached import for_model
from labmates.models.conversation import Accept, Conversation, Exchange, Read
from labmates.models.errors import ContextOverflowError
from labmates.models.hub import ModelHub
from labmates.models.names import parse_model
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.models.settings import Thoughts
from labmates.records.events import FailedReplyEvent
from labmates.records.recorder import Recorder
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Call, CallOptions, CallRecord, Outsider, Speaker
from labmates.workflows.calls.remarks import sent_back
from labmates.workflows.calls.stop_signal import Steps

T = TypeVar("T")
Listens = Callable[[str, str], AbstractContextManager[None]]
"""Entered while a model replies, with the step and the agent."""

CONTEXT_TOKENS = 131_072
"""Default context of a model: that of most models in use."""
LEAST_REPLY: Final = 256
"""Minimum room for a reply, in tokens, unless its limit is lower: longer prompts are refused."""
MOST_SCALE = 2.0
"""Highest correction of an estimate of input by a server's report, which may be wrong."""
_MARGIN = 1.03
_ROOM = 1.1
"""How much more than any before the next prompt may have."""
_LIMIT_LINE_TOKENS = 32
"""Upper bound of the line that states the limit on a reply."""


@dataclass(frozen=True)
class Terms:
    """The price of a model's calls, and their limits in tokens."""

    price: Price  # price for charges
    billed: Price | None  # the provider's price; None if unknown
    # Whether the estimate of a call's input is enough to reserve: the price is the provider's, or the model scripted.
    counted: bool
    output: int  # output limit before funds lower it: the model's, else the condition's
    window: int | None  # context of the model; None if unknown
    context: int  # limit of transcripts; longer ones are compacted


@dataclass(eq=False)
class Caller:
    """The model calls of one run.

    Parameters
    ----------
    max_output_tokens
        Output limit of each call.
    bound
        Spending limit of the run in dollars, beside a purse of credits; calls draw on both, on the bound by the
        provider's bill.
    lowers_limit
        True for a purse of credits, charged by the price list: a limit that it can't pay is lowered, down to
        `LEAST_OUTPUT_TOKENS`. False for a purse in money, charged by the provider's bill if known: a call that it can't
        pay is refused.
    insist
        Whether a call fails if the server refuses the temperature; otherwise it is repeated without it.
    context_tokens
        Context for transcript and reply, unless a model's settings give it; None for that of the shipped table. Longer
        transcripts, and those above `CONTEXT_TOKENS`, are compacted before the call; the limit on the reply is lowered
        to the rest of a known context.
    listens
        Lets the run's pages follow a reply; None without pages.
    thoughts
        Which of its earlier thoughts a model receives again.
    tells_limits
        Whether agents are told of a limit that funds have lowered.

    Attributes
    ----------
    outsiders
        Answerers in place of a model, by the model's name; their replies cost nothing.
    """

    hub: ModelHub
    recorder: Recorder
    _: KW_ONLY
    seed: int
    prices: PriceList
    max_output_tokens: int
    temperature: float | None
    steps: Steps = field(default_factory=Steps)
    context_tokens: int | None = None
    lowers_limit: bool = True
    insist: bool = True
    bound: Ledger | None = None
    listens: Listens | None = None
    thoughts: Thoughts = "tools"
    tells_limits: bool = True
    _scales: dict[str, float] = field(default_factory=dict, init=False)
    # Of the prompts of a model and an agent, the most that was reported per estimated token and per byte.
    _most: dict[tuple[str, str], list[float]] = field(default_factory=dict, init=False)
    # The same of all agents of a model, up to the last `share_reports`.
    _shared: dict[str, list[float]] = field(default_factory=dict, init=False)
    _terms: dict[str, Terms] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._events = CallRecord(self.recorder)
        self.outsiders: Callable[[str], Outsider | None] = lambda _model: None

    async def answer(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        purse: Purse,
        read: Read[T],
        *,
        name: str,
        repair_turns: int,
        accept: Accept[T] | None = None,
        status: Callable[[], str] = str,
        **options: Unpack[CallOptions],
    ) -> T | None:
        """The answer parsed by `read` and accepted by `accept`, after at most `repair_turns` repairs; None if unusable.

        Raises `InsufficientFundsError` and `EndpointError` as `call` does.
        """
        talk = self.conversation(step, speaker, messages, purse, name=name, status=status, **options)
        try:
            return await talk.ask(read, repair_turns=repair_turns, accept=accept)
        except (UnusableAnswerError, ContextOverflowError):
            return None

    def conversation(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        purse: Purse,
        *,
        name: str,
        first: int = 0,
        status: Callable[[], str] = str,
        **options: Unpack[CallOptions],
    ) -> Conversation:
        """A conversation with an agent: paid calls, with remarks on unusable replies.

        Parameters
        ----------
        step
            Prefix of the calls' steps, followed by their numbers.
        name
            Name of the calls in a trace; ``{}`` is replaced by the count of calls.
        status
            The line about the budget after an unusable reply.
        options
            Passed to `call`.
        """

        async def call(transcript: list[BaseMessage], number: int) -> Exchange:
            title = name.replace("{}", str(number + 1))
            return await self.call(f"{step}/{number}", speaker, transcript, purse, name=title, **options)

        def failed(number: int, reason: str) -> None:
            self.failed(f"{step}/{number}", speaker, reason)

        def send_back(transcript: list[BaseMessage], reply: Reply, problem: UnusableAnswerError) -> list[BaseMessage]:
            # Servers reject tool calls in a transcript without tools.
            kept = reply if options.get("tools") else replace(reply, tool_calls=())
            *before, last = sent_back(transcript, kept, problem)
            return [*before, append_line(last, status())]

        return Conversation(call, messages, send_back=send_back, failed=failed, number=first)

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
        """Make one call; an output limit lowered for lack of funds is stated at the end of the transcript.

        Raises `InsufficientFundsError` if the purse can't pay the call, or another attempt of it;
        `ContextOverflowError` if even the shortest transcript overflows the model's context; `EndpointError` if the
        model is unreachable or its answers are unusable; `StoppedError` if the run is stopped.

        Parameters
        ----------
        step
            Stable name of the call in the run.
        name
            Name of the call in a trace.
        """
        if (recorded := self._events.exchange(step, messages, purse, speaker.model)) is not None:
            self._learn(speaker, recorded, options.get("tools", ()))
            return self._told(recorded)
        messages = self._sent(speaker, messages)
        scale = self._scales.get(speaker.agent, 1.0)
        asked = Call(step, speaker, messages, purse, name, derive(self.seed, step), scale=scale, **options)
        asked = self._compacted(asked.with_messages(messages))
        while True:
            try:
                # A person, or an agent that makes its own calls, may take hours: a stop does not wait for them.
                async with nullcontext() if speaker.is_outside else self.steps.step():
                    return await self._paid(self._affordable(asked))
            except ContextOverflowError:
                shorter = self._shortened(asked)
                if shorter is None:
                    raise
                asked = asked.with_messages(shorter)

    def most_output(
        self, speaker: Speaker, messages: list[BaseMessage], funds: int, tools: Sequence[dict[str, Any]] = ()
    ) -> int:
        """The output limit affordable with `funds` micro-dollars for a call that states it, in tokens.

        Negative if the funds or the model's context are too small for the input, `messages` without the limit.
        """
        terms = self._terms_of(speaker)
        inputs, reserved = self._inputs(speaker, messages, tools)
        window = terms.window or inputs + terms.output
        return min(terms.output, terms.price.worst_case.most_output(reserved, funds), window - inputs)

    def reservation(
        self,
        speaker: Speaker,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any]] = (),
        output: int = LEAST_OUTPUT_TOKENS,
    ) -> int:
        """What a later reply of `output` tokens, by default the shortest one, will reserve, in micro-dollars."""
        terms, (estimate, reserved) = self._terms_of(speaker), self._inputs(speaker, messages, tools)
        # The model's first report, which comes before, ends the bound by bytes.
        inputs = reserved if self._known(speaker) else estimate
        return terms.price.worst_case.cost(inputs, min(output, terms.output))

    def share_reports(self) -> None:
        """Measure agents that have had no reply by the others of their model: at a time when nobody is called."""
        for (model, _), shares in self._most.items():
            self._shared[model] = list(map(max, self._shared.get(model, shares), shares))

    def _inputs(
        self, speaker: Speaker, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]
    ) -> tuple[int, int]:
        """The tokens of a transcript with a limit: as estimated, and as reserved."""
        sent = with_limit(self._sent(speaker, messages), self._terms_of(speaker).output)
        estimate = round(self._scales.get(speaker.agent, 1.0) * estimate_messages(sent, tools))
        return estimate, self._reserved(speaker, sent, tools, estimate)

    def _sent(self, speaker: Speaker, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """The transcript with the model's persona, and with those attachments that the model gets back."""
        if speaker.is_outside:
            return list(messages)
        return with_persona(for_model(messages, speaker.model, self.thoughts), self.hub.persona(speaker.model))

    def whole_output(self, speaker: Speaker) -> int:
        """The output limit of a speaker's calls before funds lower it."""
        return self._terms_of(speaker).output

    def failed(self, step: str, speaker: Speaker, reason: str) -> None:
        """Record an unusable reply."""
        self.recorder.once(FailedReplyEvent(step=step, team=speaker.team, agent=speaker.agent, reason=reason))

    def _terms_of(self, speaker: Speaker) -> Terms:
        if speaker.model not in self._terms:
            # Answers in place of a model cost nothing and have no length limit.
            self._terms[speaker.model] = (
                Terms(FREE, billed=FREE, counted=True, output=self.max_output_tokens, window=None, context=sys.maxsize)
                if speaker.is_outside
                else self._model_terms(speaker.model)
            )
        return self._terms[speaker.model]

    def _model_terms(self, model: str) -> Terms:
        name = parse_model(model)
        settings = name.settings
        known = self.hub.context(model)
        given = settings.context_tokens or self.context_tokens
        billed, listed = self.hub.price(model), self.prices.of(model)
        return Terms(
            price=listed if self.lowers_limit or billed is None else billed,
            billed=billed,
            counted=billed is not None or name.scripted,
            output=settings.max_output_tokens or self.max_output_tokens,
            window=given or known,
            context=given or min(known or CONTEXT_TOKENS, CONTEXT_TOKENS),
        )

    def _affordable(self, call: Call) -> Call:
        """The call with an affordable output limit, stated in the transcript if necessary.

        A pool of credits reserves an estimate of the prompt's tokens where a bound of money stands behind it, by the
        provider's price, or there is no provider; all else reserves an upper limit, which learns from reports.
        """
        terms = self._terms_of(call.speaker)
        wanted = call.limit or terms.output
        whole = reply_limit(wanted, call.inputs + _LIMIT_LINE_TOKENS, terms.window, call.speaker.model)
        # A lower limit takes no more tokens to state than the highest one.
        stated = cache(lambda: call.with_messages(with_limit(call.messages, wanted)))
        states = call.state_limit or whole < wanted
        limit = call.purse.affordable(
            call.step,
            terms.price,
            whole,
            self._reserved_for(stated() if states else call),
            stated=lambda: self._reserved_for(stated()),
            least=LEAST_OUTPUT_TOKENS if self.lowers_limit else whole,
        )
        if (states or limit < whole) and (self.tells_limits or limit == whole):
            call = replace(stated(), messages=with_limit(call.messages, limit))
        return replace(call, reserved=self._reserved_for(call), limit=limit)

    def _reserved_for(self, call: Call) -> int:
        return self._reserved(call.speaker, call.messages, call.tools, call.inputs)

    def _reserved(
        self, speaker: Speaker, messages: list[BaseMessage], tools: Sequence[dict[str, Any]], estimate: int
    ) -> int:
        """The input tokens to reserve for a call."""
        bound = token_bound(messages, tools)
        if not self.lowers_limit:
            return bound
        if self._terms_of(speaker).counted:
            return estimate
        # A bound by bytes alone leaves a third of a small pool unspent. Tokens follow the estimate, or, as some servers
        # report them, the bytes: what an agent's prompts had most of either is the measure for its next one.
        known = self._known(speaker)
        return min(bound, round(_ROOM * max(map(mul, known, _measures(messages, tools))))) if known else bound

    def _known(self, speaker: Speaker) -> list[float] | None:
        return self._most.get((speaker.model, speaker.agent), self._shared.get(speaker.model))

    async def _paid(self, call: Call) -> Exchange:
        """Make a call: the meter reserves before each attempt, and the reply is charged and recorded."""
        speaker, meter, reply = call.speaker, self._meter(call), None
        outsider = self.outsiders(speaker.model) if speaker.is_outside else None
        try:
            if outsider is not None:
                reply = await self._outside(call, outsider, meter)
            else:
                with nullcontext() if self.listens is None else self.listens(call.step, speaker.agent):
                    reply = await self.hub.call(
                        speaker.model,
                        call.messages,
                        tools=call.tools,
                        seed=call.seed,
                        max_output_tokens=call.limit,
                        temperature=self.temperature,
                        insist=self.insist,
                        meter=meter,
                        response_format=call.response_format,
                        tool_choice=call.tool_choice,
                        config={
                            "run_name": call.name,
                            "tags": [tag for tag in (speaker.team, speaker.agent) if tag],
                            "metadata": {**call.where, "model": speaker.model, "run": self.recorder.run_id},
                        },
                    )
            meter.settle(reply.usage, reply.bill)
        finally:
            meter.release()
            self._record(call, reply, meter)
        await self.recorder.flush()
        exchange = Exchange(replace(reply, limit=call.limit), call.messages)
        self._learn(speaker, exchange, call.tools)
        return self._told(exchange)

    def _learn(self, speaker: Speaker, exchange: Exchange, tools: Sequence[dict[str, Any]]) -> None:
        """Correct the estimates of an agent's next inputs by what the server reported for its last one."""
        usage, estimated = exchange.reply.usage, estimate_messages(exchange.sent, tools)
        if not usage.estimated and usage.input_tokens and estimated:
            share = usage.input_tokens / estimated
            self._scales[speaker.agent] = min(MOST_SCALE, share if share >= 1 else min(1.0, share * _MARGIN))
            shares = [usage.input_tokens / size for size in _measures(exchange.sent, tools)]
            whose = speaker.model, speaker.agent
            self._most[whose] = list(map(max, self._most.get(whose, shares), shares))

    def _told(self, exchange: Exchange) -> Exchange:
        """The exchange without the limit on the reply, if agents are not told of it."""
        return exchange if self.tells_limits else replace(exchange, reply=replace(exchange.reply, limit=None))

    def _meter(self, call: Call) -> CallMeter:
        """The payer of a call: its purse, and behind a pool of credits the run's bound."""
        terms = self._terms_of(call.speaker)
        return CallMeter(
            call.purse,
            terms.price,
            call.step,
            call.inputs,
            call.reserved,
            call.limit,
            tell=partial(self._lost, call),
            by_bill=not self.lowers_limit,
            # A server may report its bill even if its price is unknown.
            money=None if self.bound is None else Money(self.bound, terms.billed or terms.price),
        )

    async def _outside(self, call: Call, outsider: Outsider, meter: CallMeter) -> Reply:
        """The reply of an answerer in place of a model."""
        started = time.monotonic()
        reply = await self.steps.waiting(partial(outsider.reply, call))
        meter.begin()
        return replace(reply, seconds=time.monotonic() - started)

    def _record(self, call: Call, reply: Reply | None, meter: CallMeter) -> None:
        """Record a call with a reply."""
        if reply is not None and meter.paid is not None:
            self._events.replied(call, reply, self._terms_of(call.speaker).price, meter.paid, meter.excess)

    def _lost(self, call: Call, attempt: LostAttempt) -> None:
        """Record the charge of an attempt without a reply."""
        self._events.lost(call, self._terms_of(call.speaker).price, attempt)

    def _compacted(self, call: Call) -> Call:
        """The call with a transcript that leaves room for a whole reply, at most half of the model's context."""
        terms = self._terms_of(call.speaker)
        room = max(terms.context - terms.output, terms.context // 2)
        if call.inputs <= room:
            return call
        sent = compact(call.messages, lambda transcript: call.with_messages(list(transcript)).inputs, room)
        if sent == call.messages:
            return call
        shorter = call.with_messages(sent)
        self._events.compacted(call, shorter.inputs, terms.context)
        return shorter

    def _shortened(self, call: Call) -> list[BaseMessage] | None:
        """A shorter transcript after an overflow of the model's context; None if there is none."""
        shorter = shorten(call.messages)
        self._events.overflowed(call, is_shortened=shorter is not None)
        return shorter


def _measures(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """The estimated tokens and the bytes of a prompt."""
    return estimate_messages(messages, tools), token_bound(messages, tools) - TEMPLATE_TOKENS


def reply_limit(wanted: int, prompt: int, window: int | None, model: str) -> int:
    """The limit on a reply, lowered to the room that a prompt leaves in the context `window`; all in tokens.

    An unknown window (None) lowers nothing. Raises `ContextOverflowError` if the room is too small for a reply.
    """
    if window is None:
        return wanted
    left = window - prompt
    if left < min(wanted, LEAST_REPLY):
        error = ContextOverflowError(
            f"{model}: the prompt of about {prompt:,} tokens leaves no room for a reply in a context of {window:,}",
            model=model,
        )
        error.limit, error.requested = window, prompt
        raise error
    return min(wanted, left)
