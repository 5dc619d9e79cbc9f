"""Meetings of types of players: payoffs in groups of every composition, estimated by simulation.

A type is a named set of strategies; each seat of a group draws one of its type's strategies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from labmates.stats.metagame import Array, metagame
from labmates.util.seeds import derive
from labmates_populations.engine.evolution import PlayBatches
from labmates_populations.engine.workers import Batch, chunks
from labmates_populations.repeated import RepeatedGame

MOST_WHOLE = 1000
"""Maximum number of compositions for which all are played; otherwise only those of at most two types."""
_DECISIONS_AT_ONCE = 20_000_000

Group = tuple[int, ...]
"""The types of a group's players, sorted."""


@dataclass(frozen=True)
class Meetings:
    """Payoffs of types against each other.

    Attributes
    ----------
    types
        Their names.
    players
        Group size.
    payoffs
        By composition, the payoffs per round of each of its types, averaged over seats; shape ``(samples, types)``, in
        the order of the types.
    errors
        Number of failed decisions.
    """

    types: tuple[str, ...]
    players: int
    payoffs: Mapping[Group, NDArray[np.float64]]
    errors: int

    @property
    def whole(self) -> bool:
        """Whether all compositions were played."""
        return len(self.payoffs) == comb(len(self.types) + self.players - 1, self.players)

    def pairs(self, chance: np.random.Generator | None = None) -> Array:
        """Mean payoffs of pairs of types (see `labmates_populations.fixation`).

        Parameters
        ----------
        chance
            If given, the groups of each composition are resampled: one bootstrap replicate.
        """
        pairs = np.zeros((len(self.types), len(self.types), self.players))
        for group, payoffs in self.payoffs.items():
            drawn = payoffs if chance is None else payoffs[chance.integers(len(payoffs), size=len(payoffs))]
            means = dict(zip(sorted(set(group)), drawn.mean(axis=0), strict=True))
            for own, mean in means.items():
                others = means.keys() - {own}
                if not others:
                    pairs[own, own, :] = pairs[own, :, -1] = mean
                elif len(others) == 1:
                    pairs[own, others.pop(), group.count(own) - 1] = mean
        return pairs

    def metagame(self) -> Array:
        """The metagame of the types; all compositions must have been played."""
        means = {
            group: dict(zip(sorted(set(group)), payoffs.mean(axis=0), strict=True))
            for group, payoffs in self.payoffs.items()
        }
        return metagame(len(self.types), ((group, [mean[kind] for kind in group]) for group, mean in means.items()))


def meet(
    game: RepeatedGame,
    types: Mapping[str, Sequence[int]],
    cooperate: frozenset[int],
    play: PlayBatches,
    *,
    samples: int,
    seed: int,
) -> Meetings:
    """Play groups of every composition of types.

    Parameters
    ----------
    types
        The indices of each type's strategies, by name.
    cooperate
        The strategies that fall back to cooperation.
    samples
        Groups per composition.
    """
    names = tuple(types)
    payoffs: dict[Group, NDArray[np.float64]] = {}
    errors = 0
    for groups in _slices(len(names), game, samples):
        batches = [_batch(game, types, cooperate, group, samples, seed) for group in groups]
        parts = [list(chunks(batch)) for batch in batches]
        results = iter(play([chunk for part in parts for chunk in part]))
        for group, part in zip(groups, parts, strict=True):
            played = [next(results) for _ in part]
            earned = game.counted(np.concatenate([result.actions for result in played])).mean(axis=1)
            seats = np.array(group)
            payoffs[group] = np.stack([earned[:, seats == kind].mean(axis=1) for kind in sorted(set(group))], axis=1)
            errors += sum(error.count for result in played for error in result.errors.values())
    return Meetings(names, game.n_players, payoffs, errors)


def _slices(types: int, game: RepeatedGame, samples: int) -> Iterator[list[Group]]:
    """The compositions, in slices whose moves fit into memory."""
    players = game.n_players
    if comb(types + players - 1, players) <= MOST_WHOLE:
        groups = list(combinations_with_replacement(range(types), players))
    else:
        groups = [(kind,) * players for kind in range(types)]
        groups += [
            (first,) * count + (second,) * (players - count)
            for first in range(types)
            for second in range(first + 1, types)
            for count in range(1, players)
        ]
    step = max(1, _DECISIONS_AT_ONCE // (samples * players * game.n_rounds))
    for start in range(0, len(groups), step):
        yield groups[start : start + step]


def _batch(
    game: RepeatedGame,
    types: Mapping[str, Sequence[int]],
    cooperate: frozenset[int],
    group: Group,
    samples: int,
    seed: int,
) -> Batch:
    """The games of one composition; the seed depends only on the names of its types."""
    names = [list(types)[kind] for kind in group]
    chance = np.random.default_rng(derive(seed, "meeting", *names))
    seats = np.stack([chance.choice(np.array(types[name]), size=samples) for name in names], axis=1)
    own = cooperate & set(seats.reshape(-1).tolist())
    return Batch(game, seats, derive(seed, "play", *names), cooperate=frozenset(own))
