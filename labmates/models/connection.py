"""A model at its endpoint: attempts with slots, time limits and backoff."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from labmates.budgets.meter import CallMeter, free_meter
from labmates.budgets.prices import Price
from labmates.budgets.usage import Usage
from labmates.models.attached import names_in, restored
from labmates.models.attempt import Attempt
from labmates.models.endings import filtered_message, stopped_by_server
from labmates.models.endpoints import Endpoint
from labmates.models.entries import Access
from labmates.models.errors import ContextOverflowError, EndpointError, ModelCallError, ModelPausedError
from labmates.models.failures import (
    LONGEST_WAIT,
    UNREADABLE,
    AttemptError,
    Failure,
    context_limits,
    failure_of,
    unreadable,
)
from labmates.models.names import ModelName
from labmates.models.provider_quirks import REQUIRING, UNASKED, UNSUPPORTED, Dialect, mentions
from labmates.models.redact import Redactor
from labmates.models.reported_costs import COST
from labmates.util.seeds import derive

_MINUTE = 60.0


class Pace:
    """Rate limits of requests and tokens per minute (None: unlimited); a request waits for room in the last minute.

    Tokens are counted when a reply reports them, so calls in flight may exceed the limit once.
    """

    def __init__(
        self,
        requests: int | None,
        tokens: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._requests = requests
        self._tokens = tokens
        self._clock = clock
        self._sleep = sleep
        self._starts: deque[float] = deque()
        self._counts: deque[tuple[float, int]] = deque()
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Wait until a request may start."""
        async with self._turn:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._starts.append(self._clock())

    def used(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        self._counts.append((self._clock(), tokens))

    def _wait(self) -> float:
        past = self._clock() - _MINUTE
        while self._starts and self._starts[0] <= past:
            self._starts.popleft()
        while self._counts and self._counts[0][0] <= past:
            self._counts.popleft()
        waits = [0.0]
        if self._requests is not None and len(self._starts) >= self._requests:
            waits.append(self._starts[len(self._starts) - self._requests] - past)
        if self._tokens is not None and sum(count for _, count in self._counts) >= self._tokens:
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


ANY_TOOL: Final = "required"
"""The tool choice that forces a call of any tool."""


@dataclass(frozen=True)
class Request:
    """The contents of a call; `tools` and `response_format` follow OpenAI's protocol, `config` is LangChain's.

    `insisted` are required parameters: if the server refuses one, the call fails. `meter` pays for the attempts.
    `tool_choice` is a tool's name, `ANY_TOOL`, or empty for an optional call. `origin` distinguishes calls with equal
    contents.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]]
    seed: int
    max_output_tokens: int
    temperature: float | None
    config: RunnableConfig
    insisted: frozenset[str] = frozenset()
    meter: CallMeter = field(default_factory=free_meter)
    response_format: Mapping[str, Any] | None = None
    tool_choice: str = ""
    origin: str = ""


Send = Callable[[Request, dict[str, Any]], Awaitable[BaseMessage]]
"""Sends a request once, with these parameters, through a provider's chat model."""


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


@dataclass(frozen=True)
class Persistence:
    """The retry policy of a call: time limit of an attempt in seconds, further attempts, waits between them."""

    timeout: float
    max_retries: int
    backoff: Backoff


@dataclass(frozen=True)
class Pause:
    """The failure for which a model takes no calls, and when it came (Unix time)."""

    failure: Failure
    since: float

    @property
    def resume(self) -> float | None:
        """When the model may take calls again (Unix time), if the server said so."""
        wait = self.failure.retry_after
        return None if wait is None or wait <= LONGEST_WAIT else self.since + wait


@dataclass
class Connection:
    """A model at its endpoint."""

    # Which model, and where.
    model: ModelName
    endpoint: Endpoint
    send: Send  # makes one attempt
    dialect: Dialect  # parameters that the model supports, updated after refusals
    slots: Slots  # entered during each attempt: the limits of the endpoint and of the model
    persistence: Persistence  # the retry policy
    redact: Redactor  # removes secrets from errors
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
        effort, failed = self.persistence, 0
        while True:
            self._check_open(log)
            try:
                return await self._attempt(request, log)
            except AttemptError as error:
                failure = error.failure
                log.failures.append(failure)
            failed += 1
            if failure.kind == "filtered":
                return filtered_message(failure)
            if failure.kind == "later":
                self.paused = self.paused or Pause(failure, time.time())
                self.closed.set()
                self._check_open(log)
            if failure.kind != "retry" or failed > effort.max_retries:
                # Without the cause, which may quote the key.
                raise call_error(self.model, self.endpoint, log.attempts, log.failures) from None
            # No slot is held during the wait, which a pause ends.
            with suppress(TimeoutError):
                delay = effort.backoff.delay(request.seed, failed, failure.retry_after)
                await asyncio.wait_for(self.closed.wait(), delay)

    def _check_open(self, log: CallLog) -> None:
        if self.paused is not None:
            raise pause_error(self.model, self.endpoint, self.paused, log)

    async def _attempt(self, request: Request, log: CallLog) -> AIMessage:
        """Send the request; if the server refuses a parameter, resend at once without it."""
        while True:
            dialect = self.dialect
            arguments = dialect.arguments(
                seed=request.seed,
                max_output_tokens=request.max_output_tokens,
                temperature=request.temperature,
                insisted=request.insisted,
            )
            messages = restored(request.messages, dialect.dropped, dialect.filled)
            try:
                async with self.slots.entered():
                    self._check_open(log)
                    request.meter.begin()
                    log.attempts += 1
                    message = await self._send_in_time(_numbered(request, messages, log.attempts), arguments)
            except AttemptError as error:
                sent = [name for name in arguments if name not in request.insisted]
                if not self._learns(dialect, sent, request.messages, error.failure):
                    raise
                log.failures.append(error.failure)
                continue
            self.slots.used(message)
            return message

    async def _send_in_time(self, request: Request, arguments: dict[str, Any]) -> AIMessage:
        limit = self.persistence.timeout
        attempt = Attempt(limit, request.max_output_tokens, request.origin)
        try:
            async with attempt.under_way() as timer:
                message = await self.send(request, arguments)
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
        return message

    def _learns(self, dialect: Dialect, sent: list[str], messages: Sequence[BaseMessage], failure: Failure) -> bool:
        if failure.kind != "refused" or failure.status not in (400, 422):
            return False
        if self.dialect is dialect:
            attached = () if self.model.provider.startswith(REQUIRING) else set(names_in(messages)) - dialect.dropped
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


def _numbered(request: Request, messages: Sequence[BaseMessage], attempt: int) -> Request:
    metadata = {**request.config.get("metadata", {}), "attempt": attempt}
    return replace(request, messages=messages, config={**request.config, "metadata": metadata})


def call_error(model: ModelName, endpoint: Endpoint, attempts: int, failures: Sequence[Failure]) -> ModelCallError:
    """The error of a failed call: the last failure and its remedy."""
    last = failures[-1]
    kind = ContextOverflowError if last.kind == "overflow" else EndpointError
    if last.kind == "overflow":
        text = _overflow(last)
    elif last.kind == "refused":
        text = _refusal(last, model, endpoint)
    else:
        text = f"no reply after {attempts} attempt{'s' if attempts > 1 else ''}; the last one: {last}"
    error = kind(
        f"{model} at {endpoint.address}: {text}",
        model=str(model),
        endpoint=endpoint.address,
        status=last.status,
        attempts=attempts,
        errors=tuple(map(str, failures)),
    )
    if isinstance(error, ContextOverflowError):
        error.limit, error.requested = context_limits(last.body)
    return error


def pause_error(model: ModelName, endpoint: Endpoint, pause: Pause, log: CallLog) -> ModelPausedError:
    """The error of a call to a model that takes none for hours: when to resume, and why."""
    if pause.resume is None:
        when = "until its quota or credit is renewed"
    else:
        hours, minutes = divmod(ceil((pause.resume - pause.since) / 60), 60)
        moment = datetime.fromtimestamp(pause.resume, UTC) + timedelta(seconds=59)  # rounded up to a minute
        when = f"until {moment:%Y-%m-%d %H:%M} UTC ({hours} h {minutes} min after the refusal)"
    error = ModelPausedError(
        f"{model} at {endpoint.address} takes no calls {when}: {pause.failure}",
        model=str(model),
        endpoint=endpoint.address,
        status=pause.failure.status,
        attempts=log.attempts,
        errors=tuple(map(str, log.failures)),
    )
    error.resume = pause.resume
    return error


def _overflow(failure: Failure) -> str:
    limit, requested = context_limits(failure.body)
    if limit is None:
        return f"the prompt is too long for the model's context ({failure.reason})"
    needed = "" if requested is None else f"; the call needs {requested:,}"
    return f"the prompt is too long: the server takes {limit:,} tokens{needed}"


def _refusal(failure: Failure, model: ModelName, endpoint: Endpoint) -> str:
    key = endpoint.key_name or "the environment"
    match failure.status:
        case 401 if not endpoint.key:
            return f"the server wants a key, and {key} is not set"
        case 401:
            return f"the server refused the key in {key} ({failure.reason})"
        case 403:
            return f"the key in {key} may not use this model ({failure.reason})"
        case 404:
            unknown = f"the server doesn't know the model '{model.name}', or the base URL is not that of its API"
            return f"{unknown} ({failure.reason})"
        case 400 | 422 if (setting := _refused_setting(failure, model)) is not None:
            reason = f"the server does not take the setting {setting} ({failure.reason})"
            return f"{reason}; leave it out of the model's settings, or of the condition"
        case _:
            return f"the server refused the call ({failure})"


def _refused_setting(failure: Failure, model: ModelName) -> str | None:
    """The setting that the server reports as unsupported; None if it names none."""
    body = failure.body
    if not UNSUPPORTED.search(f"{body.message} {body.code} {body.type}"):
        return None
    settings = model.settings.given()
    extra = [f"extra_body.{name}" for name in settings.pop("extra_body", {})]
    named = [*extra, *settings, "temperature"]  # The temperature may be the condition's.
    return next((name for name in named if mentions(f"{body.message} {body.param}", name.rpartition(".")[2])), None)
