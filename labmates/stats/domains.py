"""Domains of outcomes, and the scales on which their intervals are symmetric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

ROUNDING: Final = 1e-12
"""Relative differences up to this size are rounding errors."""


@dataclass(frozen=True)
class Domain:
    """The possible values of an outcome.

    Attributes
    ----------
    low, high
        The bounds; infinite for an unbounded side.
    unit
        For an unbounded outcome, a size that makes outcomes of different cells comparable.
    """

    low: float = -math.inf
    high: float = math.inf
    unit: float = 1.0

    def difference(self) -> Domain:
        """The domain of differences between two outcomes."""
        return Domain(self.low - self.high, self.high - self.low)

    def holding(self, low: float, high: float) -> Domain:
        """The same domain, extended to values outside."""
        return replace(self, low=min(self.low, low), high=max(self.high, high))


ANY: Final = Domain()
SHARE: Final = Domain(0.0, 1.0)
COUNT: Final = Domain(0.0)
CORRELATION: Final = Domain(-1.0, 1.0)
AT_MOST_ONE: Final = Domain(high=1.0)
"""Skill: 1 for perfect, 0 for a guess, without a lower bound."""


@dataclass(frozen=True)
class Scale:
    """The scale on which an interval is symmetric, at one place.

    Attributes
    ----------
    place, slope, bend
        The value on the scale, its derivative, and the second derivative over the first.
    spread
        The variance as a function of the mean, up to a factor: that of a binomial or a Poisson variable.
    open
        The unbounded sides: -1 is below, 1 above.
    """

    name: str
    place: float
    slope: float
    bend: float
    spread: float
    open: tuple[int, ...]
    back: Callable[[float], float]

    @classmethod
    def of(cls, domain: Domain, value: float) -> Scale | None:
        """The scale of a domain at a value; None at an end of the domain."""
        over, under = value - domain.low, domain.high - value
        if math.isinf(over) and math.isinf(under):
            return cls("", value, 1.0, 0.0, domain.unit**2, (-1, 1), lambda place: place)
        # This close to a bound, the distance is a rounding error.
        if not min(over, under) > ROUNDING * max(1.0, abs(value)):
            return None
        if math.isinf(under):
            return cls("log", math.log(over), 1 / over, -1 / over, over, (1,), lambda place: domain.low + _exp(place))
        if math.isinf(over):
            return cls(
                "log", -math.log(under), 1 / under, 1 / under, under, (-1,), lambda place: domain.high - _exp(-place)
            )
        width = domain.high - domain.low

        def back(place: float) -> float:
            share = 1 / (1 + _exp(-place)) if place >= 0 else _exp(place) / (1 + _exp(place))
            return domain.low + width * share

        slope, bend = width / (over * under), 1 / under - 1 / over
        return cls("logit", math.log(over / under), slope, bend, over * under, (), back)


def _exp(place: float) -> float:
    return math.exp(min(place, 700.0))
