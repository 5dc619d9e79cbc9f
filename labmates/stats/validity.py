"""Failed decisions, counted by model, and the limit above which play is invalid.

A decision fails when no reply could be used. The rules then name a fallback, so that the others can play on; the
fallback is nobody's play.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

MOST_FAILED: Final = 0.2
"""A model of which more decisions failed than this share has not played (cooperative-profiles paper, section 3.1)."""


@dataclass(frozen=True)
class Tally:
    """Numbers of decisions asked for and failed."""

    asked: int
    failed: int

    @property
    def rate(self) -> float:
        """Share of decisions that failed; 0 if none was asked for."""
        return self.failed / self.asked if self.asked else 0.0

    @property
    def is_valid(self) -> bool:
        """Whether at most `MOST_FAILED` of the decisions failed."""
        return self.rate <= MOST_FAILED

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.asked + other.asked, self.failed + other.failed)


def tallies(decisions: Iterable[tuple[K, bool]]) -> dict[K, Tally]:
    """Count decisions, each given as whoever made it and whether it failed, in the order of first decisions."""
    asked, failed = Counter[K](), Counter[K]()
    for who, has_failed in decisions:
        asked[who] += 1
        failed[who] += has_failed
    return {who: Tally(number, failed[who]) for who, number in asked.items()}


def total(by: Mapping[K, Tally]) -> Tally:
    """All tallies together."""
    return sum(by.values(), Tally(0, 0))


def invalid(by: Mapping[K, Tally]) -> tuple[K, ...]:
    """The models whose share of failed decisions exceeds `MOST_FAILED`."""
    return tuple(who for who, tally in by.items() if not tally.is_valid)


def invalid_play(by_model: Mapping[str, Tally]) -> str | None:
    """The reason why play can't be used, naming each model above `MOST_FAILED`; None if it can be."""
    wrong = [
        f"{model}: {failed_share(by_model[model])} of its {by_model[model].asked} decisions failed"
        for model in invalid(by_model)
    ]
    return f"{'; '.join(wrong)} (at most {MOST_FAILED:.0%} may)" if wrong else None


def failed_share(tally: Tally) -> str:
    """The share of failed decisions in words: ``all``, or a percentage."""
    return "all" if tally.failed == tally.asked else f"{tally.rate:.0%}"
