"""Random numbers for the generators of tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from labmates.util.seeds import LARGEST_SEED, derive

Floats = npt.NDArray[np.float64]

DECIMALS = 9
"""Decimals of intermediate results: rounding stops last-bit differences between machines from adding up."""


def random_for(task: str, seed: int, difficulty: str, part: str) -> np.random.Generator:
    """The random numbers of one part of a data set, independent of the other parts.

    Seeds beyond `LARGEST_SEED` are private (``tasks.salt``); their parts can't be found by brute force.
    """
    bits = 31 if seed <= LARGEST_SEED else 128
    return np.random.Generator(np.random.PCG64(derive(seed, "tasks", task, difficulty, part, bits=bits)))


def red_noise(white: Floats, memory: float) -> Floats:
    """Noise of standard deviation 1 with a correlation of `memory` between consecutive steps.

    Parameters
    ----------
    white
        Uncorrelated noise, shape (steps, series).
    """
    fresh = np.sqrt(1 - memory**2) * white
    fresh[0] = white[0]
    return np.round(np.stack([_followed(column, memory) for column in fresh.T.tolist()], axis=1), DECIMALS)


def _followed(fresh: Iterable[float], memory: float) -> list[float]:
    """One series of red noise; Python floats are twice as fast as array rows."""
    level = 0.0
    return [level := memory * level + step for step in fresh]
