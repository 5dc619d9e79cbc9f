"""What the hub asks before it makes an attempt, and tells of how the attempt ended."""

from __future__ import annotations

from typing import Protocol

from labmates.budgets.prices import Price


class Meter(Protocol):
    """What pays for the attempts of one call; `labmates.budgets.meter.CallMeter` is the one that holds money.

    Attributes
    ----------
    price
        Price of the model, by which a call is charged whose bill is not known.
    cost
        What the call has cost so far, all its attempts together, in micro-dollars.
    uncertain
        What of the cost is for attempts that brought no reply and may be billed.
    excess
        What of the provider's bill could not be paid, in micro-dollars.
    """

    price: Price
    cost: int
    uncertain: int
    excess: int

    def begin(self) -> None:
        """Reserve what the next attempt can cost; raises an error if that can't be paid."""

    def spare(self) -> None:
        """Give back what is reserved, if anything: the attempt can't be billed."""

    def lost(self, reason: str) -> None:
        """Charge what is reserved: the attempt brought no reply and may be billed."""

    def settle(self, cost: int, bill: int | None = None) -> object:
        """Charge the attempt that brought the reply with what it cost, and was billed with, in micro-dollars."""


class NoMeter:
    """Lets every attempt happen."""

    price = Price()
    cost = 0
    uncertain = 0
    excess = 0

    def begin(self) -> None:
        """Reserve nothing."""

    def spare(self) -> None:
        """Give back nothing."""

    def lost(self, reason: str) -> None:
        """Charge nothing."""

    def settle(self, cost: int, bill: int | None = None) -> None:
        """Charge nothing."""
