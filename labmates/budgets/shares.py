"""Shares of a pool: what members who work at the same time can't take from one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class Share:
    """A part of a pool.

    Which of two members gets the last credits never depends on which came first: each has a share of its own, as large
    as the other. A share sets nothing aside; what its members leave is left to the share that it is a part of.

    Attributes
    ----------
    limit
        What its members can take, in micro-dollars.
    before
        What each member had spent when the share was made, in micro-dollars.
    parent
        The share that it is a part of; None for the whole pool.
    taken
        Holds and charges of its members, and of those of its parts, in micro-dollars.
    in_flight
        Their model calls that have not ended.
    charged
        Charges by member since it was made, in micro-dollars.
    """

    limit: int
    before: Mapping[str, int] = field(default_factory=dict)
    parent: Share | None = None
    taken: int = 0
    in_flight: int = 0
    charged: Counter[str] = field(default_factory=Counter)

    @property
    def rest(self) -> int:
        """What it has left by itself, in micro-dollars; negative where a call used more than was reserved for it."""
        return self.limit - self.taken

    @property
    def left(self) -> int:
        """What it and all that it is a part of have left, in micro-dollars."""
        return min(share.rest for share in self._upwards())

    @property
    def spent(self) -> dict[str, int]:
        """Spending by member, in micro-dollars, without that of other shares since this one was made."""
        return dict(Counter(self.before) + self.charged)

    def take(self, amount: int) -> None:
        """Count an amount as taken; a negative one is given back."""
        for share in self._upwards():
            share.taken += amount

    @property
    def is_busy(self) -> bool:
        """Whether calls in flight hold money of the share with the least left, some of which may come back."""
        return min(self._upwards(), key=lambda share: share.rest).in_flight > 0

    def begin(self, calls: int) -> None:
        """Count model calls as begun; a negative number as ended."""
        for share in self._upwards():
            share.in_flight += calls

    def charge(self, member: str, amount: int) -> None:
        """Count an amount as spent by a member."""
        self.take(amount)
        for share in self._upwards():
            share.charged[member] += amount

    def part(self, limit: int, before: Mapping[str, int]) -> Share:
        """A part of this share."""
        return Share(limit, before, self)

    def _upwards(self) -> Iterator[Share]:
        share: Share | None = self
        while share is not None:
            yield share
            share = share.parent
