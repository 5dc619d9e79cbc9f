"""Interrupts of a user's own graph as questions to a person, and the answers with which the graph resumes.

The value of an interrupt may be anything. LangChain's human-in-the-loop middleware asks for decisions about calls of
tools, and an interrupt whose response schema consists of its decisions gets these too. Any other interrupt takes
whatever JSON can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from labmates.errors import UsageError

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""It differs from process to process, and a question is recorded."""


@dataclass(frozen=True)
class Asked:
    """An interrupt that waits for its answer.

    Attributes
    ----------
    value
        What the graph asks with.
    task
        Name of the task that interrupts, the same in each process: its nodes from the outermost in.
    number
        Which interrupt of that task it is.
    schema
        JSON schema of the answer; None for any.
    fault
        What the graph found wrong with the answer before.
    """

    value: Any
    task: tuple[str, ...] = ()
    number: str = "0"
    schema: Any = None
    fault: str = ""


@dataclass(frozen=True)
class Request:
    """One thing that an interrupt asks; `decisions` are those that middleware takes, or empty for any answer."""

    text: str
    decisions: tuple[str, ...] = ()


def requests_of(value: Any, schema: Any = None) -> list[Request]:
    """What an interrupt asks, one by one: middleware may ask about several calls of tools at once.

    Parameters
    ----------
    schema
        The JSON schema of the answer, if the graph names one.
    """
    match value:
        case {"action_requests": [*actions], "review_configs": [*reviews]}:
            allowed = {review["action_name"]: tuple(review["allowed_decisions"]) for review in reviews}
            return [Request(_call_text(action), allowed[action["name"]]) for action in actions]
        case {"type": "tool_approval", "name": _, "args": _}:
            return [Request(_call_text(value), _decisions_in(schema))]
    return [Request(_text_of(value), _decisions_in(schema))]


def resume_value(value: Any, answers: Sequence[Any]) -> Any:
    """What the interrupt returns, from the answers to its requests."""
    if isinstance(value, Mapping) and "action_requests" in value:
        return {"decisions": [*answers]}
    [answer] = answers
    return answer


def decided(response: Any, decisions: Sequence[str]) -> Any:
    """The answer to a request: with `decisions` one of them; True approves, False and a reason reject.

    Raises
    ------
    UsageError
        If the request does not take this response.
    """
    try:
        json.dumps(response, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the answer {response!r} is not JSON: {error}") from None
    if not decisions:
        return response
    if response is True:
        response = {"type": "approve"}
    elif response is False or response == "":
        response = {"type": "reject"}
    elif isinstance(response, str):
        response = {"type": "reject" if "reject" in decisions else "respond", "message": response}
    match response:
        case {"type": "edit", "edited_action": {"name": str(), "args": dict()}} if "edit" in decisions:
            return response
        case {"type": "respond", "message": str()} if "respond" in decisions:
            return response
        case {"type": "approve" | "reject" as decision} if decision in decisions:
            return response
    raise UsageError(f"the answer {response!r} is not a decision that this call takes: {', '.join(decisions)}")


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


def _decisions_in(schema: Any) -> tuple[str, ...]:
    """The decisions that a schema allows; none if it allows anything else."""
    match schema:
        case {"anyOf": [*parts]} | {"oneOf": [*parts]}:
            types = [_decision_in(part, schema.get("$defs", {})) for part in parts]
        case _:
            types = [_decision_in(schema, {})]
    return tuple(types) if all(types) else ()


def _decision_in(schema: Any, named: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(where)}:
            return _decision_in(named.get(where.removeprefix("#/$defs/")), {})
        case {"properties": {"type": {"const": "approve" | "edit" | "reject" | "respond" as decision}}}:
            return str(decision)
    return ""


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, or circles
        return _ADDRESS.sub("", repr(value))


def _plain(value: Any) -> Any:
    """A value that JSON does not know as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _ADDRESS.sub("", str(value))
