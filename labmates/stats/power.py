"""The minimum detectable difference of a comparison, before any run is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from labmates.stats.domains import ANY, Domain
from labmates.stats.intervals import LEVEL
from labmates.stats.paired import Pair, interval_of

POWER: Final = 0.8
STUDIES: Final = 400
_WIDEST: Final = 50.0
"""The largest difference sought in an unbounded outcome, in spreads."""
_STEPS: Final = 12


@lru_cache(maxsize=64)
def detectable_difference(spreads: Sequence[float], blocks: int, domain: Domain = ANY, pairs: int = 1) -> float | None:
    """The smallest difference that a comparison tells in 80 % of studies; None if it tells none.

    Studies are simulated, and judged by the interval of `labmates.stats.paired`, as ``labmates compare`` does.

    Parameters
    ----------
    spreads
        Standard deviation of the difference of a block, of each task.
    blocks
        Data sets of each task.
    domain
        Of the differences.
    pairs
        Number of pairs of conditions that are compared together.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    noise = np.stack([rng.normal(0, spread, (STUDIES, blocks)) for spread in spreads], axis=1)
    level, most = 1 - (1 - LEVEL) / pairs, 0.99 * domain.high

    def power(effect: float) -> float:
        studies = np.clip(effect + noise, -most, most)
        found = (
            interval_of([Pair(str(t), str(b), "", float(v)) for (t, b), v in np.ndenumerate(study)], domain, (), level)
            for study in studies
        )
        return sum(each.low is not None and each.low > 0 for each in found) / STUDIES

    low, high = 0.0, min(most, _WIDEST * max(spreads))
    if not high > 0 or power(high) < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
