"""Random numbers for the generators of tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from labmates.seeds import LARGEST_SEED, derive

Floats = npt.NDArray[np.float64]

DECIMALS = 9
"""Decimals of feedback: rounding keeps last-bit differences between machines from adding up."""


def random_for(task: str, seed: int, difficulty: str, part: str) -> np.random.Generator:
    """The random numbers of one part of a data set; they don't depend on how many the other parts draw.

    A seed beyond `LARGEST_SEED` is a private one (see ``tasks.salt``), whose parts can't be found by trying all.
    """
    bits = 31 if seed <= LARGEST_SEED else 128
    return np.random.Generator(np.random.PCG64(derive(seed, "tasks", task, difficulty, part, bits=bits)))


def red_noise(white: Floats, memory: float) -> Floats:
    """Noise of standard deviation 1 whose correlation from one step to the next is `memory`.

    Parameters
    ----------
    white
        Noise without correlation, shape (steps, series).
    """
    fresh = np.sqrt(1 - memory**2) * white
    fresh[0] = white[0]
    return np.round(np.stack([_followed(column, memory) for column in fresh.T.tolist()], axis=1), DECIMALS)


def _followed(fresh: Iterable[float], memory: float) -> list[float]:
    """One series of red noise; Python's floats take half the time of an array's rows."""
    level, series = 0.0, []
    for step in fresh:
        level = memory * level + step
        series.append(level)
    return series
