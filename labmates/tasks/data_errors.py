"""Errors of real data, added to clean arrays and frames.

The number of random values drawn by each function depends only on the size of its input, so that values don't shift
the stream of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from labmates.tasks.noise import Floats


def celsius_to_fahrenheit(values: Floats) -> Floats:
    """Convert temperatures from °C to °F."""
    return values * 1.8 + 32.0


def blank(values: Floats, share: float, rng: np.random.Generator, mark: float = np.nan) -> Floats:
    """A copy with about `share` of the values replaced by `mark`."""
    return np.where(rng.random(values.shape) < share, mark, values)


def slip_decimals(values: Floats, share: float, rng: np.random.Generator) -> Floats:
    """A copy with about `share` of the values ten times too large (two thirds of them) or too small."""
    hit = rng.random(values.shape) < share
    factor = np.where(rng.random(values.shape) < 2 / 3, 10.0, 0.1)
    return np.where(hit, values * factor, values)


def respell(
    names: Sequence[str], share: float, spellings: Sequence[Callable[[str], str]], rng: np.random.Generator
) -> list[str]:
    """The names with about `share` of them respelled in one of the given ways."""
    hit = rng.random(len(names)) < share
    way = rng.integers(len(spellings), size=len(names))
    respelled = list(names)
    for place in np.flatnonzero(hit).tolist():
        respelled[place] = spellings[way[place]](names[place])
    return respelled


def swap_letters(name: str) -> str:
    """`name` with its third- and second-last letters swapped, as a typing error."""
    return name[:-3] + name[-2] + name[-3] + name[-1]


def repeat_rows(frame: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """The frame with about `share` of its rows repeated, each copy a few rows below its original."""
    copied = np.flatnonzero(rng.random(len(frame)) < share)
    below = rng.integers(1, 40, size=len(frame))[copied]
    place = np.concatenate([np.arange(len(frame)), np.minimum(copied + below, len(frame) - 1)])
    order = np.concatenate([np.arange(len(frame)), copied])[np.argsort(place, kind="stable")]
    return frame.iloc[order].reset_index(drop=True)
