"""Behaviour of strategies: vectors of cooperation rates, with an entry for each history of the opponents.

A strategy whose code draws no random numbers plays once through all histories. If its moves differ for equal beginnings
of two histories, it is played as often as a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates_populations.engine.evolution import PlayBatches
from labmates_populations.engine.workers import Batch, chunks
from labmates_populations.repeated import RepeatedGame

Features = Literal["histories", "counts"]
_MOST_GAMES = 200_000
_SEATS = 2048


@dataclass(frozen=True)
class Situations:
    """All possible histories of opponents in a game.

    Attributes
    ----------
    opponents
        Moves of opponents in each game, ``(games, rounds, opponents)``; True for cooperation.
    places
        Index in the vector of the history before each round, ``(games, rounds)``.
    size
        Length of the vector.
    """

    opponents: NDArray[np.bool_]
    places: NDArray[np.int64]
    size: int

    @property
    def all_cooperate(self) -> NDArray[np.int64]:
        """The entry of each round in which all opponents have always cooperated."""
        game = np.argmax(self.opponents[:, :-1].all(axis=(1, 2)))
        return np.asarray(self.places[game])


def situations(game: RepeatedGame, features: Features) -> Situations:
    """All situations of a game.

    Parameters
    ----------
    features
        ``histories``: the moves of each opponent, in any order (paper, section 4.2; 961 for 4 players and 5 rounds).
        ``counts``: the number of cooperating opponents in each round (341 for 4 players and 5 rounds, 5,461 for 7).

    Raises
    ------
    UsageError
        If there are too many.
    """
    if not game.is_binary:
        raise UsageError(f"behaviours are cooperation rates: they need a game of two actions, C and D, not {game.name}")
    rounds, others = game.n_rounds, game.n_players - 1
    games = (others + 1) ** (rounds - 1) if features == "counts" else _multisets(2 ** (rounds - 1), others)
    if games > _MOST_GAMES:
        raise UsageError(
            f"{game.n_players} players and {rounds} rounds have {games} different games; at most {_MOST_GAMES} are "
            "allowed; use fewer rounds or players"
        )
    if features == "counts":
        counts = np.array(list(product(range(others + 1), repeat=rounds - 1)), dtype=np.int64)
        counts = counts.reshape(games, rounds - 1)
        moves = np.arange(others) < counts[:, :, None]
        keys: list[tuple[object, ...]] = [tuple(row) for row in counts.tolist()]
    else:
        sequences = list(product((False, True), repeat=rounds - 1))
        played = list(combinations_with_replacement(sequences, others))
        # The first rounds of sorted sequences are sorted as well.
        moves = np.array(played, dtype=bool).reshape(games, others, rounds - 1).swapaxes(1, 2)
        keys = [tuple(tuple(row) for row in rows) for rows in moves.tolist()]
    opponents = np.zeros((games, rounds, others), dtype=bool)
    opponents[:, : rounds - 1] = moves
    known: dict[tuple[object, ...], int] = {}
    places = np.empty((games, rounds), dtype=np.int64)
    for t in range(rounds):
        for number, key in enumerate(keys):
            begun = key[:t]
            places[number, t] = known.setdefault((t, begun), len(known))
    return Situations(opponents, places, len(known))


def _multisets(kinds: int, size: int) -> int:
    return comb(kinds + size - 1, size)


@dataclass(frozen=True)
class Behaviour:
    """Behaviour of a strategy.

    Attributes
    ----------
    rates
        Cooperation rate in each situation.
    deterministic
        Whether its moves are always the same: without random numbers in its code, and verified.
    errors
        Number of failed decisions.
    stopped
        Whether it exceeded a limit of time or memory.
    """

    rates: NDArray[np.float64]
    deterministic: bool
    errors: int
    stopped: bool


def behaviours(
    game: RepeatedGame,
    play: PlayBatches,
    strategies: Sequence[int],
    *,
    features: Features,
    random: Mapping[int, bool],
    cooperate: frozenset[int],
    rollouts: int = 50,
    seed: int = 0,
    tell: Callable[[int], None] | None = None,
) -> list[Behaviour]:
    """The behaviour of strategies in all situations of a game.

    Parameters
    ----------
    random
        Whether a strategy's code draws random numbers.
    rollouts
        Games per history for strategies that are not deterministic.
    tell
        Called with the number of completed strategies.
    """
    known = situations(game, features)
    found: dict[int, Behaviour] = {}

    def measure(wanted: Sequence[int], games: int, *, once: bool) -> None:
        slice_ = max(1, _GAMES_AT_ONCE // (len(known.opponents) * games))
        for start in range(0, len(wanted), slice_):
            chosen = wanted[start : start + slice_]
            measured = _measured(game, play, known, chosen, cooperate, games, seed)
            for strategy, behaviour in zip(chosen, measured, strict=True):
                same = once and bool(np.isin(behaviour.rates, (0, 1)).all())
                # A slow strategy would be slow in every repetition.
                if same or behaviour.stopped or not once:
                    found[strategy] = replace(behaviour, deterministic=same)
            if tell is not None:
                tell(len(found))

    measure([strategy for strategy in strategies if not random[strategy]], 1, once=True)
    measure([strategy for strategy in strategies if strategy not in found], rollouts, once=False)
    return [found[strategy] for strategy in strategies]


_GAMES_AT_ONCE = 100_000


def _measured(
    game: RepeatedGame,
    play: PlayBatches,
    known: Situations,
    strategies: Sequence[int],
    cooperate: frozenset[int],
    rollouts: int,
    seed: int,
) -> list[Behaviour]:
    """Each strategy's behaviour in all situations; strategies are independent of each other."""
    opponents = np.tile(known.opponents, (rollouts, 1, 1))
    places = np.tile(known.places, (rollouts, 1)).reshape(-1)
    visits = np.bincount(places, minlength=known.size)
    parts = [
        list(chunks(Batch(game, groups, seed, cooperate=cooperate & {strategy}, opponents=opponents), _SEATS))
        for strategy in strategies
        for groups in [np.full((len(opponents), 1), strategy, dtype=np.int64)]
    ]
    results = iter(play([batch for part in parts for batch in part]))
    measured = []
    for part in parts:
        own = [next(results) for _ in part]
        actions = np.concatenate([result.actions[:, :, 0] for result in own])
        rates = np.bincount(places, weights=actions.reshape(-1), minlength=known.size) / visits
        errors = [error for result in own for error in result.errors.values()]
        stopped = any(error.stopped for error in errors)
        measured.append(Behaviour(rates, False, sum(error.count for error in errors), stopped))
    return measured
