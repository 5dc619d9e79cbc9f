"""Interrupts of a user's own graph as questions to a person, and the answers with which the graph resumes.

The value of an interrupt may be anything. LangChain's human-in-the-loop middleware asks to review calls of tools, which
a person approves or refuses. Any other interrupt takes whatever JSON can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""It differs from process to process, and a question is recorded."""


@dataclass(frozen=True)
class Asked:
    """An interrupt that waits for its answer."""

    value: Any  # what the graph asks with
    task: tuple[str, ...] = ()  # the nodes around the task that interrupts, from the outermost in, and its own
    number: str = "0"  # which interrupt of these nodes it is, the same in each process
    schema: Any = None  # JSON schema of the answer; None for any
    fault: str = ""  # what the graph found wrong with the answer before


def is_review(value: Any) -> bool:
    """Whether an interrupt asks to approve calls of tools, as human-in-the-loop middleware does."""
    return isinstance(value, Mapping) and ("action_requests" in value or value.get("type") == "tool_approval")


def reviewed(value: Mapping[str, Any], approved: bool, reason: str) -> dict[str, Any]:
    """The decisions with which middleware resumes: one for all the calls that it asks about."""
    decision = {"type": "approve"} if approved else {"type": "reject", **({"message": reason} if reason else {})}
    calls = value.get("action_requests")
    return decision if calls is None else {"decisions": [decision] * len(calls)}


def question_text(value: Any) -> str:
    """What an interrupt asks."""
    calls = value.get("action_requests", [value]) if is_review(value) else ()
    return "\n\n".join(map(_call_text, calls)) or _text_of(value)


def typed_value(typed: str) -> Any:
    """The value in what a person typed: JSON, else the text itself."""
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        return typed.strip()


def _call_text(action: Mapping[str, Any]) -> str:
    """A call of a tool, and the description that its author gave instead of the middleware's own."""
    description = str(action.get("description") or "")
    own = "" if f"Tool: {action['name']}\nArgs: " in description else description
    arguments = (f"{name}: {_text_of(value)}" for name, value in action["args"].items())
    return "\n\n".join(filter(None, (own, "\n".join((f"calls {action['name']}", *arguments)))))


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, or circles
        return _ADDRESS.sub("", repr(value))


def _plain(value: Any) -> Any:
    """A value that JSON does not know as plain data."""
    return to_jsonable_python(value, fallback=lambda other: _ADDRESS.sub("", str(other)))
