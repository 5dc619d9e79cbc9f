"""The reply to one model call, normalised."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage

from labmates.budgets.usage import Usage

Fault = Literal["empty", "cut", "cut_tool_call", "bad_tool_call"]
"""What can be wrong with a reply that did arrive: nothing in it, ended by the length limit, a tool call cut
by it, or a tool call whose arguments are no JSON object."""

Finish = Literal["stop", "length", "tool_calls", "content_filter", "unknown"]


@dataclass(frozen=True)
class ToolCall:
    """One whole, well-formed call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes
    ----------
    text
        Its text, without reasoning.
    tool_calls
        The whole, well-formed tool calls, in order. Cut and malformed ones are left out and named in
        `faults`.
    faults
        What was wrong with it; empty for a clean reply.
    message
        The reply as it may be sent back to any server: text and well-formed tool calls only.
    finish
        Why the model stopped.
    usage
        Tokens, always known (reported or estimated).
    reasoning
        Reasoning text where the server sends any, else empty. Never sent back.
    attempts
        Number of HTTP attempts that it took; 0 for one from a cache.
    seconds
        Time from the first attempt to the end, waits included.
    cached
        It is the reply that the same request got at an earlier time.
    cut_call
        The tool call in which the length limit fell, with the arguments that had arrived; the last of them may break
        off. It is not in `message`.
    limit
        The output limit that the call was made with, in tokens; None where it was not recorded.
    bill
        What the provider charges for the call, in micro-dollars; None where no price is known.
    notes
        What was wrong with how the server answered, and what was done about it.
    """

    text: str
    tool_calls: tuple[ToolCall, ...]
    faults: tuple[Fault, ...]
    message: AIMessage
    finish: Finish
    usage: Usage
    reasoning: str = ""
    attempts: int = 1
    seconds: float = 0.0
    errors: tuple[str, ...] = field(default=())
    cached: bool = False
    limit: int | None = None
    cut_call: ToolCall | None = None
    bill: int | None = None
    notes: tuple[str, ...] = ()
