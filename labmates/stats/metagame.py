"""The metagame: each player chooses a model to play for it; entries are models' payoffs against sets of co-players.

A metagame is an array of shape ``(models,) * players``: the first index is the model, the others are its co-players'
models, in any order. Roles are averaged: an entry is the mean over all seats of the model and all orders of its
co-players (CoopEval, section 5).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labmates.errors import UsageError

Array = NDArray[np.float64]

MOST_PAYOFF = 1e100
"""Beyond this, differences of payoffs may overflow."""
MOST_ENTRIES = 20_000_000
"""Limit on the size of a metagame; more entries would take more than 160 MB."""


def metagame(models: int, matches: Iterable[tuple[Sequence[int], Sequence[float]]]) -> Array:
    """The metagame of played matches.

    Parameters
    ----------
    models
        Number of models.
    matches
        For each match, the model on each seat and its payoff.

    Raises
    ------
    UsageError
        If there are no matches, their numbers of seats differ, a model is unknown, or a set of models never met.
    """
    seen: defaultdict[tuple[int, ...], list[float]] = defaultdict(list)
    sizes = set()
    for seats, payoffs in matches:
        if len(seats) != len(payoffs):
            raise UsageError(f"a match of {len(seats)} seats has {len(payoffs)} payoffs")
        if not all(0 <= model < models for model in seats):
            raise UsageError(f"a match names unknown models: {list(seats)} of {models}")
        sizes.add(len(seats))
        for place, model in enumerate(seats):
            others = sorted([*seats[:place], *seats[place + 1 :]])
            seen[model, *others].append(float(payoffs[place]))
    if len(sizes) != 1 or min(sizes) < 2:
        raise UsageError(f"all matches need the same number of seats, at least two; there are some of {sorted(sizes)}")
    players = sizes.pop()
    if models**players > MOST_ENTRIES:
        raise UsageError(f"{models} models in games of {players} players make too large a metagame")
    tensor = np.full((models,) * players, np.nan)
    for model in range(models):
        for met in combinations_with_replacement(range(models), players - 1):
            payoffs_met = seen.get((model, *met))
            if not payoffs_met:
                raise UsageError(f"model {model} never met the co-players {list(met)}: not every seating was played")
            for order in set(permutations(met)):
                tensor[model, *order] = sum(payoffs_met) / len(payoffs_met)
    return tensor


def as_metagame(payoffs: ArrayLike) -> Array:
    """An array as a metagame.

    Raises
    ------
    UsageError
        If its axes differ in length, an entry is not finite or too large, or the order of co-players matters.
    """
    try:
        array: Any = np.asarray(payoffs, dtype=float)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a metagame must be an array of numbers: {error}") from error
    if array.ndim < 2 or len(set(array.shape)) != 1 or not array.size:
        raise UsageError(f"a metagame needs one axis per player, each as long as there are models; not {array.shape}")
    if not np.isfinite(array).all():
        raise UsageError("a payoff of the metagame is not a finite number")
    if np.abs(array).max() > MOST_PAYOFF:
        raise UsageError(f"a payoff of the metagame is larger than {MOST_PAYOFF:g}")
    for axis in range(2, array.ndim):
        if np.abs(array - np.swapaxes(array, 1, axis)).max() > 1e-9 * np.abs(array).max():
            raise UsageError("the order of co-players matters in this metagame; average over it first")
    return np.ascontiguousarray(array)


def mean_payoffs(payoffs: ArrayLike) -> Array:
    """The mean payoff of each model over all seatings, roles averaged."""
    array = as_metagame(payoffs)
    return np.asarray(array.reshape(len(array), -1).mean(axis=1))
