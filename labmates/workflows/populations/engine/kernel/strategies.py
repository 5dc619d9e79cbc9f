"""Strategies as a worker has them: classes made when they are first needed, and players that decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labmates.workflows.populations.engine.kernel.chance import CHANCE, NOBODY, Stream
from labmates.workflows.populations.engine.kernel.interface import (
    CommonPoolState,
    GameDescription,
    GameState,
    PaperHistory,
    Record,
    seen_class,
)
from labmates.workflows.populations.engine.kernel.names import namespace
from labmates.workflows.populations.engine.kernel.source import Code


class Strategy:
    """A strategy that can be played.

    Parameters
    ----------
    code
        What was read of it.
    """

    def __init__(self, code: Code) -> None:
        self.code = code
        self.history = seen_class(code.source)
        self.random = code.found.random
        self.paper = code.found.paper
        self._class: type[Any] | None = None

    def player(self, description: GameDescription, stream: Stream) -> Any:
        """Make a player; whatever the strategy's own code raises comes out.

        Parameters
        ----------
        stream
            Where its random numbers come from.
        """
        if not self.random:
            return self._made()(description)
        CHANCE.stream = stream
        try:
            return self._made()(description)
        finally:
            CHANCE.stream = NOBODY

    def _made(self) -> type[Any]:
        """Return the class; a new one for each player if it may keep something beyond one."""
        if self._class is not None:
            return self._class
        names = namespace(paper=self.paper)
        exec(self.code.before, names)  # noqa: S102 - what this package is for; see `confine`
        exec(self.code.body, names)  # noqa: S102
        made: type[Any] = names[self.code.found.name]
        if not self.code.found.shares:
            self._class = made
        return made


def drawing(decide: Callable[..., Any], stream: Stream) -> Callable[..., Any]:
    """Return a player's decision with its own random numbers."""

    def with_stream(*seen: Any) -> Any:
        CHANCE.stream = stream
        try:
            return decide(*seen)
        finally:
            CHANCE.stream = NOBODY

    return with_stream


def in_paper_form(decide: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decision that is asked for as in the paper's form: with a state, and None for an empty history."""

    def asked(seen: _PaperSeen, stock: Any = None) -> Any:
        state = GameState(seen.t) if stock is None else CommonPoolState(seen.t, stock)
        return decide(state, seen.history())

    return asked


class _PaperSeen:
    """What the engine hands over instead of a history of the current form."""

    __slots__ = ("_record", "t")

    def __init__(self, record: Record, t: int) -> None:
        self._record = record
        self.t = t

    def history(self) -> PaperHistory | None:
        if self.t == 0:
            return None
        t, record = self.t, self._record
        return PaperHistory(
            record.actions[:t], record.payoffs[:t], record.opponent_actions[:t], record.opponent_payoffs[:t]
        )


PAPER_SEEN = _PaperSeen
"""Stands in the place of a history's class for players of the paper's form."""
