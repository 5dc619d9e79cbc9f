"""Strategies of the library `axelrod` as players, ``scripted:axelrod/TitForTat``: functions of the match so far.

A strategy object of that library remembers its match. Here each call replays the match so far, so that callers keep
only the moves. The library is imported on first use, since the import takes seconds.
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
from functools import cache, partial
from typing import Any, Final, cast

from labmates.agents.players.base import Player, player
from labmates.errors import MissingExtraError, UsageError
from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.util.seeds import derive

LIBRARY: Final = "axelrod/"
"""How the names of these players begin."""
_TRIES = 200
"""Maximum number of random states tried to reproduce a recorded move."""
_CACHED = 256
"""Number of matches cached, since making some strategies takes seconds."""


@cache
def library() -> Any:
    """The library; a `MissingExtraError` if it is not installed."""
    try:
        with warnings.catch_warnings(), _sources_read_once():
            warnings.simplefilter("ignore")
            import axelrod
    except ImportError as error:
        raise MissingExtraError("a strategy of the library axelrod", "axelrod") from error
    return axelrod


@contextmanager
def _sources_read_once() -> Iterator[None]:
    """Cache `inspect.getsource`: on import, the library reads the source of 28 methods 12,000 times."""
    module: Any = inspect
    getsource = module.getsource
    cached = cache(getsource)
    module.getsource = lambda thing: cached(getattr(thing, "__func__", thing))
    try:
        yield
    finally:
        module.getsource = getsource


@cache
def library_names() -> tuple[str, ...]:
    """Names of the library's strategies, sorted, without those that break the rules of its tournaments."""
    return tuple(sorted(strategy.__name__ for strategy in library().strategies))


def library_player(name: str) -> type[Player]:
    """The player that follows the strategy `name`.

    Raises
    ------
    UsageError
        If the library has none of that name.
    MissingExtraError
        If the library is not installed.
    """
    if name not in library_names():
        raise unknown_strategy(name)
    about = f"Plays as the strategy {name} of the library axelrod does."
    return player(f"{LIBRARY}{name}", about, partial(library_action, name), partial(check_playable, name))


def library_action(
    name: str, rounds: Sequence[Round], payoffs: Payoffs | None = None, length: float = float("inf"), seed: int = 0
) -> Action:
    """The next move of a strategy of the library.

    Parameters
    ----------
    name
        Name of its class, for instance ``"TitForTat"``.
    rounds
        The rounds so far, with the strategy's moves first.
    payoffs
        By default those of the super-additive paper.
    length
        Number of rounds announced to the strategy; infinity if unknown.
    seed
        For random strategies: with one seed for all moves of a match, they move as in a match of the library with that
        seed. If moves were made with other seeds, their random numbers are redrawn until they reproduce the recorded
        moves, so that the strategy's memory agrees with them.

    Raises
    ------
    UsageError
        If the strategy is unknown, or can't play with these payoffs.
    MissingExtraError
        If the library is not installed.
    """
    match = _Briefing(name, payoffs or Payoffs(), length, seed)
    seat = _CACHED_SEATS.pop((match, tuple(rounds[:-1]), rounds[-1][0]), None) if rounds else None
    if seat is None:
        seat = _seated(match, rounds)
    else:
        seat.take(*rounds[-1])
    action = cast(Action, str(seat.player.strategy(seat.opponent)))
    _CACHED_SEATS[match, tuple(rounds), action] = seat
    if len(_CACHED_SEATS) > _CACHED:
        _CACHED_SEATS.popitem(last=False)
    return action


def check_playable(name: str, payoffs: Payoffs) -> None:
    """Check that the strategy called `name` can play with these payoffs; errors as in `library_action`."""
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
    """A strategy in the middle of a match, and an opponent with nothing but a history."""

    player: Any
    opponent: Any

    def take(self, own: Action, other: Action) -> None:
        """Record both moves of a round."""
        mine, theirs = _action(own), _action(other)
        self.player.update_history(mine, theirs)
        self.opponent.update_history(theirs, mine)


_CACHED_SEATS: OrderedDict[tuple[_Briefing, tuple[Round, ...], Action], _Seat] = OrderedDict()
"""Strategies after a move, by their briefing, the match before that move, and the move."""


def _seated(match: _Briefing, rounds: Sequence[Round]) -> _Seat:
    """A new strategy object with the history of a match so far."""
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
            _replay_move(seat, own, derive(match.seed, number))
        else:
            seat.player.strategy(seat.opponent)
        seat.take(own, other)
    return seat


def _replay_move(seat: _Seat, played: Action, seed: int) -> None:
    """Let the player choose `played`, with other random numbers if needed."""
    try:
        before = copy.deepcopy(seat.player)
    except TypeError:  # Generators can't be copied.
        seat.player.strategy(seat.opponent)
        return
    for attempt in range(_TRIES):
        if seat.player.strategy(seat.opponent) == _action(played):
            return
        seat.player = copy.deepcopy(before)
        seat.player.set_seed(derive(seed, attempt))
    # No random state reproduces the move: the player takes it as an execution error, as in a match with noise.
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
    """The error for an unknown name, with the closest of the many known ones."""
    close = difflib.get_close_matches(name, library_names(), n=1) or ["TitForTat"]
    return UsageError(f"unknown axelrod strategy '{name}'; did you mean '{close[0]}'?")


@cache
def _action(letter: Action) -> Any:
    return library().Action.from_char(letter)


@cache
def _game(payoffs: Payoffs) -> Any:
    return library().Game(r=payoffs.reward, s=payoffs.sucker, t=payoffs.temptation, p=payoffs.punishment)
