"""Normalised replies of models, and their pieces while they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from langchain_core.messages import AIMessage

from labmates.budgets.tokens import Usage

Fault = Literal["empty", "cut", "cut_tool_call", "bad_tool_call", "filtered"]
"""Faults of a received reply: no content, cut by the length limit, a tool call cut by it, or one whose arguments
are not a JSON object, and a filter of the provider that blocked the prompt or stopped the reply."""

BillSource = Literal["", "server", "table"]
"""Source of a bill: unknown, the server's report, or the price table."""

Finish = Literal["stop", "length", "tool_calls", "content_filter", "unknown"]


@dataclass(frozen=True)
class ToolCall:
    """A complete, well-formed tool call."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A model's reply."""

    text: str  # text without reasoning
    tool_calls: tuple[ToolCall, ...]  # complete, well-formed tool calls, in order; others are named in `faults`
    faults: tuple[Fault, ...]  # faults; empty for a clean reply
    message: AIMessage  # the reply for sending back: text, well-formed tool calls, and what the provider attached
    finish: Finish  # finish reason
    usage: Usage  # tokens, reported or estimated
    reasoning: str = ""  # reasoning text, if sent by the server
    attempts: int = 1  # number of HTTP attempts; 0 for a cached reply
    seconds: float = 0.0  # time from the first attempt to the end, waits included
    errors: tuple[str, ...] = field(default=())
    cached: bool = False  # whether it is the stored reply to an identical request
    limit: int | None = None  # output limit of the call, in tokens; None if not recorded
    # The tool call cut by the length limit, with the received arguments, the last of which may be cut. Not in
    # `message`.
    cut_call: ToolCall | None = None
    bill: int | None = None  # the provider's charge for the call, in micro-dollars; None if unknown
    bill_from: BillSource = ""  # source of the bill
    notes: tuple[str, ...] = ()  # the server's violations of the protocol, and their treatment
    raw: str = ""  # the text as sent, if a tool call was part of it


class Piece(NamedTuple):
    """A chunk of a reply."""

    text: str  # a part of the reasoning, the text, or the JSON arguments of a tool call
    kind: Literal["reasoning", "text", "call"] = "text"  # which of these
    # The index of the tool call in the reply; its id and name in the first chunk.
    number: int = 0
    id: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"\n{self.name}: {self.text}" if self.name else self.text


Listener = Callable[[Piece | None], None]
"""Receives the next chunk of a reply; None when an attempt, and its reply, begins."""

LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)
"""Set during a watched call, whose reply is streamed if the provider's class supports it."""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Watch the calls within the context, in addition to existing listeners."""
    outer = LISTENER.get()

    def both(piece: Piece | None) -> None:
        listener(piece)
        if outer is not None:
            outer(piece)

    token = LISTENER.set(listener if outer is None else both)
    try:
        yield
    finally:
        LISTENER.reset(token)
