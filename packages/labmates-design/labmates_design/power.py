"""The minimum detectable difference of a comparison, before any run is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from labmates.stats.domains import ANY, Domain
from labmates.stats.intervals import LEVEL
from labmates.stats.paired import Pair, interval_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    most, low = 0.99 * domain.high, 0.0
    high = min(most, _WIDEST * max(spreads))
    if not high > 0 or power(high, spreads, blocks, domain, pairs) < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, spreads, blocks, domain, pairs) >= POWER else (middle, high)
    return high


def power(effect: float, spreads: Sequence[float], blocks: int, domain: Domain = ANY, pairs: int = 1) -> float:
    """The share of simulated studies in which a comparison tells a difference; see `detectable_difference`."""
    import numpy as np

    level, most = 1 - (1 - LEVEL) / pairs, 0.99 * domain.high
    found = (
        interval_of([Pair(str(t), str(b), "", float(v)) for (t, b), v in np.ndenumerate(study)], domain, (), level)
        for study in np.clip(effect + _noise(tuple(spreads), blocks), -most, most)
    )
    return sum(each.low is not None and each.low > 0 for each in found) / STUDIES


@lru_cache(maxsize=8)
def _noise(spreads: Sequence[float], blocks: int) -> NDArray[np.float64]:
    import numpy as np

    rng = np.random.default_rng(0)
    return np.stack([rng.normal(0, spread, (STUDIES, blocks)) for spread in spreads], axis=1)
