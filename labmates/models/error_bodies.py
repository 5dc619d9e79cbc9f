"""Reading the error bodies that model servers send: JSON in several shapes, plain text, HTML pages."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from labmates.models.safe import safe_text

LONGEST_READ = 4_000
"""Characters of an error's text that are looked at."""


@dataclass(frozen=True)
class ErrorBody:
    """What an error body says: its text, and where given the machine-readable code, type and parameter."""

    message: str
    code: str = ""
    type: str = ""
    param: str = ""
    status: int | None = None
    limit: int | None = None
    requested: int | None = None


def read_error(body: Any) -> ErrorBody:
    """Read an error body, whatever its shape.

    Parameters
    ----------
    body
        Bytes, text, or JSON that is already parsed. Known shapes: ``{"error": {"message": …}}`` (OpenAI,
        llama.cpp), ``{"error": "text"}`` (Ollama), ``{"message": …}`` (older vLLM), ``{"detail": …}``
        (FastAPI: text, or a list of validation errors), a list with one of these in it (Google), HTML, and
        plain text.
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
    """Return `text` as one line of printable characters, at most `longest` of them."""
    line = " ".join(safe_text(text[: 4 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _from_json(body: dict[str, Any]) -> ErrorBody:
    inner = body.get("error") or body
    if not isinstance(inner, dict):
        return ErrorBody(one_line(str(inner)))
    detail = inner.get("detail")
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        return _from_validation(detail[0])
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


def _from_validation(first: dict[str, Any]) -> ErrorBody:
    place = first.get("loc")
    path = [str(part) for part in place] if isinstance(place, list) else []
    return ErrorBody(
        message=one_line(": ".join(filter(None, [".".join(path), str(first.get("msg", ""))]))),
        type=str(first.get("type", "")),
        param=path[-1] if path else "",
    )


def _from_html(text: str) -> str:
    text = text[: 4 * LONGEST_READ]
    if not re.match(r"\s*<(!doctype|html|head|body|\?xml)", text, re.IGNORECASE):
        return text
    title = re.search(r"<(title|h1)[^>]{0,200}>([^<]{1,500})", text, re.IGNORECASE)
    return title[2] if title else re.sub(r"<[^<>]*>", " ", text)


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
