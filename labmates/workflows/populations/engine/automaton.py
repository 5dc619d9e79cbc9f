"""Behaviour as a small automaton: states with an action, and transitions by the number of other cooperators.

A behaviour is the moves in all situations of `counts` (see `engine.behaviour`), in their order: a complete tree with a
branch for each number of other cooperators, level by level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates.games.iterated.library import library, library_action
from labmates.games.iterated.match import Action, Payoffs, Round

Moves = NDArray[np.bool_]


@dataclass(frozen=True)
class Automaton:
    """A strategy as an automaton; the initial state is 0.

    Attributes
    ----------
    actions
        Of each state; True for cooperation.
    following
        For each state, the next state by the number of other cooperators.
    """

    actions: tuple[bool, ...]
    following: tuple[tuple[int, ...], ...]

    def moves(self, rounds: int) -> Moves:
        """The moves in all situations of a game with this number of rounds."""
        actions, following = np.array(self.actions), np.array(self.following)
        levels = [np.zeros(1, dtype=np.int64)]
        for _ in range(rounds - 1):
            levels.append(following[levels[-1]].reshape(-1))
        return np.asarray(actions[np.concatenate(levels)])

    def source(self, name: str) -> str:
        """The code of an equivalent strategy class called `name`."""
        return (
            "from labmates.strategies import BaseStrategy, C, D\n\n\n"
            f"class {name}(BaseStrategy):\n"
            "    def __init__(self, game_description):\n"
            f"        self.actions = {self.actions!r}\n"
            f"        self.following = {self.following!r}\n"
            "        self.state = 0\n\n"
            "    def __call__(self, history, *stock):\n"
            "        if history.round_number > 0:\n"
            "            self.state = self.following[self.state][int(history.opponent_cooperators[-1])]\n"
            "        return C if self.actions[self.state] else D\n"
        )

    def axelrod_player(self) -> Any:
        """The automaton as an ``FSMPlayer`` of the library axelrod; UsageError unless it is for two players."""
        if len(self.following[0]) != 2:
            raise UsageError("the library axelrod has only games of two players (--group-size 2)")
        axl = library()
        letters = [axl.Action.C if cooperates else axl.Action.D for cooperates in self.actions]
        transitions = tuple(
            (state, opponent, after, letters[after])
            for state, row in enumerate(self.following)
            for opponent, after in zip((axl.Action.D, axl.Action.C), row, strict=True)
        )
        return axl.FSMPlayer(transitions, initial_state=0, initial_action=letters[0])

    def __str__(self) -> str:
        rows = zip(self.actions, self.following, strict=True)
        return "; ".join(
            f"{state}: {'C' if cooperates else 'D'} → {' '.join(map(str, row))}"
            for state, (cooperates, row) in enumerate(rows)
        )


def find_automaton(moves: Moves, players: int, rounds: int) -> Automaton | None:
    """The automaton with these moves and the fewest rounds of look-ahead.

    Situations belong to the same state if their continuations in this number of rounds are equal.

    Returns
    -------
    automaton
        None if a game of this length does not identify one: the strategy counts rounds, or has a longer memory.
    """
    for depth in range(1, rounds):
        found = _merged(moves, players, rounds, depth)
        if found is not None and np.array_equal(found.moves(rounds), moves):
            return found
    return None


def _merged(moves: Moves, players: int, rounds: int, depth: int) -> Automaton | None:
    """The automaton with the moves of `depth` rounds as states; None if a state occurs only at the end."""
    starts = np.cumsum([0, *(players**level for level in range(rounds))])

    def ahead(level: int, place: int) -> bytes:
        parts = (
            moves[starts[level + step] + place * players**step : starts[level + step] + (place + 1) * players**step]
            for step in range(depth)
        )
        return np.concatenate(list(parts)).tobytes()

    states: dict[bytes, int] = {ahead(0, 0): 0}
    nodes = [(0, 0)]
    following: list[tuple[int, ...]] = []
    for level, place in nodes:  # grows while it is read
        if level + 1 > rounds - depth:
            return None
        row = []
        for count in range(players):
            after = level + 1, place * players + count
            key = ahead(*after)
            if key not in states:
                states[key] = len(states)
                nodes.append(after)
            row.append(states[key])
        following.append(tuple(row))
    actions = tuple(bool(moves[starts[level] + place]) for level, place in nodes)
    return Automaton(actions, tuple(following))


def library_moves(name: str, rounds: int, payoffs: Payoffs) -> Moves:
    """The moves of a deterministic strategy of the library axelrod in all situations of a game of two.

    Raises
    ------
    UsageError
        If there is no such strategy, or it can't play with these payoffs.
    MissingExtraError
        If the library is not installed.
    """
    level: list[tuple[Round, ...]] = [()]
    moves: list[bool] = []
    for _ in range(rounds):
        actions: list[Action] = [library_action(name, match, payoffs=payoffs, length=rounds) for match in level]
        moves += [action == "C" for action in actions]
        level = [
            (*match, (action, theirs)) for match, action in zip(level, actions, strict=True) for theirs in ("D", "C")
        ]
    return np.array(moves)


def deterministic_strategies() -> Iterator[str]:
    """The names of the deterministic and fast strategies of the library axelrod."""
    axl = library()
    for strategy in axl.strategies:
        if not axl.Classifiers["stochastic"](strategy()) and not axl.Classifiers["long_run_time"](strategy()):
            yield strategy.__name__
