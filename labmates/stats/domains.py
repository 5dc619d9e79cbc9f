"""The values that outcomes can take, and the scales on which their intervals are symmetric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

ROUNDING: Final = 1e-12
"""Differences as small as this, relative to the values, are errors of rounding."""


@dataclass(frozen=True)
class Domain:
    """The values that an outcome can take.

    Attributes
    ----------
    low, high
        The ends; infinite where there is none.
    unit
        For an outcome without ends, a size in which outcomes of different cells can be compared.
    """

    low: float = -math.inf
    high: float = math.inf
    unit: float = 1.0

    def difference(self) -> Domain:
        """The values that the difference of two such outcomes can take."""
        return Domain(self.low - self.high, self.high - self.low)

    def holding(self, low: float, high: float) -> Domain:
        """The same domain, extended to values that lie outside."""
        return replace(self, low=min(self.low, low), high=max(self.high, high))


ANY: Final = Domain()
SHARE: Final = Domain(0.0, 1.0)
COUNT: Final = Domain(0.0)
CORRELATION: Final = Domain(-1.0, 1.0)
AT_MOST_ONE: Final = Domain(high=1.0)
"""Skill: 1 for the truth, 0 for a guess, without a lower end."""
Domains = Callable[[Mapping[str, Any]], Mapping[str, Domain]]
"""Returns the domains of metrics, by name, in runs of a condition."""


def unknown(condition: Mapping[str, Any]) -> Mapping[str, Domain]:
    """No domains."""
    del condition
    return {}


@dataclass(frozen=True)
class Scale:
    """The scale on which an interval is symmetric, at one place.

    Attributes
    ----------
    place, slope, bend
        The value on the scale, its derivative there, and the second derivative over the first.
    spread
        How the variance of a value depends on its mean, up to a factor: that of a binomial or a Poisson variable.
    open
        The sides without a bound: -1 is below, 1 above.
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
        # So near to an end, rounding is all that is left.
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
