"""Games of many groups at once, played round by round; each player sees its own data alone.

Actions and payoffs of all groups are arrays; what a player may see of them is written into memory of its own, in place,
and handed out read-only. A player that fails falls back to what its strategy's attitude asks for; nothing else of a
game depends on it.
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.workflows.populations.engine.kernel.chance import Stream
from labmates.workflows.populations.engine.kernel.interface import DESCRIPTIONS, C, D, GameDescription, Record
from labmates.workflows.populations.engine.kernel.limits import DecisionTimeout
from labmates.workflows.populations.engine.kernel.strategies import PAPER_SEEN, Strategy, drawing, in_paper_form

_MOST_TOLD = 200
_MOST_SPENT = 8
"""Once so many players of a strategy have taken too long or too much memory in a batch, it is run no more there."""
_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object
_view.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ_ONLY = 0x100


class Note(Protocol):
    """Keeps account of whose code runs, where a batch is played once more because its worker died."""

    def __call__(self, strategy: int, group: int, t: int) -> None:
        """Tell whose code runs from now on, in which round (-1: a player is made)."""

    def out_of_memory(self, strategy: int) -> None:
        """End the process if another strategy than this one has used up the memory."""


@dataclass(frozen=True)
class Failure:
    """Something that a player's strategy did wrong.

    Attributes
    ----------
    strategy
        Number of the strategy.
    group, seat, round
        Where; round -1 is when the player was made.
    what
        In a few words.
    over
        Whether the player falls back for the rest of the game.
    spent
        Whether it took too long or too much memory.
    """

    strategy: int
    group: int
    seat: int
    round: int
    what: str
    over: bool
    spent: bool = False


@dataclass
class Played:
    """What came of a batch of games.

    Attributes
    ----------
    actions
        Shape ``(groups, rounds, players)``; True for cooperation.
    spent
        By strategy, how many of its players took too long or too much memory.
    own_seconds, seconds
        Time within the strategies' own code, if it was measured, and in all.
    """

    actions: NDArray[np.bool_]
    failures: list[Failure] = field(default_factory=list)
    spent: Counter[int] = field(default_factory=Counter)
    own_seconds: float = 0.0
    seconds: float = 0.0


class Memory:
    """Memory in which players' data stand, used again for each batch; one row for each player."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._views: dict[str, list[memoryview]] = {}

    def rows(
        self, name: str, kind: Any, players: int, length: int, *, keep: bool = False
    ) -> tuple[NDArray[Any], list[memoryview]]:
        """Return zeroes to be written, ``(players, length)``, and for each row a view of it alone that can't write.

        The views belong to no object, so that nothing leads from one to another.

        Parameters
        ----------
        keep
            Leave what stands there, in the batch that has asked for the same before.
        """
        array = self._arrays.get(name)
        if array is None or array.shape[0] < players or array.shape[1] != length:
            array = np.zeros((players, length), dtype=kind)
            size = array.strides[0]
            start = array.ctypes.data
            self._views[name] = [_view(start + row * size, size, _READ_ONLY) for row in range(players)]
            # Kept for ever: a view's memory must not go to anybody else.
            self._arrays[name] = array
            _KEPT.append(array)
        elif keep:
            return array[:players], self._views[name]
        array[:players] = 0
        return array[:players], self._views[name]


_KEPT: list[NDArray[Any]] = []


def play(
    game: RepeatedGame,
    groups: NDArray[np.int64],
    strategies: Sequence[Strategy | None],
    cooperates: Sequence[bool],
    memory: Memory,
    *,
    seed: int,
    first: int = 0,
    opponents: NDArray[np.bool_] | None = None,
    note: Note | None = None,
    measure: bool = False,
) -> Played:
    """Play one game in each group.

    Parameters
    ----------
    groups
        The strategies' numbers, ``(groups, players)``.
    strategies
        By number; None for one that is not to be run.
    cooperates
        Whether a strategy falls back to cooperation, by number.
    seed, first
        What players' random numbers derive from, with the group's number (counted from `first`) and the seat.
    opponents
        If given, what all players but that of seat 0 do, ``(groups, rounds, players - 1)``; `groups` then has one
        column.
    note
        Keeps account of whose code runs; without it, a lack of memory ends the batch.
    measure
        Measure the time within the strategies' own code, which takes some itself.

    Raises
    ------
    MemoryError
        If there is not enough, and nobody can say because of whom.
    """
    began = time.process_time()
    table = _Table(game, groups, memory, opponents)
    played = Played(np.empty((len(groups), game.n_rounds, game.n_players), dtype=bool))
    seats, waiting = _seat(table, strategies, seed, first, played, note, measure)
    fallback = np.array(cooperates, dtype=bool)[groups] if len(groups) else np.zeros(groups.shape, dtype=bool)
    stock = game.start(len(groups))
    for t in range(game.n_rounds):
        chosen = fallback.copy().reshape(-1)
        stocks = _told_stocks(game, stock, t)
        over = _round(t, seats, stocks, chosen, played, first, note)
        if over:
            seats = [seat for seat in seats if seat[0] not in over]
        actions = chosen.reshape(groups.shape)
        if opponents is not None:
            actions = np.concatenate([actions, opponents[:, t]], axis=1)
        paid = game.payoffs(actions, stock)
        stock = game.next_stock(stock, paid)
        played.actions[:, t] = actions
        table.write(t, actions, paid)
    waiting.clear()
    played.seconds = time.process_time() - began
    return played


Seat = tuple[int, int, type[Any], Callable[..., Any], Record]


def _round(
    t: int,
    seats: list[Seat],
    stocks: Sequence[Any] | None,
    chosen: NDArray[np.bool_],
    played: Played,
    first: int,
    note: Note | None,
) -> set[int]:
    """Let all players decide; return the places of those that fall back from now on. `limits.Watch` looks in here."""
    over: set[int] = set()
    place: int | None = None
    yes: list[int] = []
    no: list[int] = []
    add_yes, add_no = yes.append, no.append
    for place, strategy, history, decide, record in seats:
        try:
            if note is not None:
                note(strategy, first + place // (len(chosen) // played.actions.shape[0]), t)
            answer = decide(history(record, t)) if stocks is None else decide(history(record, t), stocks[place])
            if answer is C:
                add_yes(place)
            elif answer is D:
                add_no(place)
            else:
                raise _IllegalError(answer)
        except BaseException as error:
            _spare(error, strategy, note)
            over |= _failed(error, strategy, place, t, chosen, played, first)
            if _is_spent(error) and played.spent[strategy] >= _MOST_SPENT:
                _stop(seats, strategy)
    place = None
    chosen[yes] = True
    chosen[no] = False
    return over


ROUND_CODE = _round.__code__


class _IllegalError(Exception):
    """An answer that is no action."""

    def __init__(self, answer: Any) -> None:
        super().__init__(f"answered with {_class_name(answer)}, not C or D")


class _StoppedError(Exception):
    """A player is not run any more: too many others of its strategy took what they must not take."""


def _failed(
    error: BaseException, strategy: int, place: int, t: int, chosen: NDArray[np.bool_], played: Played, first: int
) -> set[int]:
    """Record a failure; return the player's place if it falls back for the rest of the game."""
    spent = _is_spent(error)
    over = spent or isinstance(error, _StoppedError)
    players = len(chosen) // played.actions.shape[0]
    group, seat = divmod(place, players)
    played.failures.append(Failure(strategy, first + group, seat, t, _what(error), over, spent))
    played.spent[strategy] += spent
    return {place} if over else set()


def _is_spent(error: BaseException) -> bool:
    return isinstance(error, (DecisionTimeout, MemoryError))


def _stop(seats: list[Seat], strategy: int) -> None:
    """Let all players of a strategy fail from now on, without running any of its code."""
    for number, (place, other, history, _, record) in enumerate(seats):
        if other == strategy:
            seats[number] = (place, other, history, _stopped, record)


def _stopped(*_seen: Any) -> Any:
    raise _StoppedError


def _spare(error: BaseException, strategy: int, note: Note | None) -> None:
    """Let nobody be blamed for a lack of memory that another strategy has caused."""
    if isinstance(error, MemoryError):
        if note is None:
            raise error
        note.out_of_memory(strategy)


def _what(error: BaseException) -> str:
    """Return what went wrong; none of the error's own methods can do harm here."""
    if isinstance(error, DecisionTimeout):
        return "took too long"
    if isinstance(error, MemoryError):
        return "asked for too much memory"
    if isinstance(error, _StoppedError):
        return "was not run, since others of it took too long or too much memory"
    if isinstance(error, _IllegalError):
        return str(error)
    try:
        text = str(error.args[0]) if error.args and type(error.args[0]) is str else ""
    except BaseException:
        text = ""
    return f"{_class_name(error)}: {text}"[:_MOST_TOLD].rstrip(": ")


def _class_name(thing: object) -> str:
    name = type.__dict__["__name__"].__get__(type(thing))
    return str(name)[:60]


def _told_stocks(game: RepeatedGame, stock: NDArray[np.float64] | None, t: int) -> list[Any] | None:
    """Return the stock that each player is told: an int before the first round, as in the published program."""
    if stock is None:
        return None
    told = [int(one) for one in stock] if t == 0 else list(stock)
    return [one for one in told for _ in range(game.n_players)]


class _Table:
    """The arrays of a batch and what each player may see of them."""

    def __init__(
        self, game: RepeatedGame, groups: NDArray[np.int64], memory: Memory, opponents: NDArray[np.bool_] | None
    ) -> None:
        self.game = game
        self.groups = groups
        self.memory = memory
        self.places = groups.size
        self._paper: list[tuple[int, int, int, NDArray[Any], NDArray[Any]]] = []
        rounds = game.n_rounds
        self._actions, self._action_views = memory.rows("actions", bool, self.places, rounds)
        self._payoffs, self._payoff_views = memory.rows("payoffs", np.float64, self.places, rounds)
        self._counts, self._count_views = memory.rows("counts", np.int64, self.places, rounds)
        self.scripted = opponents is not None

    def record(self, place: int, *, paper: bool) -> Record:
        """Return what the player at a place may see."""
        own = np.frombuffer(self._action_views[place], _BOOL), np.frombuffer(self._payoff_views[place], _FLOAT)
        counts = np.frombuffer(self._count_views[place], _INT)
        if not paper:
            return Record(*own, counts)
        group, seat = divmod(place, self.groups.shape[1])
        shape = (self.game.n_rounds, self.game.n_players - 1)
        size = shape[0] * shape[1]
        actions, action_views = self.memory.rows("their actions", bool, self.places, size, keep=bool(self._paper))
        payoffs, payoff_views = self.memory.rows("their payoffs", np.float64, self.places, size, keep=bool(self._paper))
        self._paper.append((place, group, seat, actions[place].reshape(shape), payoffs[place].reshape(shape)))
        theirs = np.frombuffer(action_views[place], _BOOL), np.frombuffer(payoff_views[place], _FLOAT)
        return Record(*own, counts, *(array.reshape(shape) for array in theirs))

    def write(self, t: int, actions: NDArray[np.bool_], payoffs: NDArray[np.float64]) -> None:
        """Add a round to what all players see."""
        cooperators = actions.sum(axis=1)
        seats = self.groups.shape[1]
        own = actions[:, :seats]
        self._actions[:, t] = own.reshape(-1)
        self._payoffs[:, t] = payoffs[:, :seats].reshape(-1)
        self._counts[:, t] = (cooperators[:, None] - own).reshape(-1)
        for _, group, seat, their_actions, their_payoffs in self._paper:
            their_actions[t] = np.delete(actions[group], seat)
            their_payoffs[t] = np.delete(payoffs[group], seat)


_BOOL, _FLOAT, _INT = np.dtype(bool), np.dtype(np.float64), np.dtype(np.int64)


def _seat(
    table: _Table,
    strategies: Sequence[Strategy | None],
    seed: int,
    first: int,
    played: Played,
    note: Note | None,
    measure: bool,
) -> tuple[list[Seat], list[Any]]:
    """Make all players; return those that play, and what has to live as long as the games."""
    game = table.game
    description = describe(game)
    stocked = game.start(1) is not None
    seats: list[Seat] = []
    alive: list[Any] = [description]
    players = table.groups.shape[1]
    numbers = [int(one) for one in table.groups.reshape(-1)]
    made = _make_all(numbers, strategies, description, seed, first, players, played, note)
    for place, player, stream in made:
        strategy = strategies[numbers[place]]
        assert strategy is not None
        decide = player.__call__
        if strategy.random:
            decide = drawing(decide, stream)
        if strategy.paper:
            decide = in_paper_form(decide)
        elif stocked and strategy.code.found.arguments == 1:
            decide = _without_stock(decide)
        if measure:
            decide = _measured(decide, played)
        record = table.record(place, paper=strategy.paper)
        seats.append((place, numbers[place], PAPER_SEEN if strategy.paper else strategy.history, decide, record))
        alive.append(player)
    return seats, alive


def _make_all(
    numbers: Sequence[int],
    strategies: Sequence[Strategy | None],
    description: GameDescription,
    seed: int,
    first: int,
    players: int,
    played: Played,
    note: Note | None,
) -> list[tuple[int, Any, Stream]]:
    """Make the players of all strategies that are to be run. `limits.Watch` looks in here, too."""
    t = -1
    made = []
    for place, number in enumerate(numbers):
        strategy = strategies[number]
        group, seat = divmod(place, players)
        if strategy is None:
            played.failures.append(Failure(number, first + group, seat, t, "is not run", True))
            continue
        stream = Stream(seed, (first + group, seat))
        try:
            if note is not None:
                note(number, first + group, t)
            if played.spent and played.spent[number] >= _MOST_SPENT:
                raise _StoppedError
            player = strategy.player(description, stream)
            if not callable(player):
                raise TypeError("a player can't be called")
            made.append((place, player, stream))
        except BaseException as error:
            _spare(error, number, note)
            spent = _is_spent(error)
            played.failures.append(Failure(number, first + group, seat, t, _what(error), True, spent))
            played.spent[number] += spent
    return made


MAKE_CODE = _make_all.__code__


def _without_stock(decide: Callable[..., Any]) -> Callable[..., Any]:
    return lambda history, _stock: decide(history)


def _measured(decide: Callable[..., Any], played: Played) -> Callable[..., Any]:
    """Return a decision whose time is added up, without what taking the time itself takes."""

    def timed(*seen: Any) -> Any:
        began = time.process_time()
        try:
            return decide(*seen)
        finally:
            played.own_seconds += time.process_time() - began - CLOCK_SECONDS

    return timed


def _clock_seconds() -> float:
    """Return what looking at the clock twice shows although nothing lies between."""
    return min(-(time.process_time() - time.process_time()) for _ in range(1000))


CLOCK_SECONDS = _clock_seconds()


def describe(game: RepeatedGame) -> GameDescription:
    """Return the description of a game that strategies get."""
    return DESCRIPTIONS[game.name](game.n_players, game.n_rounds, **game.parameters)
