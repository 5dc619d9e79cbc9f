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
from labmates.stats.power import POWER

if TYPE_CHECKING:
    import numpy as np

ERROR: Final = 1 - LEVEL
INFLATION: Final = 1.16
"""The largest number of blocks, in those of a fixed design with equal power."""
FEWEST_BLOCKS: Final = 4
"""Blocks of the first look that may stop."""
_SPENT_EARLY: Final = 0.022
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
    null, shifted = p_values(noise, at), p_values(noise + planned, at)
    bounds = list[Look]()
    for look, share in enumerate(at / at[-1]):
        told, hopeless = 0.0, 1.01
        if look == number - 1:
            told = hopeless = ERROR
        elif at[look] >= FEWEST_BLOCKS:
            told = min(ERROR, _spending(null, look, bounds, _SPENT_EARLY * share**1.5, upper=False))
            hopeless = max(ERROR, _spending(shifted, look, bounds, (1 - POWER) * share, upper=True))
        bounds.append(Look(told, hopeless))
    return tuple(bounds)


def stops(p: np.ndarray, bounds: tuple[Look, ...]) -> np.ndarray:
    """The look at which each simulated study stops, from 0; `p` has a row for each study, a column for each look."""
    import numpy as np

    told, hopeless = (np.array([getattr(look, name) for look in bounds]) for name in ("told", "hopeless"))
    first: np.ndarray = ((p <= told) | (p >= hopeless)).argmax(axis=1)
    return first


def p_values(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Two-sided p of Student's t for the first `at` values of each row."""
    import numpy as np
    from scipy.special import stdtr

    n = np.arange(1, values.shape[1] + 1)
    means, squares = values.cumsum(axis=1) / n, (values**2).cumsum(axis=1)
    spread = np.sqrt(np.maximum(squares - n * means**2, 0) / np.maximum(n - 1, 1) / n)
    chosen = at - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(means / spread)[:, chosen]
    return np.where(at > 1, 2 * stdtr(np.maximum(chosen, 1), -np.nan_to_num(t)), 1.0)


def _least_told(noise: np.ndarray) -> np.ndarray:
    """The smallest effect that each row would tell by the test of all of its values."""
    import numpy as np
    from scipy.special import stdtrit

    n = noise.shape[1]
    reach = stdtrit(n - 1, 1 - ERROR / 2) * noise.std(axis=1, ddof=1) / np.sqrt(n)
    return np.asarray(reach - noise.mean(axis=1))


def _spending(p: np.ndarray, look: int, bounds: list[Look], spent: float, *, upper: bool) -> float:
    """The bound of p at a look for which a share of studies has stopped by this side's bounds so far."""
    import numpy as np

    low = np.array([each.told for each in bounds])
    high = np.array([each.hopeless for each in bounds])
    early = p[:, :look]
    stopped = (early <= low) | (early >= high)
    at = stopped.argmax(axis=1)
    ended = stopped.any(axis=1) if look else np.zeros(len(p), bool)
    by_side = (early >= high) if upper else (early <= low)
    already = int((ended & by_side[np.arange(len(p)), at]).sum()) if look else 0
    left = np.sort(p[~ended, look])
    number = int(spent * len(p)) - already
    if number < 1 or number > len(left):
        return 1.01 if upper else 0.0
    return float(left[-number] if upper else left[number - 1])
