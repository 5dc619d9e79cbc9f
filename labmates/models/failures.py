"""Failed attempts, classified by exception and error body: retry, give up, or prompt too long."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from labmates.models.redact import Redactor
from labmates.models.safe import safe_text

Kind = Literal["retry", "refused", "overflow"]

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

GATEWAY_TIMEOUTS = (504, 524)
"""The gateway gave up; the model may still have worked, so the call may be billed."""

OVERFLOW_CODES = {"exceed_context_size_error", "context_length_exceeded", "context_window_exceeded"}
OVERFLOW_TEXT = re.compile(
    r"maximum context length|longer than the maximum model length|(?:prompt|input) is too long"
    r"|context (?:length|size|window)[^.]{0,60}exceed|exceed[^.]{0,60}context (?:length|size|window)"
    r"|input token count[^.]{0,60}exceeds|`inputs` tokens \+ `max_new_tokens` must be",
    re.IGNORECASE,
)
LIMIT_TEXT = re.compile(
    r"(?:maximum (?:context|model) length(?: is| of)?|context size \(|tokens > |must be <=|number of tokens allowed \()"
    r"\s*([\d,]+)",
    re.IGNORECASE,
)
REQUESTED_TEXT = re.compile(
    r"(?:requested|resulted in|request \(|prompt \(length|prompt contains|too long:|token count \()\s*([\d,]+)",
    re.IGNORECASE,
)
LONGEST_REASON = 300
"""Maximum characters of a reason in an error."""

NEVER_BETTER = {"insufficient_quota", "billing_hard_limit_reached", "credit_balance_too_low"}
"""Codes of a 429 that a retry can't cure."""


class BrokenReplyError(Exception):
    """An answer with status 200 and an invalid body: cut, not JSON, or an error.

    `body` is the error in the body, if any; `begun` tells whether a part of the reply came before it.
    """

    def __init__(self, reason: str, body: Any = None, *, begun: bool = False) -> None:
        super().__init__(reason)
        self.body = body
        self.begun = begun


@dataclass(frozen=True)
class Failure:
    """A failed attempt; its texts are single lines, free of secrets.

    `billable` tells that the provider may charge for the attempt if its request was on the wire.
    """

    kind: Kind
    reason: str
    status: int | None = None
    retry_after: float | None = None
    body: ErrorBody = field(default_factory=lambda: ErrorBody(""))
    billable: bool = False

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
    names = {kind.__name__ for kind in type(error).__mro__}
    status = _status_of(error)
    if status is None and names & TIMEOUTS:
        return Failure("retry", "no answer in time", billable=not _chain(error) & UNSENT)
    if status is None and names & CONNECTIONS:
        reason = one_line(redact(_connection_reason(error)), LONGEST_REASON)
        return Failure("retry", reason, billable=not _chain(error) & UNSENT)
    if status is None and not names & {"APIError", "ModelError", "BrokenReplyError", "JSONDecodeError"}:
        return None
    body = _redacted(_body_of(error), redact)
    status = status or body.status
    told = isinstance(error, BrokenReplyError) and error.body is not None and not error.begun
    return Failure(
        kind=_kind(status, body, names, error),
        reason=one_line(body.message, LONGEST_REASON) or "no reason given",
        status=status,
        retry_after=_retry_after(error),
        body=body,
        billable=status in GATEWAY_TIMEOUTS if status else not told,
    )


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


def _kind(status: int | None, body: ErrorBody, names: set[str], error: Exception) -> Kind:
    codes = {body.code, body.type}
    if codes & OVERFLOW_CODES or "ContextOverflowError" in names:
        return "overflow"
    if status != 429 and OVERFLOW_TEXT.search(body.message):
        return "overflow"
    if codes & NEVER_BETTER:
        return "refused"
    if status is None:
        return "retry" if getattr(error, "is_retryable", True) else "refused"
    return "retry" if status in (408, 409, 425, 429) or status >= 500 else "refused"


def _status_of(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
    return None


def _body_of(error: Exception) -> ErrorBody:
    text = getattr(getattr(error, "response", None), "text", None)
    if isinstance(text, str) and text.strip():
        return read_error(text)
    body = getattr(error, "body", None)
    if isinstance(error, json.JSONDecodeError):
        return ErrorBody("the body is not JSON")
    return read_error(body) if body else ErrorBody(one_line(str(error)))


def _redacted(body: ErrorBody, redact: Redactor) -> ErrorBody:
    return ErrorBody(
        redact(body.message), redact(body.code), redact(body.type), body.param, body.status, body.limit, body.requested
    )


def _chain(error: BaseException | None) -> set[str]:
    """The class names of an error and its causes."""
    names: set[str] = set()
    while error is not None:
        names |= {kind.__name__ for kind in type(error).__mro__}
        error = error.__cause__ or error.__context__
    return names


def _connection_reason(error: BaseException) -> str:
    """The text of the innermost cause; clients wrap it in a generic ``Connection error.``."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(str(error)) or type(error).__name__


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return read_retry_after(headers, datetime.now(UTC)) if isinstance(headers, Mapping) else None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    digits = match[1].replace(",", "") if match else ""
    return int(digits) if 0 < len(digits) < 12 else None


LONGEST_READ = 4_000
"""Maximum characters of an error's text that are read."""


@dataclass(frozen=True)
class ErrorBody:
    """The contents of an error body: the text, and the machine-readable code, type and parameter if given."""

    message: str
    code: str = ""
    type: str = ""
    param: str = ""
    status: int | None = None
    limit: int | None = None
    requested: int | None = None


def read_error(body: Any) -> ErrorBody:
    """Parse an error body of any shape: bytes, text, or parsed JSON.

    Known shapes: ``{"error": {"message": …}}`` (OpenAI, llama.cpp), ``{"error": "text"}`` (Ollama), ``{"message": …}``
    (older vLLM), ``{"detail": …}`` (FastAPI: text, or a list of validation errors), a list of one of these (Google),
    HTML, and plain text.
    """
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            body = json.loads(body) if body.lstrip()[:1] in ("{", "[") else body
        if isinstance(body, str):
            return ErrorBody(one_line(_from_html(body)))
    if isinstance(body, list):
        body = body[0] if body else ""
    if not isinstance(body, dict):
        return ErrorBody(one_line(str(body)))
    return _from_json(body)


def one_line(text: str, longest: int = LONGEST_READ) -> str:
    """`text` as one line of at most `longest` printable characters."""
    line = " ".join(safe_text(text[: 4 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _from_json(body: dict[str, Any]) -> ErrorBody:
    inner = body.get("error") or body
    if not isinstance(inner, dict):
        return ErrorBody(one_line(str(inner)))
    detail = inner.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        first = detail[0]
        place = first.get("loc")
        path = [str(part) for part in place] if isinstance(place, list) else []
        return ErrorBody(
            message=one_line(": ".join(filter(None, [".".join(path), str(first.get("msg", ""))]))),
            type=str(first.get("type", "")),
            param=path[-1] if path else "",
        )
    if isinstance(detail, dict):
        return _from_json(detail) if detail.get("message") else ErrorBody(one_line(json.dumps(detail)))
    message = inner.get("message") or detail or json.dumps(inner)
    code = inner.get("code")
    return ErrorBody(
        message=one_line(str(message)),
        code=str(code or ""),
        type=str(inner.get("type") or ""),
        param=str(inner.get("param") or ""),
        status=code if isinstance(code, int) and 400 <= code < 600 else None,
        limit=_positive(inner.get("n_ctx")),
        requested=_positive(inner.get("n_prompt_tokens")),
    )


def _from_html(text: str) -> str:
    text = text[: 4 * LONGEST_READ]
    if not re.match(r"\s*<(!doctype|html|head|body|\?xml)", text, re.IGNORECASE):
        return text
    title = re.search(r"<(title|h1)[^>]{0,200}>([^<]{1,500})", text, re.IGNORECASE)
    return title[2] if title else re.sub(r"<[^<>]*>", " ", text)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
