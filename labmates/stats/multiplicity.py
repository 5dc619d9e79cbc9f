"""Several tests at once: Holm's p values, and the marks of effects in tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from labmates.stats.tables import ADJUSTED, CREDIBLE


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values of several tests (Holm 1979), which bound the probability of any false positive.

    None stays None and is not counted as a test.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = highest
    return adjusted


SIGNIFICANT: Final = 0.05


def mark(leaves_out_zero: bool, p_holm: float | None) -> str:
    """The mark of an effect: a dagger if its interval excludes 0, a double one if Holm's p is significant too."""
    if not leaves_out_zero:
        return ""
    return ADJUSTED if p_holm is not None and p_holm < SIGNIFICANT else CREDIBLE
