"""Checks of strategies by playing: in games of several sizes and lengths, against opponents of several kinds.

Nothing is played that the static checks refuse. A strategy that declares to be deterministic, because nothing in its
code draws random numbers, is played twice and has to do the same; what draws random numbers is only told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame, make_repeated
from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation
from labmates.workflows.populations.engine.workers import Batch, Loaded, Result, Workers

SIZES = ((3, 20), (4, 1), (4, 5), (10, 20), (64, 20))
"""Players and rounds of the games that are played."""
_KINDS = 6


@dataclass(frozen=True)
class Checked:
    """What is known of a strategy after it has been checked.

    Attributes
    ----------
    problems
        What is wrong with it; empty if nothing.
    deterministic
        Whether it is so, declared and verified.
    microseconds
        Mean time of a decision.
    """

    strategy: Loaded
    problems: tuple[str, ...]
    deterministic: bool
    microseconds: float


def check_strategies(workers: Workers, game: str, strategies: Sequence[Loaded], *, seed: int = 0) -> list[Checked]:
    """Check strategies for a game, in their order."""
    playable = [one for one in strategies if not one.problems]
    found: dict[int, list[str]] = {one.index: list(one.problems) for one in strategies}
    same = dict.fromkeys(found, True)
    seconds = dict.fromkeys(found, 0.0)
    decisions = 0
    stopped: set[int] = set()
    for n_players, n_rounds in SIZES:
        made = make_repeated(game, n_players, n_rounds)
        going = [one for one in playable if one.index not in stopped]
        if not going:
            break
        first, second = (_played(workers, made, going, seed + again) for again in (0, 1))
        decisions += _KINDS * n_rounds
        for place, one in enumerate(going):
            same[one.index] &= bool((first.actions[place] == second.actions[place]).all())
            seconds[one.index] += first.seconds[place]
            for what in (*first.errors.get(one.index, ()), *second.errors.get(one.index, ())):
                if what not in found[one.index]:
                    found[one.index].append(what)
            if one.index in first.stopped | second.stopped:
                stopped.add(one.index)
    checked = []
    for one in strategies:
        if not one.random and not same[one.index] and not found[one.index]:
            found[one.index].append("does not do the same again, although it draws no random numbers")
        problems = tuple(dict.fromkeys(found[one.index]))
        sure = same[one.index] and not one.random and not problems
        checked.append(Checked(one, problems, sure, 1e6 * seconds[one.index] / max(1, decisions)))
    return checked


@dataclass(frozen=True)
class _Round:
    actions: NDArray[np.bool_]
    errors: dict[int, list[str]]
    stopped: set[int]
    seconds: list[float]


def _played(workers: Workers, game: RepeatedGame, strategies: Sequence[Loaded], seed: int) -> _Round:
    """Let each strategy play against opponents of each kind, who do the same whatever it does."""
    others = opponents(game)
    batches = [
        Batch(
            game,
            np.full((_KINDS, 1), one.index),
            seed=seed,
            cooperate=frozenset([one.index] if falls_back_to_cooperation(one.attitude) else []),
            opponents=others,
            measure=True,
        )
        for one in strategies
    ]
    results = workers.play(batches)
    errors = {one.index: _told(result, game) for one, result in zip(strategies, results, strict=True) if result.errors}
    stopped = {index for result in results for index, error in result.errors.items() if error.stopped}
    actions = np.array([result.actions[:, :, 0] for result in results])
    return _Round(actions, errors, stopped, [result.own_seconds for result in results])


def _told(result: Result, game: RepeatedGame) -> list[str]:
    return [
        f"{error.what} ({'when it is made' if error.round < 0 else f'round {error.round}'}; {game.n_players} players, "
        f"{game.n_rounds} rounds)"
        for error in result.errors.values()
    ]


def opponents(game: RepeatedGame) -> NDArray[np.bool_]:
    """Return what opponents of each kind do: all cooperate, all defect, half, at random, in turns, ever fewer."""
    rounds, others = game.n_rounds, game.n_players - 1
    chance = np.random.default_rng(0)
    found = np.zeros((_KINDS, rounds, others), dtype=bool)
    found[0] = True
    found[2, :, : (others + 1) // 2] = True
    found[3] = chance.random((rounds, others)) < 0.5
    found[4, ::2] = True
    found[5] = np.arange(rounds)[:, None] * others < (np.arange(others)[::-1] + 1) * rounds
    return found
