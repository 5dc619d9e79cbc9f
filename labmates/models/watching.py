"""Streaming of replies in progress, to watch a run or to pass replies on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple


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
