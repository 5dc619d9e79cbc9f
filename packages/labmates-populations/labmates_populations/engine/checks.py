"""Checks of strategies by playing: in games of several sizes and lengths, against opponents of several kinds.

Strategies that fail the static checks are not played. Every strategy plays twice with the same seed, in different
processes and next to different strategies, and its moves must be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.kernel.source import Found
from labmates_populations.engine.kernel.ways import WAYS
from labmates_populations.engine.workers import Batch, Cost, Errors, Loaded, Workers, chunks, total_costs
from labmates_populations.repeated import RepeatedGame, make_repeated

SIZES = ((4, 20), (3, 20), (4, 1), (4, 5), (10, 20), (64, 20))
"""Players and rounds of the test games, the standard ones first."""
_KINDS = 6
_SAMPLE = 20
_TOGETHER = 6144
"""Games that are played in one batch the first time; the second time half as many, beside half of the neighbours."""


@dataclass(frozen=True)
class Checked:
    """The result of a strategy's check.

    Attributes
    ----------
    problems
        Faults; empty if it passes.
    deterministic
        Whether its moves are always the same, declared and verified.
    microseconds
        Processor time per decision of the strategies of this check that are played as it is; None if it was not played.
    """

    strategy: Found
    problems: tuple[str, ...]
    deterministic: bool
    microseconds: float | None = None


def check_strategies(
    workers: Workers, game: str | RepeatedGame, strategies: Sequence[Loaded], *, seed: int = 0
) -> list[Checked]:
    """Check strategies for a game, in their order.

    Parameters
    ----------
    game
        The name of a game for any number of players, or a game whose payoffs are for its own number.
    """
    active = [strategy for strategy in strategies if not strategy.problems]
    found: dict[int, list[str]] = {strategy.index: list(strategy.problems) for strategy in strategies}
    same = dict.fromkeys(found, True)
    costs: dict[str, Cost] = {}
    for made in _sizes(game):
        played = _played(workers, made, active, seed)
        costs = {way: costs.get(way, Cost()) + played.costs.get(way, Cost()) for way in {*costs, *played.costs}}
        first, second = played.actions
        equal = (first == second).all(axis=(1, 2)).tolist()
        for strategy, is_same in zip(active, equal, strict=True):
            same[strategy.index] &= is_same
            found[strategy.index] += played.errors.get(strategy.index, ())
        active = [strategy for strategy in active if strategy.index not in played.stopped]
    checked = []
    for strategy in strategies:
        if not same[strategy.index] and not found[strategy.index]:
            why = " with the same seed" if strategy.random else ", although it draws no random numbers"
            found[strategy.index].append(f"does not do the same again{why}")
        problems = tuple(dict.fromkeys(found[strategy.index]))
        deterministic = not strategy.random and not problems
        cost = costs.get(strategy.way)
        microseconds = cost.microseconds if cost is not None and not strategy.problems else None
        checked.append(Checked(strategy, problems, deterministic, microseconds))
    return checked


def sampled_costs(workers: Workers, game: str, strategies: Sequence[Loaded]) -> dict[str, float]:
    """Microseconds of processor time for a decision in each way to play, by some strategies of each."""
    playable = [one for one in strategies if not one.problems]
    sample = [one for way in WAYS for one in [one for one in playable if one.way == way][:_SAMPLE]]
    costs = _played(workers, make_repeated(game, *SIZES[0]), sample, seed=0).costs
    return {way: cost.microseconds for way, cost in costs.items()}


def _sizes(game: str | RepeatedGame) -> list[RepeatedGame]:
    """The test games."""
    if isinstance(game, str):
        return [make_repeated(game, n_players, n_rounds) for n_players, n_rounds in SIZES]
    return [replace(game, n_rounds=n_rounds) for n_rounds in (20, 1, 5)]


@dataclass(frozen=True)
class _Played:
    """Moves ``(twice, strategies, kinds, rounds)``, errors by index, stopped strategies, and costs by way."""

    actions: NDArray[Any]
    errors: dict[int, list[str]]
    stopped: set[int]
    costs: dict[str, Cost]


def _played(workers: Workers, game: RepeatedGame, strategies: Sequence[Loaded], seed: int) -> _Played:
    """Play each strategy twice against opponents of each kind with fixed moves."""
    indices = np.array([strategy.index for strategy in strategies], dtype=np.int64)
    cooperate = frozenset(strategy.index for strategy in strategies if falls_back_to_cooperation(strategy.attitude))
    groups = np.repeat(indices, _KINDS)[:, None]
    batch = Batch(game, groups, seed, cooperate=cooperate, opponents=opponents(game), anew=True)
    half = min(_TOGETHER, _KINDS * len(strategies) + _KINDS) // (2 * _KINDS) * _KINDS
    results = workers.play([*chunks(batch, _TOGETHER), *chunks(batch, half)])
    errors: dict[int, list[str]] = {}
    stopped: set[int] = set()
    for result in results:
        for index, error in result.errors.items():
            errors.setdefault(index, []).append(_error_text(error, game))
            stopped |= {index} if error.stopped else set()
    shape = 2, len(strategies), _KINDS, game.n_rounds
    actions = np.concatenate([result.actions for result in results]) if results else np.empty(0, np.uint8)
    return _Played(actions.reshape(shape), errors, stopped, total_costs(results))


def _error_text(error: Errors, game: RepeatedGame) -> str:
    when = "when it is made" if error.round < 0 else f"round {error.round}"
    return f"{error.what} ({when}; {game.n_players} players, {game.n_rounds} rounds)"


def opponents(game: RepeatedGame) -> NDArray[Any]:
    """The moves of opponents of each kind: all cooperate, all defect, half, random, alternating, declining.

    In games of named actions, the first action means cooperation and the last one defection.
    """
    rounds, others = game.n_rounds, game.n_players - 1
    chance = np.random.default_rng(0)
    found = np.zeros((_KINDS, rounds, others), dtype=bool)
    found[0] = True
    found[2, :, : (others + 1) // 2] = True
    found[3] = chance.random((rounds, others)) < 0.5
    found[4, ::2] = True
    found[5] = np.arange(rounds)[:, None] * others < (np.arange(others)[::-1] + 1) * rounds
    if game.is_binary:
        return found
    named = np.where(found, 0, len(game.labels) - 1).astype(np.uint8)
    named[3] = chance.integers(len(game.labels), size=(rounds, others))
    return named
