"""When to stop a comparison that is looked at after each replicate: a group sequential design, told by p.

The largest number of looks is declared before. Early looks spend part of the error (Lan & DeMets, 1983); a look at
which the planned difference would hardly be told any more ends the comparison too, by spending the type II error
(Pampallona & Tsiatis, 1994). The futility is binding: what it saves pays for the last look, which is the ordinary test.
So the ordinary p of the data at the stop is the verdict, whenever that is. The bounds are simulated with Student's t of
normal differences, so they hold for few blocks too. Measured: ``python -m benchmarks.stopping``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from labmates.stats.intervals import LEVEL
from labmates.stats.paired import FEWEST_TOLD, cautious_df
from labmates_design.power import POWER

if TYPE_CHECKING:
    import numpy as np

ERROR: Final = 1 - LEVEL
INFLATION: Final = 1.2
"""The largest number of blocks, in those of a fixed design with equal power."""
_SPENT_EARLY: Final = 0.033
"""The error that all looks but the last may spend, in proportion to the power 1.5 of the share of blocks."""
_SIMULATED: Final = 10_000


@dataclass(frozen=True)
class Look:
    """The bounds of a look: p of at most `told` is a difference, of at least `hopeless` will hardly become one."""

    told: float
    hopeless: float


@lru_cache(maxsize=32)
def looks(number: int, blocks: int = 1) -> tuple[Look, ...]:
    """The bounds of each look.

    Parameters
    ----------
    number
        Of looks at most: the study's replicates.
    blocks
        Data sets of each replicate, which are the units of the test.
    """
    import numpy as np

    at = np.arange(1, number + 1) * blocks
    noise = np.random.default_rng(0).standard_normal((_SIMULATED, number * blocks))
    fixed = noise[:, : max(2, round(number * blocks / INFLATION))]
    # The difference that the fixed design tells with the usual power, in standard deviations.
    planned = float(np.quantile(_least_told(fixed), POWER))
    worlds = p_values(noise, at), p_values(noise + planned, at)
    going = [np.ones(_SIMULATED, bool), np.ones(_SIMULATED, bool)]
    spent = [0, 0]
    bounds = list[Look]()
    for index, share in enumerate(at / at[-1]):
        look = Look(0.0, 1.01)
        null, shifted = (np.sort(p[left, index]) for p, left in zip(worlds, going, strict=True))
        if index == number - 1:
            look = Look(ERROR, ERROR)
        elif at[index] >= FEWEST_TOLD:
            told = int(_SPENT_EARLY * share**1.5 * _SIMULATED) - spent[0]
            hopeless = int((1 - POWER) * share**0.8 * _SIMULATED) - spent[1]
            look = Look(
                min(ERROR, null[told - 1]) if 0 < told <= len(null) else 0.0,
                max(ERROR, shifted[-hopeless]) if 0 < hopeless <= len(shifted) else 1.01,
            )
        spent[0] += int((null <= look.told).sum())
        spent[1] += int((shifted >= look.hopeless).sum())
        going = [
            left & (p[:, index] > look.told) & (p[:, index] < look.hopeless)
            for p, left in zip(worlds, going, strict=True)
        ]
        bounds.append(look)
    return tuple(bounds)


def p_values(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Two-sided p of a comparison of the first `at` values of each row."""
    import numpy as np
    from scipy.special import stdtr

    n = np.arange(1, values.shape[1] + 1)
    means, squares = values.cumsum(axis=1) / n, (values**2).cumsum(axis=1)
    spread = np.sqrt(np.maximum(squares - n * means**2, 0) / np.maximum(n - 1, 1) / n)
    chosen = at - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(means / spread)[:, chosen]
    return np.where(at > 1, 2 * stdtr(np.vectorize(cautious_df)(chosen), -np.nan_to_num(t)), 1.0)


def _least_told(noise: np.ndarray) -> np.ndarray:
    """The smallest effect that each row would tell by the test of all of its values."""
    import numpy as np
    from scipy.special import stdtrit

    n = noise.shape[1]
    reach = stdtrit(cautious_df(n - 1), 1 - ERROR / 2) * noise.std(axis=1, ddof=1) / np.sqrt(n)
    return np.asarray(reach - noise.mean(axis=1))
