"""Failed attempts, classified by exception and error body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import ceil
from typing import Any

from labmates.budgets.budget import GATEWAY_TIMEOUTS
from labmates.budgets.tokens import Usage
from labmates.models.endpoints import Endpoint
from labmates.models.error_bodies import ErrorBody, one_line, read_error
from labmates.models.errors import ContextOverflowError, EndpointError, ModelCallError, ModelPausedError
from labmates.models.names import ModelName
from labmates.models.provider_words import ErrorMeaning, meaning_of_error
from labmates.models.redact import Redactor

TIMEOUTS = {"TimeoutError", "APITimeoutError", "TimeoutException", "ModelTimeoutError"}
CONNECTIONS = {
    "APIConnectionError",
    "ModelConnectionError",
    "TransportError",
    "RequestError",
    "ClientConnectionError",
    "ClientPayloadError",
    "ConnectionError",
    "SSLError",
    "EndOfStream",
    "gaierror",
}
"""Exceptions of OpenAI's client, LangChain, httpx, httpx2, aiohttp, the standard library and anyio, by name, so that no
provider's package is imported to classify its errors."""

UNSENT = {
    "ConnectError",
    "ConnectTimeout",
    "PoolTimeout",
    "ConnectionRefusedError",
    "gaierror",
    "SSLCertVerificationError",
}
"""Exceptions raised before the request was on the wire."""


LIMIT_TEXT = re.compile(
    r"(?:maximum (?:context|model) length(?: is| of)?|context size \(|tokens > |must be <=|number of tokens allowed \("
    r"|\(T[A-Z]{2}\): limit)"
    r"\s*([\d,]+)",
    re.IGNORECASE,
)
REQUESTED_TEXT = re.compile(
    r"(?:requested|resulted in|request \(|prompt \(length|prompt contains|too long:|token count \()\s*([\d,]+)",
    re.IGNORECASE,
)
_BODIES = ("body", "details")
"""Attributes of exceptions for the parsed body of an error."""

LONGEST_REASON = 300
"""Maximum characters of a reason in an error."""

LONGEST_WAIT = 600.0
"""Maximum seconds that a call waits if a server asks for it; a longer wait is left to the user."""


class BrokenReplyError(Exception):
    """An answer with status 200 that is no reply: cut, not JSON, an error, or a page of another service.

    `body` is the error in the body, if any; `usage` the usage that came with it, and `cost` the reported cost in
    micro-dollars. `kind` is the meaning of the failure if it does not follow from the body.
    """

    def __init__(
        self,
        reason: str,
        body: Any = None,
        *,
        usage: Usage | None = None,
        cost: int | None = None,
        kind: ErrorMeaning | None = None,
    ) -> None:
        super().__init__(reason)
        self.body = body
        self.usage = usage
        self.cost = cost
        self.kind = kind


@dataclass(frozen=True)
class Failure:
    """A failed attempt; its texts are single lines, free of secrets.

    `retry_after` is the wait in seconds that the server asks for. `billable` tells that the provider may charge for the
    attempt if its request was on the wire. `usage` and `cost` (micro-dollars) are reported ones: they are charged.
    """

    kind: ErrorMeaning
    reason: str
    status: int | None = None
    retry_after: float | None = None
    body: ErrorBody = field(default_factory=lambda: ErrorBody(""))
    billable: bool = False
    usage: Usage | None = None
    cost: int | None = None

    def __str__(self) -> str:
        return f"HTTP {self.status}: {self.reason}" if self.status else self.reason


class AttemptError(Exception):
    """One attempt of a model call failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def failure_of(error: Exception, redact: Redactor) -> Failure | None:
    """The failure behind an exception of a provider's client; None if unrelated to the call (most likely a bug)."""
    if isinstance(error, AttemptError):
        return error.failure
    chain = _chain(error)
    broken = next((one for one in chain if isinstance(one, BrokenReplyError)), None)
    names = _names(chain[:1])
    causes = _chain(error, contexts=False)
    status = None if broken else _status_of(causes)
    if broken is None and status is None:
        if names & (TIMEOUTS | CONNECTIONS):
            reason = "no answer in time" if names & TIMEOUTS else redact(_connection_reason(error))
            return Failure("retry", one_line(reason, LONGEST_REASON), billable=not _names(chain) & UNSENT)
        if not names & {"APIError", "ModelError", "JSONDecodeError"}:
            return None
    body = _body_of(causes if broken is None else [broken]).redacted(redact)
    status = status or body.status
    wait = _retry_after(causes)
    is_cut = "JSONDecodeError" in names if broken is None else broken.body is None
    return Failure(
        kind=broken.kind if broken and broken.kind else _kind(status, body, wait, names, error),
        reason=one_line(body.message, LONGEST_REASON) or "no reason given",
        status=status,
        retry_after=body.wait if wait is None else wait,
        body=body,
        # A server that says that it failed, says what it charges.
        billable=status in GATEWAY_TIMEOUTS if status else is_cut,
        usage=broken.usage if broken else None,
        cost=broken.cost if broken else None,
    )


UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError)
"""Exceptions of LangChain's classes at an error in a body with status 200, at missing choices, and the like."""


def unreadable(error: Exception, redact: Redactor) -> Failure:
    """The failure behind one of the `UNREADABLE` exceptions of a provider's class that read an answer."""
    body = error.args[0] if error.args and isinstance(error.args[0], dict) else None
    told = BrokenReplyError(f"the answer can't be read ({type(error).__name__}: {one_line(str(error), 200)})", body)
    failure = failure_of(told, redact)
    assert failure is not None
    return failure


def context_limits(body: ErrorBody) -> tuple[int | None, int | None]:
    """The model's context and the call's need in tokens, where an overflow error states them."""
    limit = body.limit or _number(LIMIT_TEXT, body.message)
    return limit, body.requested or _number(REQUESTED_TEXT, body.message)


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait in seconds that a server requests by ``retry-after-ms``, or ``retry-after`` (seconds or HTTP date)."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            return float(text) * scale
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _kind(status: int | None, body: ErrorBody, wait: float | None, names: set[str], error: Exception) -> ErrorMeaning:
    if "ContextOverflowError" in names:
        return "overflow"
    kind = meaning_of_error(body.codes, body.message, status)
    if kind is None:
        kind = "retry" if getattr(error, "is_retryable", True) else "refused"
    limit, requested = context_limits(body)
    if kind == "retry" and limit and requested and requested > limit:
        return "overflow"  # of the tokens a minute: no wait helps
    asked = body.wait if wait is None else wait
    if kind == "retry" and (body.daily if asked is None else asked > LONGEST_WAIT):
        return "later"
    if kind == "later" and status == 402 and asked is not None and asked <= LONGEST_WAIT:
        return "retry"
    return kind


def _status_of(chain: Sequence[BaseException]) -> int | None:
    holders = [holder for error in chain for holder in (error, getattr(error, "response", None))]
    for holder in holders:
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
        if isinstance(holder, dict):  # of the AWS client
            value = holder.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(value, int) and value >= 300:
                return value
    return None


def _body_of(chain: Sequence[BaseException]) -> ErrorBody:
    for error in chain:
        response = getattr(error, "response", None)
        text = None
        with suppress(RuntimeError):  # the response is a stream that was not read
            text = getattr(response, "text", None)
        if isinstance(text, str) and text.strip():
            return read_error(text)
        bodies = (response if isinstance(response, dict) else None, *(getattr(error, name, None) for name in _BODIES))
        if body := next(filter(None, bodies), None):
            return read_error(body)
    if isinstance(chain[0], json.JSONDecodeError):
        return ErrorBody("the body is not JSON")
    return read_error(str(chain[0]))


def _chain(error: BaseException | None, *, contexts: bool = True) -> list[BaseException]:
    """An error and its causes; with `contexts`, also the errors during whose handling they came."""
    chain: list[BaseException] = []
    while error is not None:
        chain.append(error)
        error = error.__cause__ or (error.__context__ if contexts else None)
    return chain


def _names(chain: Sequence[BaseException]) -> set[str]:
    """The class names of errors."""
    return {kind.__name__ for error in chain for kind in type(error).__mro__}


def _connection_reason(error: BaseException) -> str:
    """The text of the innermost cause; clients wrap it in a generic ``Connection error.``."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(str(error)) or type(error).__name__


def _retry_after(chain: Sequence[BaseException]) -> float | None:
    for error in chain:
        response = getattr(error, "response", None)
        headers = getattr(response, "headers", None)
        if isinstance(response, dict):
            headers = response.get("ResponseMetadata", {}).get("HTTPHeaders")
        if isinstance(headers, Mapping):
            return read_retry_after(headers, datetime.now(UTC))
    return None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    digits = match[1].replace(",", "") if match else ""
    return int(digits) if 0 < len(digits) < 12 else None


UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|extra_forbidden|not permitted"
    r"|not allowed|deprecated|no longer|unavailable|please remove|may only be set",
    re.IGNORECASE,
)


def mentions(message: str, name: str) -> bool:
    """Whether a text names a parameter."""
    return re.search(rf"\b{re.escape(name)}\b", message) is not None


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


def pause_error(
    model: ModelName, endpoint: Endpoint, pause: Pause, attempts: int, failures: Sequence[Failure]
) -> ModelPausedError:
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
        attempts=attempts,
        errors=tuple(map(str, failures)),
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
