"""Shares of a pool, which protect parallel members from each other's spending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class Share:
    """A part of a pool.

    Equal shares make parallel spending deterministic: the order of calls never decides which member gets the last
    credits. A share reserves nothing; its unspent money stays with its parent.

    Attributes
    ----------
    limit
        Spending limit of its members, in micro-dollars.
    before
        Spending of each member when the share was created, in micro-dollars.
    parent
        The enclosing share; None for the whole pool.
    taken
        Holds and charges in this share and its parts, in micro-dollars.
    in_flight
        Number of open model calls in this share and its parts.
    charged
        Charges by member since the share was created, in micro-dollars.
    """

    limit: int
    before: Mapping[str, int] = field(default_factory=dict)
    parent: Share | None = None
    taken: int = 0
    in_flight: int = 0
    charged: Counter[str] = field(default_factory=Counter)

    @property
    def rest(self) -> int:
        """The limit less all holds and charges, in micro-dollars; negative if a call exceeded its reservation."""
        return self.limit - self.taken

    @property
    def left(self) -> int:
        """The least rest of this share and its parents, in micro-dollars."""
        return min(share.rest for share in self._upwards())

    @property
    def spent(self) -> dict[str, int]:
        """Spending by member, in micro-dollars, excluding other shares' since this one was created."""
        return dict(Counter(self.before) + self.charged)

    def take(self, amount: int) -> None:
        """Add an amount to `taken`; a negative amount is given back."""
        for share in self._upwards():
            share.taken += amount

    @property
    def is_busy(self) -> bool:
        """Whether calls in flight hold money of the tightest share, some of which may come back."""
        return min(self._upwards(), key=lambda share: share.rest).in_flight > 0

    def begin(self, calls: int) -> None:
        """Count model calls as begun, or as ended if negative."""
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
