"""Behaviour of strategies: vectors of cooperation rates, one for each history of the opponents.

A strategy whose code draws no random numbers is played once through all histories; wherever two of these begin in the
same way it must have done the same, or it is played as often as the others.
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
from labmates.games.repeated import RepeatedGame
from labmates.workflows.populations.engine.evolution import PlayBatches
from labmates.workflows.populations.engine.workers import Batch, chunks

Features = Literal["histories", "counts"]
_MOST_GAMES = 200_000
_SEATS = 2048


@dataclass(frozen=True)
class Situations:
    """All histories of opponents that a game can have.

    Attributes
    ----------
    opponents
        Games in which each is met, ``(games, rounds, opponents)``; True for cooperation.
    places
        For each game and round, which entry of the vector its history is, ``(games, rounds)``.
    size
        Entries of the vector.
    """

    opponents: NDArray[np.bool_]
    places: NDArray[np.int64]
    size: int

    @property
    def all_cooperate(self) -> NDArray[np.int64]:
        """The entry of each round where all opponents have always cooperated."""
        game = np.argmax(self.opponents[:, :-1].all(axis=(1, 2)))
        return np.asarray(self.places[game])


def situations(game: RepeatedGame, features: Features) -> Situations:
    """All situations of a game.

    Parameters
    ----------
    features
        ``histories``: what each opponent did, whoever it was (paper, section 4.2; 961 of 4 players and 5 rounds).
        ``counts``: how many opponents cooperated in each round (341 of 4 players and 5 rounds, 5,461 of 7).

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
            "allowed: take fewer rounds or players"
        )
    if features == "counts":
        counts = np.array(list(product(range(others + 1), repeat=rounds - 1)), dtype=np.int64)
        counts = counts.reshape(games, rounds - 1)
        moves = np.arange(others) < counts[:, :, None]
        keys: list[tuple[object, ...]] = [tuple(row) for row in counts.tolist()]
    else:
        sequences = list(product((False, True), repeat=rounds - 1))
        played = list(combinations_with_replacement(sequences, others))
        # Sorted by their first rounds first: so are the beginnings of such games.
        moves = np.array(played, dtype=bool).reshape(games, others, rounds - 1).swapaxes(1, 2)
        keys = [tuple(tuple(row) for row in one) for one in moves.tolist()]
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
        Whether it does the same each time: declared by its code and seen.
    errors
        Decisions that it failed to make.
    stopped
        Whether it took too long or too much memory.
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
        Games through each history of a strategy that is not deterministic.
    tell
        Told the number of strategies that are done.
    """
    known = situations(game, features)
    found: dict[int, Behaviour] = {}

    def met(wanted: Sequence[int], games: int, *, once: bool) -> None:
        slice_ = max(1, _GAMES_AT_ONCE // (len(known.opponents) * games))
        for start in range(0, len(wanted), slice_):
            chosen = wanted[start : start + slice_]
            for strategy, one in zip(chosen, _met(game, play, known, chosen, cooperate, games, seed), strict=True):
                same = once and bool(np.isin(one.rates, (0, 1)).all())
                # A slow strategy would be slow again and again.
                if same or one.stopped or not once:
                    found[strategy] = replace(one, deterministic=same)
            if tell is not None:
                tell(len(found))

    met([one for one in strategies if not random[one]], 1, once=True)
    met([one for one in strategies if one not in found], rollouts, once=False)
    return [found[one] for one in strategies]


_GAMES_AT_ONCE = 100_000


def _met(
    game: RepeatedGame,
    play: PlayBatches,
    known: Situations,
    strategies: Sequence[int],
    cooperate: frozenset[int],
    rollouts: int,
    seed: int,
) -> list[Behaviour]:
    """Let each strategy meet all situations; they share nothing but the workers."""
    opponents = np.tile(known.opponents, (rollouts, 1, 1))
    places = np.tile(known.places, (rollouts, 1)).reshape(-1)
    met = np.bincount(places, minlength=known.size)
    parts = [
        list(chunks(Batch(game, groups, seed, cooperate=cooperate & {strategy}, opponents=opponents), _SEATS))
        for strategy in strategies
        for groups in [np.full((len(opponents), 1), strategy, dtype=np.int64)]
    ]
    results = iter(play([batch for part in parts for batch in part]))
    found = []
    for part in parts:
        own = [next(results) for _ in part]
        actions = np.concatenate([result.actions[:, :, 0] for result in own])
        rates = np.bincount(places, weights=actions.reshape(-1), minlength=known.size) / met
        errors = [error for result in own for error in result.errors.values()]
        stopped = any(error.stopped for error in errors)
        found.append(Behaviour(rates, False, sum(error.count for error in errors), stopped))
    return found
