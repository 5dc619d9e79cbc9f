"""Meetings of types of players: what each gets in groups of every composition, sampled by playing.

A type is a name with the strategies that it has; each seat of a group draws one of its type's strategies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from labmates.games.repeated import RepeatedGame
from labmates.seeds import derive
from labmates.stats.metagame import Array, metagame
from labmates.workflows.populations.engine.evolution import PlayBatches
from labmates.workflows.populations.engine.workers import Batch, chunks

MOST_WHOLE = 1000
"""If there are no more sets of types than this that can meet, all of them do; else only those of two types."""
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
        Of a group.
    payoffs
        For each group the payoffs per round of each of its types, averaged over seats; shape ``(samples, types)``, in
        the order of the types.
    errors
        Decisions that strategies failed to make.
    """

    types: tuple[str, ...]
    players: int
    payoffs: Mapping[Group, NDArray[np.float64]]
    errors: int

    @property
    def whole(self) -> bool:
        """Whether all sets of types met, not only those of two types."""
        return len(self.payoffs) == comb(len(self.types) + self.players - 1, self.players)

    def pairs(self, chance: np.random.Generator | None = None) -> Array:
        """Mean payoffs of pairs of types (see `labmates.stats.fixation`).

        Parameters
        ----------
        chance
            If given, the groups of each kind are drawn with replacement: one replicate of a bootstrap.
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
        """The metagame of the types; all sets of them have to have met."""
        means = {group: dict(zip(sorted(set(group)), own.mean(0), strict=True)) for group, own in self.payoffs.items()}
        return metagame(len(self.types), ((group, [own[one] for one in group]) for group, own in means.items()))


def meet(
    game: RepeatedGame,
    types: Mapping[str, Sequence[int]],
    cooperate: frozenset[int],
    play: PlayBatches,
    *,
    samples: int,
    seed: int,
) -> Meetings:
    """Let types meet in groups of every composition.

    Parameters
    ----------
    types
        The numbers of each type's strategies, by name.
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
        results = iter(play([part for one in parts for part in one]))
        for group, part in zip(groups, parts, strict=True):
            played = [next(results) for _ in part]
            earned = game.counted(np.concatenate([result.actions for result in played])).mean(axis=1)
            seats = np.array(group)
            payoffs[group] = np.stack([earned[:, seats == one].mean(axis=1) for one in sorted(set(group))], axis=1)
            errors += sum(error.count for result in played for error in result.errors.values())
    return Meetings(names, game.n_players, payoffs, errors)


def _slices(types: int, game: RepeatedGame, samples: int) -> Iterator[list[Group]]:
    """The groups that meet, so many at a time that their moves fit into memory."""
    players = game.n_players
    if comb(types + players - 1, players) <= MOST_WHOLE:
        groups = list(combinations_with_replacement(range(types), players))
    else:
        groups = [(one,) * players for one in range(types)]
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
    """The games of one composition; they depend on the names of its types alone, whoever else takes part."""
    names = [list(types)[one] for one in group]
    chance = np.random.default_rng(derive(seed, "meeting", *names))
    seats = np.stack([chance.choice(np.array(types[name]), size=samples) for name in names], axis=1)
    own = cooperate & set(seats.reshape(-1).tolist())
    return Batch(game, seats, derive(seed, "play", *names), cooperate=frozenset(own))
