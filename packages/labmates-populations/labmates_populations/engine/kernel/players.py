"""A process of players that make decisions: those of all compiled strategies, or of one other strategy.

It is confined before it receives any strategy's code, and receives only the players' observations. Its answers are
untrusted.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import math
import mmap
import os
import pickle
import socket
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.confine import confine
from labmates_populations.engine.kernel.guarded import guarded_names
from labmates_populations.engine.kernel.interface import (
    DESCRIPTIONS,
    ActionHistory,
    C,
    CommonPoolState,
    D,
    GameDescription,
    GameState,
    PaperHistory,
    Record,
    SeenHistory,
    SeenPaperHistory,
)
from labmates_populations.engine.kernel.limits import MARKS, MOST_SPENT, PLACE, DecisionTimeout, Watch
from labmates_populations.engine.kernel.names import chance_of, drawing, harmless_names
from labmates_populations.engine.kernel.ways import COMPILED
from labmates_populations.engine.kernel.wire import ClosedError, receive, send
from labmates_populations.repeated import REPEATED, RepeatedGame

COOPERATED, FAILED = 1, 255
"""Answers, one byte per decision: the index of an action (0 for defection), or a failure."""
OUT_OF_MEMORY = 78
"""Exit code of a process with too little memory to continue."""
_MOST_TOLD = 200
_UNMADE = -1
_COLLECT_EACH = 200
_MARGIN = 4096
"""Zeros after an array: a strategy that reads beyond it finds nothing of the process there, in any version of it."""


def serve(connection: socket.socket, settings: dict[str, Any], marks: int) -> None:
    """Answer requests for decisions until the connection closes.

    Parameters
    ----------
    settings
        The limits per decision and process, `seconds` and `memory` in bytes; `unsafe` for no confinement.
    marks
        Descriptor of the shared memory for the progress of this process; see `limits`.

    Raises
    ------
    UnconfinedError
        If the process can't be confined.
    """
    with mmap.mmap(marks, MARKS * 8) as shared, memoryview(shared).cast("q") as view:
        os.close(marks)
        gc.disable()
        watch = Watch(settings["seconds"], view)
        if not settings["unsafe"]:
            confine(settings["memory"])
        send(connection, {"ready": True, "pid": os.getpid()})
        known: dict[int, Strategy] = {}
        players: Players | None = None
        asked = 0
        while True:
            try:
                head, data = receive(connection)
            except ClosedError:
                os._exit(0)
            began = time.thread_time()
            if "game" in head:
                players = Players(head, np.frombuffer(data, np.int64), known, watch, view)
                gc.collect()
                continue
            assert players is not None
            try:
                answers, failures = players.answer(*pickle.loads(data))  # noqa: S301 - from the engine
            except MemoryError:
                os._exit(OUT_OF_MEMORY)
            told = {"failures": failures, "seconds": time.thread_time() - began}
            send(connection, told, bytes(answers))
            asked += 1
            if asked % _COLLECT_EACH == 0:
                gc.collect()


class Strategy:
    """A playable strategy.

    Parameters
    ----------
    code
        See `source.Source`.
    """

    def __init__(self, code: bytes) -> None:
        self._told, self._code, *self._facts = marshal.loads(code)  # noqa: S302 - from the process that reads files, which runs none
        self.paper: bool = self._told["paper"]
        self.arguments: int = self._told["arguments"]
        self._class: Any = None

    def decisions(self, description: GameDescription, seed: int, group: int, seat: int) -> Any:
        """What a new player is called by for its decisions. Exceptions of the strategy's code are propagated."""
        if self._told["way"] == COMPILED:
            stream = chance_of(seed, group, seat) if self._told["random"] else None
            player = drawing(stream, self._harmless, description)
            return player.__call__ if stream is None else partial(drawing, stream, player.__call__)
        names = guarded_names(seed, group, seat, paper=self.paper)
        exec(self._code, names)  # noqa: S102 - what this package is for; see `confine`
        player = names[self._told["name"]](description)
        if not callable(player):
            raise TypeError("a player can't be called")
        return player.__call__

    def _harmless(self, description: GameDescription) -> Any:
        """A new player of a harmless strategy, with its own constants, which it may change."""
        copied, is_named = self._facts
        if self._class is None:
            shared = harmless_names()  # one table for all stays in the processor's cache
            names = {**shared} if is_named else shared
            made = names if is_named else {}
            exec(self._code, names, made)  # noqa: S102
            self._class = made[self._told["name"]]
        player = self._class.__new__(self._class)
        for name in copied:
            setattr(player, name, deepcopy(getattr(self._class, name)))
        player.__init__(description)
        return player


class Players:
    """The players of a batch in this process, and their observations.

    Parameters
    ----------
    head
        `game`, `seed`, players per group (`seats`), number of `places`, and whether a strategy has the `paper`'s form.
    numbers
        The numbers of the groups.
    """

    def __init__(
        self,
        head: dict[str, Any],
        numbers: NDArray[np.int64],
        known: dict[int, Strategy],
        watch: Watch,
        marks: memoryview,
    ) -> None:
        self._game = make_game(head["game"])
        self._head = head
        self._numbers = numbers
        self._known = known
        self._watch = watch
        self._marks = marks
        places = head["places"]
        self._description = describe(self._game)
        self._stocked = self._game.start(1) is not None
        self._seen = Seen(places, self._game, paper=head["paper"])
        self._players: list[Any] = [None] * places
        self._decided = [_UNMADE] * places
        self._spent: Counter[int] = Counter()
        watch.begin()

    def answer(
        self, t: int, places: list[int], numbers: list[int], rows: Any, learn: list[tuple[int, bytes]]
    ) -> tuple[bytearray, list[dict[str, Any]]]:
        """The players' decisions in a round, and their errors.

        Parameters
        ----------
        places, numbers
            Of the asked players, and of their strategies.
        rows
            See `hosts.History.rows`.
        learn
            The code of new strategies, with their numbers.
        """
        self._seen.write(*rows)
        self._known.update((number, Strategy(code)) for number, code in learn)
        stocks = self._seen.stocks(places, t) if self._stocked else None
        return self._decide(t, places, numbers, stocks)

    def _decide(
        self, t: int, places: list[int], numbers: list[int], stocks: list[Any] | None
    ) -> tuple[bytearray, list[dict[str, Any]]]:
        answers = bytearray(len(places))
        failures: list[dict[str, Any]] = []
        marks, players, decided, spent = self._marks, self._players, self._decided, self._spent
        named = 0 if self._game.is_binary else len(self._game.labels)
        self._watch.decisions += 1
        for index, place in enumerate(places):
            marks[PLACE] = place
            is_spent = False
            try:
                if spent and spent[numbers[index]] >= MOST_SPENT:
                    raise _StoppedError
                if decided[place] != t:
                    self._catch_up(place, numbers[index], t)
                decided[place] = t + 1
                decide, history, record = players[place]
                seen = history(record, t)
                answer = decide(seen) if stocks is None else decide(seen, stocks[index])
                if named:
                    answers[index] = _number(answer, named)
                elif answer is C:
                    answers[index] = COOPERATED
                elif answer is not D:
                    raise _IllegalError(answer)
            except BaseException as error:
                answers[index] = FAILED
                failures.append(self._failed(error, index, place, numbers[index], t))
                is_spent = failures[-1]["spent"]
            if is_spent:  # what it holds would take memory from the players after it
                marks[PLACE] = -1
                players[place] = None
                gc.collect()
        marks[PLACE] = -1
        return answers, failures

    def _catch_up(self, place: int, number: int, t: int) -> None:
        """Create a player if necessary, and repeat its decisions in the rounds before this one."""
        group, seat = divmod(place, self._head["seats"])
        strategy = self._known[number]
        self._watch.strategies[place] = number
        if self._players[place] is None:
            try:
                number_of_group, seed = int(self._numbers[group]), self._head["seed"]
                decide = strategy.decisions(self._described(number_of_group, seat), seed, number_of_group, seat)
            except BaseException as error:
                raise _UnmadeError from error
            record = self._seen.record(place, paper=strategy.paper)
            seen = SeenHistory if self._game.is_binary else ActionHistory
            history = _PaperSeen if strategy.paper else seen
            self._players[place] = self._asking(decide, strategy), history, record
        decide, history, record = self._players[place]
        self._watch.decisions += 1
        for earlier in range(max(0, self._decided[place]), t):
            self._decided[place] = earlier + 1
            seen = history(record, earlier)
            with contextlib.suppress(Exception):  # counted at the original decision
                decide(seen, *self._seen.stocks([place], earlier)) if self._stocked else decide(seen)
            self._watch.decisions += 1

    def _described(self, group: int, seat: int) -> GameDescription:
        """The description of a player's game, with the code of its group if players read it."""
        if "texts" not in self._head:
            return self._description
        texts = [self._head["texts"][str(number)] for number in self._head["members"][str(group)]]
        others = (*texts[:seat], *texts[seat + 1 :])
        unread = ("",) * (self._game.n_players - len(texts))
        return replace(self._description, own_source=texts[seat], opponent_sources=(*others, *unread))

    def _asking(self, decide: Callable[..., Any], strategy: Strategy) -> Callable[..., Any]:
        if strategy.paper:
            return _in_paper_form(decide)
        if self._stocked and strategy.arguments == 1:
            return lambda history, _stock: decide(history)
        return decide

    def _failed(self, error: BaseException, index: int, place: int, number: int, t: int) -> dict[str, Any]:
        made = not isinstance(error, _UnmadeError)
        cause = error if made else error.__cause__
        assert cause is not None
        spent = isinstance(cause, (DecisionTimeout, MemoryError))
        self._spent[number] += spent
        over = spent or not made or isinstance(cause, _StoppedError)
        memory = isinstance(cause, MemoryError)
        what, when = describe_error(cause), t if made else -1
        return {"index": index, "round": when, "what": what, "over": over, "spent": spent, "memory": memory}


class Seen:
    """The players' observations of a batch: a read-only row for each player."""

    def __init__(self, places: int, game: RepeatedGame, *, paper: bool) -> None:
        rounds, others = game.n_rounds, game.n_players - 1
        kind, by_action = (np.bool_, ()) if game.is_binary else (np.int64, (len(game.labels),))
        own: list[tuple[Any, tuple[int, ...]]] = [(kind, ()), (np.float64, ()), (np.int64, by_action)]
        theirs = [(kind, (others,)), (np.float64, (others,))] if paper else []
        self._arrays = [_array(kind, places, rounds, *shape) for kind, shape in own + theirs]
        self._stocks = np.zeros((places, rounds))

    def write(self, at: Any, seen: list[NDArray[Any]], stocks: Any) -> None:
        """Add rows; see `hosts.History.rows`."""
        for (array, _), new in zip(self._arrays, seen, strict=True):
            array[at] = new
        if stocks is not None:
            self._stocks[stocks[0]] = stocks[1]

    def stocks(self, places: list[int], t: int) -> list[Any]:
        """The stock for each player: an int before the first round, as in the published program."""
        told = self._stocks[places, t]
        return [int(one) for one in told] if t == 0 else list(told)

    def record(self, place: int, *, paper: bool) -> Record:
        """The observations of the player at a place."""
        own = [read_only[place] for _, read_only in self._arrays]
        return Record(*(own if paper else own[:3]))


def _array(kind: Any, *shape: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """An array of zeros, and a read-only view of its memory, which is followed by zeros."""
    count = math.prod(shape)
    memory = bytearray(count * np.dtype(kind).itemsize + _MARGIN)
    read_only = memoryview(memory).toreadonly()
    return np.frombuffer(memory, kind, count).reshape(shape), np.frombuffer(read_only, kind, count).reshape(shape)


class _IllegalError(Exception):
    """An answer that is not an action."""

    def __init__(self, answer: Any, legal: str = "C or D") -> None:
        super().__init__(f"answered with {_class_name(answer)}, not {legal}")


def _number(answer: Any, actions: int) -> int:
    """The index of an action in a game of named actions."""
    if type(answer) in (int, np.int64, np.int32) and 0 <= answer < actions:
        return int(answer)
    raise _IllegalError(answer, f"a whole number from 0 to {actions - 1}")


class _StoppedError(Exception):
    """A player is no longer run: too many players of its strategy exceeded a limit."""


class _UnmadeError(Exception):
    """A player could not be created."""


def describe_error(error: BaseException) -> str:
    """The description of an error, without calls of its methods."""
    if isinstance(error, DecisionTimeout):
        return TIMEOUT
    if isinstance(error, MemoryError):
        return "asked for too much memory"
    if isinstance(error, _StoppedError):
        return STOPPED
    if isinstance(error, _IllegalError):
        return str(error)
    try:
        text = str(error.args[0]) if error.args and type(error.args[0]) is str else ""
    except BaseException:
        text = ""
    return f"{_class_name(error)}: {text}"[:_MOST_TOLD].rstrip(": ")


TIMEOUT = "took too long"
STOPPED = "was not run, since others of it took too long or too much memory"


def _class_name(thing: object) -> str:
    name = type.__dict__["__name__"].__get__(type(thing))
    return str(name)[:60]


class _PaperSeen:
    """The arguments of a decision in the paper's form, instead of a history."""

    __slots__ = ("_record", "t")

    def __init__(self, record: Record, t: int) -> None:
        self._record = record
        self.t = t

    def history(self) -> PaperHistory | None:
        return None if self.t == 0 else SeenPaperHistory(self._record, self.t)


def _in_paper_form(decide: Callable[..., Any]) -> Callable[..., Any]:
    """An adapter for decisions in the paper's form: with a state, and None for an empty history."""

    def asked(seen: _PaperSeen, stock: Any = None) -> Any:
        state = GameState(seen.t) if stock is None else CommonPoolState(seen.t, stock)
        return decide(state, seen.history())

    return asked


def make_game(told: dict[str, Any]) -> RepeatedGame:
    """The game described in a message."""
    return REPEATED[told["name"]](told["n_players"], told["n_rounds"], **told["parameters"])


def describe(game: RepeatedGame) -> GameDescription:
    """The description of a game for strategies."""
    unread = ("",) * (game.n_players - 1)
    return DESCRIPTIONS[game.name](game.n_players, game.n_rounds, **game.parameters, opponent_sources=unread)
