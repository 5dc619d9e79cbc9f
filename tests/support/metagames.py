"""Metagames of known payoffs, and the payoffs of pairs of their types."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from labmates.stats.metagame import Array, as_metagame


def public_goods(players: int, k: float) -> Array:
    """The metagame of cooperators (type 0) and defectors (type 1) in a public-goods game."""
    payoffs = np.zeros((2,) * players)
    for profile in product(range(2), repeat=players):
        payoffs[profile] = k * profile.count(0) / players + profile[0]
    return payoffs


def pair_payoffs(payoffs: ArrayLike) -> Array:
    """Payoffs to the first type of each pair by the number of co-players of the first type."""
    array = as_metagame(payoffs)
    types, players = len(array), array.ndim
    first, second = np.indices((types, types))
    return np.stack([array[(first, *[first] * k, *[second] * (players - 1 - k))] for k in range(players)], axis=2)
