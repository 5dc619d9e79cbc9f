"""The parts of replies under way, for whoever watches the agents of a run or passes their replies on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, NamedTuple


class Piece(NamedTuple):
    """The next part of a reply.

    Attributes
    ----------
    text
        Of the reasoning, the reply, or the arguments of a tool call as JSON.
    kind
        Which of them.
    number, id, name
        Of the tool call: its place among the calls of the reply, and what the first piece says of it.
    """

    text: str
    kind: Literal["reasoning", "text", "call"] = "text"
    number: int = 0
    id: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"\n{self.name}: {self.text}" if self.name else self.text


Listener = Callable[[Piece | None], None]
"""Takes the next part of a reply; None where an attempt begins, and the reply with it."""

LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)
"""Set for the time of a call that is watched. Its reply is streamed where the provider's class can."""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Watch the calls that are made in the context, beside whoever watches them already."""
    outer = LISTENER.get()

    def both(piece: Piece | None) -> None:
        listener(piece)
        if outer is not None:
            outer(piece)

    token = LISTENER.set(both)
    try:
        yield
    finally:
        LISTENER.reset(token)
