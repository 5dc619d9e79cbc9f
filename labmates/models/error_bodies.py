"""The contents of errors that servers send, of any shape; none of it is trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from labmates.util.safe_text import safe_text

LONGEST_READ = 4_000
"""Maximum characters of an error's text that are read."""
_CODE_KEYS: Final = ("code", "type", "status", "error_code", "error_type", "__type")
_DEEPEST: Final = 4
"""Maximum depth of objects in an error that are searched for codes: providers nest the narrow one."""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PARTS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,12})?)\s?(ms|[smhd])")
_WAIT: Final = re.compile(
    r"(?:again|retry|resets?|available|wait)(?: in| after)?:? "
    r"((?:\d{1,9}(?:\.\d{1,12})?\s?(?:ms|s|sec\w*|m|min\w*|h|hours?|hrs?|d|days?)(?![a-z])[\s,]*)+)",
    re.IGNORECASE,
)
_DELAY: Final = re.compile(r'"retryDelay": ?"(\d{1,9}(?:\.\d{1,12})?s)"|"estimated_time": ?(\d{1,9}(?:\.\d{1,12})?)')
"""Fields of Google (`RetryInfo`), and of Hugging Face's servers while they load a model."""
_DAILY: Final = re.compile(r"per[ _-]?day|daily (?:\w+ )?(?:limit|quota)|\b[RT]PD\b", re.IGNORECASE)


@dataclass(frozen=True)
class ErrorBody:
    """The contents of an error body: the text, and the machine-readable code, type and parameter if given.

    `codes` are all codes and types in lower case. `wait` is the time in seconds after which the text invites another
    try, and `daily` tells that it speaks of a quota a day.
    """

    message: str
    code: str = ""
    type: str = ""
    param: str = ""
    status: int | None = None
    limit: int | None = None
    requested: int | None = None
    codes: frozenset[str] = frozenset()
    wait: float | None = None
    daily: bool = False

    def redacted(self, redact: Callable[[str], str]) -> ErrorBody:
        """The same without secrets."""
        return replace(self, message=redact(self.message), code=redact(self.code), type=redact(self.type))


def read_error(body: Any) -> ErrorBody:
    """Parse an error body of any shape: bytes, text, or parsed JSON.

    Known shapes: ``{"error": {"message": …}}`` (OpenAI, llama.cpp), ``{"error": "text"}`` (Ollama), ``{"message": …}``
    (older vLLM), ``{"Error": {"Message": …}}`` (Bedrock), ``{"detail": …}`` (FastAPI: text, or a list of validation
    errors), a list of one of these (Google), HTML, and plain text.
    """
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            body = json.loads(body) if body.lstrip()[:1] in ("{", "[") else body
        if isinstance(body, str):
            text = one_line(page_title(body) or body)
            return ErrorBody(text, wait=_wait(text), daily=_DAILY.search(text) is not None)
    if isinstance(body, list):
        body = body[0] if body else ""
    if not isinstance(body, dict):
        return ErrorBody(one_line(str(body)))
    text = json.dumps(body, default=str)[:LONGEST_READ]
    codes = frozenset(str(code).lower()[:80] for code in _codes(body, _DEEPEST))
    return replace(_from_json(body), codes=codes, wait=_wait(text), daily=_DAILY.search(text) is not None)


def page_title(text: str) -> str:
    """The title of a page in HTML, else its text without tags; empty if `text` is no page."""
    text = text[: 4 * LONGEST_READ]
    if not re.match(r"\s*<(!doctype|html|head|body|\?xml)", text, re.IGNORECASE):
        return ""
    title = re.search(r"<(title|h1)[^>]{0,200}>([^<]{1,500})", text, re.IGNORECASE)
    return one_line(title[2] if title else re.sub(r"<[^<>]*>", " ", text))


def one_line(text: str, longest: int = LONGEST_READ) -> str:
    """`text` as one line of at most `longest` printable characters."""
    line = " ".join(safe_text(text[: 4 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _from_json(body: dict[str, Any]) -> ErrorBody:
    inner = body.get("error") or body.get("Error") or body
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
    message = inner.get("message") or inner.get("Message") or detail or json.dumps(inner)
    code = inner.get("code")
    return ErrorBody(
        message=one_line(str(message)),
        code=str(code or inner.get("Code") or ""),
        type=str(inner.get("type") or ""),
        param=str(inner.get("param") or ""),
        status=code if isinstance(code, int) and 400 <= code < 600 else None,
        limit=_positive(inner.get("n_ctx")),
        requested=_positive(inner.get("n_prompt_tokens")),
    )


def _codes(value: Any, depth: int) -> Iterator[str | int]:
    """The codes and types in an error, and the names of its fields, some of which are codes."""
    if isinstance(value, list):
        value = dict(enumerate(value[:8]))
    if not isinstance(value, dict) or not depth:
        return
    for name, part in value.items():
        if part:
            yield name
        if str(name).lower() in _CODE_KEYS and isinstance(part, str | int):
            yield part
        yield from _codes(part, depth - 1)


def _wait(text: str) -> float | None:
    if delay := _DELAY.search(text):
        return float((delay[1] or delay[2]).rstrip("s"))
    if (match := _WAIT.search(text)) is None:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(match[1].lower()))


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
