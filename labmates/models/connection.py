"""A model at its endpoint: attempts with slots, time limits and backoff."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import AIMessage

from labmates.budgets.budget import CallMeter
from labmates.budgets.prices import Price
from labmates.budgets.tokens import Usage, read_usage, text_of
from labmates.models.attached import names_in, restored
from labmates.models.endpoints import Endpoint
from labmates.models.entries import Access
from labmates.models.error_bodies import ErrorBody
from labmates.models.failures import (
    LONGEST_WAIT,
    UNREADABLE,
    UNSUPPORTED,
    AttemptError,
    Failure,
    Pause,
    call_error,
    failure_of,
    mentions,
    pause_error,
    unreadable,
)
from labmates.models.names import ModelName
from labmates.models.options import ModelOptions
from labmates.models.prefix import CACHE_FIELD
from labmates.models.provider_words import COST, FILTERED, cost_of, finish_word, meaning_of_finish
from labmates.models.redact import Redactor
from labmates.models.sending import Attempt, Request, Send
from labmates.util.seeds import derive

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the output limit: most compatible servers know the first, OpenAI's newer models only the second."""

UNASKED = ("stream_options", CACHE_FIELD)
"""Parameters that are added to calls."""
OPTIONAL = ("seed", "temperature", *UNASKED)
"""Parameters that may be left out."""

REQUIRING = ("anthropic", "bedrock", "google")
"""Beginnings of the names of providers that require what they attached: a refusal of it is never learnt."""
_EMPTY_REASONING = {"message": {"reasoning_content": ""}}
_NO_SIGNATURE = {"call": {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}}
FILLED = (
    (re.compile(r"reasoning_content[^.]{0,80}(?:must be passed|missing|required)"), _EMPTY_REASONING),
    (re.compile(r"missing\b.{0,8}thought_signature"), _NO_SIGNATURE),
)
"""Fields that servers require of replies with calls, by the text of the refusal (DeepSeek and Moonshot; Google), with
their values where none were kept: in replies of another model or of an earlier version. Google documents its value."""


@dataclass(frozen=True)
class Dialect:
    """What one model takes in a request: parameters, and what was attached to its replies."""

    limit: str  # name of the limit on a reply's tokens
    # Optional parameters and attached fields that the server refused, and a name of the limit that it refused.
    dropped: frozenset[str] = frozenset()
    filled: Mapping[str, Any] | None = None  # fields that the server requires of replies with calls

    def arguments(self, request: Request) -> dict[str, Any]:
        """The parameters of one call; insisted ones are included even if refused before."""
        wanted: dict[str, Any] = {"seed": request.seed, self.limit: request.max_output_tokens}
        if request.temperature is not None:
            wanted["temperature"] = request.temperature
        if "stream_options" in self.dropped:
            wanted["stream_usage"] = False  # LangChain's name
        refused = self.dropped - request.insisted
        arguments = {name: value for name, value in wanted.items() if name not in refused}
        return {**arguments, CACHE_FIELD: False} if CACHE_FIELD in self.dropped else arguments

    def without_refused(self, body: ErrorBody, sent: Collection[str], attached: Collection[str] = ()) -> Dialect | None:
        """The dialect without the parameter that the server reports as unsupported, given the `sent` names.

        `attached` are the names of fields that were sent back to the server. None if the refusal isn't about something
        that can be omitted, renamed or filled; a too large value is not.
        """
        for text, filled in FILLED:
            if text.search(body.message) and not (filled.items() <= (self.filled or {}).items()):
                return replace(self, filled={**(self.filled or {}), **filled})
        if not UNSUPPORTED.search(f"{body.message} {body.code} {body.type}"):
            return None
        named = [body.param] if body.param in sent else [name for name in sent if mentions(body.message, name)]
        named += [name for name in attached if name not in named and mentions(body.message, name)]
        for name in named:
            if name in OPTIONAL or name in attached:
                return replace(self, dropped=self.dropped | {name})
            if name in LIMITS and not self.dropped & set(LIMITS):
                other = LIMITS[1 - LIMITS.index(name)]
                return replace(self, limit=other, dropped=self.dropped | {name})
        return None


_MINUTE = 60.0


@dataclass(eq=False)
class Pace:
    """Rate limits of requests and tokens per minute (None: unlimited); a request waits for room in the last minute.

    Tokens are counted when a reply reports them, so calls in flight may exceed the limit once.
    """

    requests: int | None
    tokens: int | None
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _starts: deque[float] = field(default_factory=deque, init=False)
    _counts: deque[tuple[float, int]] = field(default_factory=deque, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def start(self) -> None:
        """Wait until a request may start."""
        async with self._turn:
            while (wait := self._wait()) > 0:
                await self.sleep(wait)
            self._starts.append(self.clock())

    def used(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        self._counts.append((self.clock(), tokens))

    def _wait(self) -> float:
        past = self.clock() - _MINUTE
        while self._starts and self._starts[0] <= past:
            self._starts.popleft()
        while self._counts and self._counts[0][0] <= past:
            self._counts.popleft()
        waits = [0.0]
        if self.requests is not None and len(self._starts) >= self.requests:
            waits.append(self._starts[len(self._starts) - self.requests] - past)
        if self.tokens is not None and sum(count for _, count in self._counts) >= self.tokens:
            waits.append(self._counts[0][0] - past)
        return max(waits)


class Slots:
    """The limits of one model: rate, calls in flight, and calls in flight at its endpoint."""

    def __init__(self, endpoint: asyncio.Semaphore, access: Access) -> None:
        self._endpoint = endpoint
        self._model = asyncio.Semaphore(access.max_concurrent_calls) if access.max_concurrent_calls else nullcontext()
        limited = access.requests_per_minute or access.tokens_per_minute
        self._pace = Pace(access.requests_per_minute, access.tokens_per_minute) if limited else None

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Hold a slot during an attempt."""
        # The endpoint's slot last: calls that wait for the model's limits must not hold one.
        async with self._model:
            if self._pace is not None:
                await self._pace.start()
            async with self._endpoint:
                yield

    def used(self, message: AIMessage) -> None:
        """Count the tokens of a reply."""
        if self._pace is not None and message.usage_metadata:
            self._pace.used(message.usage_metadata["total_tokens"])


@dataclass
class CallLog:
    """The number of HTTP attempts of a call, and the failures."""

    attempts: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Backoff:
    """The wait before the next attempt, in seconds."""

    first: float = 0.5  # wait after the first failure; it doubles with each further failure
    longest: float = 30.0  # longest wait without ``Retry-After``
    longest_asked: float = LONGEST_WAIT  # longest wait with ``Retry-After``

    def delay(self, seed: int, failures: int, retry_after: float | None = None) -> float:
        """The wait after a number of consecutive `failures`.

        Waits have jitter, so that callers refused together don't return together: 50 % to 100 % of our own wait, 100 %
        to 110 % of the server's.
        """
        share = random.Random(derive(seed, "retry", failures)).random()
        if retry_after is not None:
            asked = min(retry_after, self.longest_asked)
            return asked + 0.1 * share * (asked + self.first)
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 32)) * (0.5 + 0.5 * share)


@dataclass
class Connection:
    """A model at its endpoint."""

    # Which model, and where.
    model: ModelName
    endpoint: Endpoint
    send: Send  # makes one attempt
    dialect: Dialect  # parameters that the model supports, updated after refusals
    slots: Slots  # entered during each attempt: the limits of the endpoint and of the model
    options: ModelOptions  # time limit of an attempt, number of retries
    backoff: Backoff  # waits between attempts
    redact: Redactor  # removes secrets from errors
    source: str  # its name in what it attaches to replies
    price: Price | None = None  # the provider's price; None if unknown
    is_foreign: bool = True  # whether another package reads the answers and raises its own errors
    paused: Pause | None = None  # why nothing is sent to the model any more
    closed: asyncio.Event = field(default_factory=asyncio.Event)  # set with the pause

    async def ask(self, request: Request, log: CallLog) -> AIMessage:
        """Make the call with retries; `log` stays up to date if it fails.

        A prompt that a filter of the provider blocked brings an empty reply, with the finish reason ``content_filter``.
        Raises `EndpointError` if the server refused the call, or failed at every attempt; `ContextOverflowError` if the
        prompt is too long for the model; `ModelPausedError` if the server takes no calls for hours, then for all later
        calls too.
        """
        failed = 0
        while True:
            self._check_open(log)
            dialect = self.dialect
            arguments = dialect.arguments(request)
            try:
                return await self._attempt(request, dialect, arguments, log)
            except AttemptError as error:
                failure = error.failure
            log.failures.append(failure)
            if self._learns(dialect, [name for name in arguments if name not in request.insisted], request, failure):
                continue  # at once, without what the server refused
            failed += 1
            if failure.kind == "filtered":
                return filtered_message(failure)
            if failure.kind == "later":
                self.paused = self.paused or Pause(failure, time.time())
                self.closed.set()
                self._check_open(log)
            if failure.kind != "retry" or failed > self.options.max_retries:
                # Without the cause, which may quote the key.
                raise call_error(self.model, self.endpoint, log.attempts, log.failures) from None
            # No slot is held during the wait, which a pause ends.
            with suppress(TimeoutError):
                delay = self.backoff.delay(request.seed, failed, failure.retry_after)
                await asyncio.wait_for(self.closed.wait(), delay)

    def _check_open(self, log: CallLog) -> None:
        if self.paused is not None:
            raise pause_error(self.model, self.endpoint, self.paused, log.attempts, log.failures)

    async def _attempt(self, request: Request, dialect: Dialect, arguments: dict[str, Any], log: CallLog) -> AIMessage:
        """Send the request once, when there is a slot, within its time."""
        messages = restored(request.messages, dialect.dropped, dialect.filled)
        limit = self.options.call_timeout
        attempt = Attempt(limit, request.max_output_tokens)
        async with self.slots.entered():
            self._check_open(log)
            request.meter.begin()
            log.attempts += 1
            metadata = {**request.config.get("metadata", {}), "attempt": log.attempts}
            numbered = replace(request, messages=messages, config={**request.config, "metadata": metadata})
            try:
                async with attempt.under_way() as timer:
                    message = await self.send(numbered, arguments)
                assert isinstance(message, AIMessage)
                if attempt.cost is not None:
                    message.response_metadata.setdefault(COST, attempt.cost)
                if (failure := stopped_by_server(message)) is not None:
                    raise AttemptError(failure)
            except asyncio.CancelledError:
                _account(request.meter, attempt, "cancelled", self.price)
                raise
            except Exception as error:
                failure = failure_of(error, self.redact)
                if failure is None and self.is_foreign and attempt.is_sent and isinstance(error, UNREADABLE):
                    failure = unreadable(error, self.redact)
                if timer.expired():
                    failure = Failure("retry", f"no answer within {limit:g} s", billable=True)
                if failure is None:
                    _account(request.meter, attempt, type(error).__name__, self.price)
                    raise
                _account(request.meter, attempt, str(failure), self.price, failure)
                raise AttemptError(failure) from None
        self.slots.used(message)
        return message

    def _learns(self, dialect: Dialect, sent: list[str], request: Request, failure: Failure) -> bool:
        if failure.kind != "refused" or failure.status not in (400, 422):
            return False
        if self.dialect is dialect:
            requires = self.model.provider.startswith(REQUIRING)
            attached = () if requires else set(names_in(request.messages)) - dialect.dropped
            smaller = dialect.without_refused(failure.body, [*sent, *UNASKED], attached)
            self.dialect = smaller or dialect
        # Else another call has updated the dialect meanwhile.
        return self.dialect is not dialect


def _account(
    meter: CallMeter, attempt: Attempt, reason: str, price: Price | None, failure: Failure | None = None
) -> None:
    """Charge a failed attempt by the usage or cost that the server reported, else as one that may be billed."""
    if failure is not None and failure.kind == "filtered":
        return  # The caller gets an empty reply in its place, and pays for that.
    if failure is not None and (failure.usage is not None or failure.cost):
        usage = failure.usage or Usage(0, 0)
        bill = failure.cost if failure.cost is not None or price is None else usage.cost(price)
        meter.failed(reason, usage, bill)
    elif attempt.is_sent and (failure is None or failure.billable):
        meter.lost(reason)
    else:
        meter.release()


def stopped_by_server(message: AIMessage) -> Failure | None:
    """The failed attempt in a message that the server ended, not the model; None if there is none.

    A message without content is the model's only if it says how it ended.
    """
    meaning = meaning_of_finish(message.response_metadata)
    word = finish_word(message.response_metadata)
    if meaning == "server":
        reason = f"the server stopped: finish reason '{word}'"
    elif meaning is None and not _has_content(message):
        reason = f"an empty answer with the finish reason '{word}'" if word else "an empty answer without finish reason"
    else:
        return None
    return Failure("retry", reason, usage=_reported(message), cost=cost_of(message))


def filtered_message(failure: Failure) -> AIMessage:
    """The message that stands for the reply to a prompt that a filter of the provider blocked."""
    return AIMessage("", response_metadata={"finish_reason": "content_filter", FILTERED: str(failure)})


def _has_content(message: AIMessage) -> bool:
    has_reasoning = bool(message.additional_kwargs.get("reasoning_content"))
    blocks = message.content if isinstance(message.content, list) else []
    return bool(
        text_of(message.content).strip() or message.tool_calls or message.invalid_tool_calls or has_reasoning or blocks
    )


def _reported(message: AIMessage) -> Usage | None:
    """The reported usage; None if it counts no token."""
    counts = cast("Mapping[str, Any] | None", message.usage_metadata) or {}
    if not counts.get("output_tokens") and not counts.get("input_tokens"):
        return None
    usage, _ = read_usage(counts, prompt=lambda: 0, output=lambda: 0, reasoning=0)
    return Usage(usage.input_tokens, usage.output_tokens)
