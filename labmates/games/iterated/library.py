"""Strategies of the library `axelrod`: moves in, the next move out.

A strategy object of that library remembers its match. Here it is told the match so far whenever it is asked, so that
whoever asks has to keep nothing but the moves. The library is imported when one of its strategies is asked for, and not
before: it takes seconds.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from labmates.errors import MissingExtraError, UsageError
from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.seeds import derive

_TRIES = 200
"""The most random states tried for one round until they reproduce the recorded moves."""
_KEPT = 256
"""Number of matches cached, since making some strategies takes seconds."""


@cache
def library() -> Any:
    """The library.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        with warnings.catch_warnings(), _sources_read_once():
            warnings.simplefilter("ignore")
            import axelrod
    except ImportError as error:
        raise MissingExtraError("a strategy of the library axelrod", "axelrod") from error
    return axelrod


@contextmanager
def _sources_read_once() -> Iterator[None]:
    """Let `inspect` remember the source of each function.

    While the library is imported, it asks for the source of 28 methods 12,000 times, which is two thirds of its import.
    """
    module: Any = inspect
    read = module.getsource
    remembered = cache(read)
    module.getsource = lambda thing: remembered(getattr(thing, "__func__", thing))
    try:
        yield
    finally:
        module.getsource = read


@cache
def library_names() -> tuple[str, ...]:
    """The names of its strategies, sorted, without those that break the rules of its tournaments."""
    return tuple(sorted(strategy.__name__ for strategy in library().strategies))


def library_action(
    name: str, rounds: Sequence[Round], *, payoffs: Payoffs | None = None, length: float = float("inf"), seed: int = 0
) -> Action:
    """The next move of a strategy of the library.

    Parameters
    ----------
    name
        Name of its class, for instance ``"TitForTat"``.
    rounds
        What happened so far; its own actions come first.
    payoffs
        By default those of the super-additive paper.
    length
        Number of rounds that the strategy is told the match has; infinity if it isn't to know.
    seed
        For strategies that throw dice: with one seed for all moves of a match, they move as in a match of the library
        that gave them that seed. Where moves were made with other seeds, the dice of these rounds are thrown again
        until they give what was played, so that what the strategy remembers agrees with what it did.

    Raises
    ------
    UsageError
        If there is no such strategy, or it can't play with these payoffs.
    MissingExtraError
        If the library is not installed.
    """
    match = _Briefing(name, payoffs or Payoffs(), length, seed)
    seat = _KEPT_SEATS.pop((match, tuple(rounds[:-1]), rounds[-1][0]), None) if rounds else None
    if seat is None:
        seat = _seated(match, rounds)
    else:
        seat.take(*rounds[-1])
    action = cast(Action, str(seat.player.strategy(seat.opponent)))
    _KEPT_SEATS[match, tuple(rounds), action] = seat
    if len(_KEPT_SEATS) > _KEPT:
        _KEPT_SEATS.popitem(last=False)
    return action


def check_playable(name: str, payoffs: Payoffs) -> None:
    """Check that the strategy called `name` can play with these payoffs.

    Raises
    ------
    UsageError
        If there is no such strategy, or it can't.
    MissingExtraError
        If the library is not installed.
    """
    _seated(_Briefing(name, payoffs, float("inf"), 0), ())


@dataclass(frozen=True)
class _Briefing:
    """A strategy's knowledge before a match."""

    name: str
    payoffs: Payoffs
    length: float
    seed: int


@dataclass
class _Seat:
    """A strategy in the middle of a match, and an opponent that has nothing but a history."""

    player: Any
    opponent: Any

    def take(self, own: Action, other: Action) -> None:
        """Note what both did in a round."""
        mine, theirs = _action(own), _action(other)
        self.player.update_history(mine, theirs)
        self.opponent.update_history(theirs, mine)


_KEPT_SEATS: OrderedDict[tuple[_Briefing, tuple[Round, ...], Action], _Seat] = OrderedDict()
"""Strategies that have just moved, by what they were told, the match before that move, and the move."""


def _seated(match: _Briefing, rounds: Sequence[Round]) -> _Seat:
    """A new object of a strategy that knows a match so far."""
    axl = library()
    seat = _Seat(_make(match.name), axl.MockPlayer())
    stochastic = axl.Classifiers["stochastic"](seat.player)
    try:
        for player in (seat.player, seat.opponent):
            player.set_match_attributes(length=match.length, game=_game(match.payoffs), noise=0)
    except ValueError as error:
        raise UsageError(f"the strategy {match.name} can't play with these payoffs") from error
    if stochastic:
        seat.player.set_seed(match.seed)
    for number, (own, other) in enumerate(rounds):
        if stochastic:
            _throw(seat, own, derive(match.seed, number))
        else:
            seat.player.strategy(seat.opponent)
        seat.take(own, other)
    return seat


def _throw(seat: _Seat, played: Action, seed: int) -> None:
    """Let the player choose `played`, which may take other dice than its own."""
    try:
        before = copy.deepcopy(seat.player)
    except TypeError:  # It has a generator, which can't be copied.
        seat.player.strategy(seat.opponent)
        return
    for attempt in range(_TRIES):
        if seat.player.strategy(seat.opponent) == _action(played):
            return
        seat.player = copy.deepcopy(before)
        seat.player.set_seed(derive(seed, attempt))
    # Nothing that it does now; it takes the move as one that went wrong, as in a match with noise.
    seat.player.strategy(seat.opponent)


def _make(name: str) -> Any:
    axl = library()
    strategy: Any = getattr(axl, name, None)
    if strategy not in axl.strategies:
        raise unknown_strategy(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return strategy()


def unknown_strategy(name: str) -> UsageError:
    """The error for a name that the library does not have; it has too many to list them."""
    close = difflib.get_close_matches(name, library_names(), n=1) or ["TitForTat"]
    return UsageError(f"unknown strategy of the library axelrod '{name}'; it has for instance '{close[0]}'")


@cache
def _action(letter: Action) -> Any:
    return library().Action.from_char(letter)


@cache
def _game(payoffs: Payoffs) -> Any:
    return library().Game(r=payoffs.reward, s=payoffs.sucker, t=payoffs.temptation, p=payoffs.punishment)
