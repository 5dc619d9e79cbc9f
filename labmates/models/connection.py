"""One model at its endpoint: attempts, each within a slot and a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig

from labmates.models.attempt import Attempt
from labmates.models.endpoints import Endpoint
from labmates.models.explain import call_error
from labmates.models.failures import AttemptError, Failure, failure_of
from labmates.models.limits import Slots
from labmates.models.metering import Meter, NoMeter
from labmates.models.names import ModelName
from labmates.models.provider_quirks import UNASKED, Dialect
from labmates.models.redact import Redactor
from labmates.models.retry import Backoff, persist


@dataclass(frozen=True)
class Request:
    """What a call asks for; `tools` are schemas as OpenAI's JSON has them, `config` is LangChain's.

    `insisted` are parameters that must be sent: where the server refuses one, the call fails. `meter` pays for the
    attempts. `response_format` is as OpenAI's protocol has it. `origin` tells the call apart from others of the same
    content.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]]
    seed: int
    max_output_tokens: int
    temperature: float | None
    config: RunnableConfig
    insisted: frozenset[str] = frozenset()
    meter: Meter = field(default_factory=NoMeter)
    response_format: Mapping[str, Any] | None = None
    origin: str = ""


Send = Callable[[Request, dict[str, Any]], Awaitable[BaseMessage]]
"""Sends a request once, with these parameters, through a provider's chat model."""


@dataclass
class CallLog:
    """What a call took: HTTP attempts, and those among them that failed."""

    attempts: int = 0
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Persistence:
    """How long a call is tried: time limit of an attempt in seconds, further attempts, waits between them."""

    timeout: float
    max_retries: int
    backoff: Backoff


@dataclass
class Connection:
    """A model at its endpoint.

    Attributes
    ----------
    model, endpoint
        Which model, and where.
    send
        Makes one attempt.
    dialect
        Parameters that the model understands; what is learnt from a refusal is kept here.
    slots
        Entered for the length of each attempt: bounds the calls in flight at the endpoint, and the model's own limits.
    persistence
        How long a call is tried.
    redact
        Takes the secrets out of errors.
    """

    model: ModelName
    endpoint: Endpoint
    send: Send
    dialect: Dialect
    slots: Slots
    persistence: Persistence
    redact: Redactor

    async def ask(self, request: Request, log: CallLog) -> AIMessage:
        """Make the call, with as many attempts as it may take; `log` is kept up to date also when it fails.

        Raises
        ------
        EndpointError
            If the server refused it, or failed at every attempt.
        ContextOverflowError
            If the prompt is too long for the model.
        """
        effort = self.persistence
        try:
            return await persist(
                lambda: self._attempt(request, log),
                max_retries=effort.max_retries,
                seed=request.seed,
                backoff=effort.backoff,
                failures=log.failures,
            )
        except AttemptError:
            # Without the cause: it may quote the key.
            raise call_error(self.model, self.endpoint, log.attempts, log.failures) from None

    async def _attempt(self, request: Request, log: CallLog) -> AIMessage:
        """Send the request; if the server refused a parameter, again at once without it."""
        while True:
            dialect = self.dialect
            arguments = dialect.arguments(
                seed=request.seed,
                max_output_tokens=request.max_output_tokens,
                temperature=request.temperature,
                insisted=request.insisted,
            )
            try:
                async with self.slots.entered():
                    request.meter.begin()
                    log.attempts += 1
                    message = await self._send_in_time(_numbered(request, log.attempts), arguments)
            except AttemptError as error:
                sent = [name for name in arguments if name not in request.insisted]
                if not self._learns(dialect, sent, error.failure):
                    raise
                log.failures.append(error.failure)
                continue
            assert isinstance(message, AIMessage)
            self.slots.used(message)
            return message

    async def _send_in_time(self, request: Request, arguments: dict[str, Any]) -> BaseMessage:
        limit = self.persistence.timeout
        attempt = Attempt(limit, request.max_output_tokens, request.origin)
        try:
            async with attempt.under_way() as timer:
                return await self.send(request, arguments)
        except asyncio.CancelledError:
            _account(request.meter, attempt, "cancelled", billable=True)
            raise
        except Exception as error:
            failure = failure_of(error, self.redact)
            if timer.expired():
                failure = Failure("retry", f"no answer within {limit:g} s", billable=True)
            if failure is None:
                _account(request.meter, attempt, type(error).__name__, billable=True)
                raise
            _account(request.meter, attempt, str(failure), billable=failure.billable)
            raise AttemptError(failure) from None

    def _learns(self, dialect: Dialect, sent: list[str], failure: Failure) -> bool:
        if failure.kind != "refused" or failure.status not in (400, 422):
            return False
        if self.dialect is dialect:
            learnt = dialect.without_refused(failure.body, [*sent, *UNASKED])
            self.dialect = learnt or dialect
        # Else another call has learnt something meanwhile.
        return self.dialect is not dialect


def _account(meter: Meter, attempt: Attempt, reason: str, *, billable: bool) -> None:
    if billable and attempt.is_sent:
        meter.lost(reason)
    else:
        meter.spare()


def _numbered(request: Request, attempt: int) -> Request:
    metadata = {**request.config.get("metadata", {}), "attempt": attempt}
    return replace(request, config={**request.config, "metadata": metadata})
