"""Failed decisions, counted by model, and the limit above which play is invalid.

A decision fails without a usable reply. A fallback then lets the others play on; it is not the player's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from labmates.util.grouping import grouped

K = TypeVar("K", bound=Hashable)

MOST_FAILED: Final = 0.2
"""Maximum share of failed decisions of a model with valid play (cooperative-profiles paper, section 3.1)."""


@dataclass(frozen=True)
class Tally:
    """Numbers of decisions asked for and failed."""

    asked: int
    failed: int

    @property
    def rate(self) -> float:
        """Share of failed decisions; 0 without decisions."""
        return self.failed / self.asked if self.asked else 0.0

    @property
    def is_valid(self) -> bool:
        """Whether at most `MOST_FAILED` of the decisions failed."""
        return self.rate <= MOST_FAILED

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.asked + other.asked, self.failed + other.failed)


def tallies(decisions: Iterable[tuple[K, bool]]) -> dict[K, Tally]:
    """Tallies of decisions, given as pairs of a key and a failure, in the order of first decisions."""
    asked, failed = Counter[K](), Counter[K]()
    for key, has_failed in decisions:
        asked[key] += 1
        failed[key] += has_failed
    return {key: Tally(number, failed[key]) for key, number in asked.items()}


def total(each: Iterable[Tally]) -> Tally:
    """Tallies together."""
    return sum(each, Tally(0, 0))


def totals(each: Iterable[tuple[K, Tally]]) -> dict[K, Tally]:
    """The tallies of each key together."""
    return {key: total(some) for key, some in grouped(each).items()}


def invalid(by: Mapping[K, Tally]) -> tuple[K, ...]:
    """The models whose share of failed decisions exceeds `MOST_FAILED`."""
    return tuple(key for key, tally in by.items() if not tally.is_valid)


def invalid_play(by_model: Mapping[str, Tally]) -> str | None:
    """Why play is invalid, naming each model above `MOST_FAILED`; None for valid play."""
    reasons = [
        f"{model}: {failed_share(by_model[model])} of its {by_model[model].asked} decisions failed"
        for model in invalid(by_model)
    ]
    return f"{'; '.join(reasons)} (at most {MOST_FAILED:.0%} may)" if reasons else None


def failed_share(tally: Tally) -> str:
    """The share of failed decisions in words: ``all``, or a percentage."""
    return "all" if tally.failed == tally.asked else f"{tally.rate:.0%}"
