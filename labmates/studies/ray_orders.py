"""The actor from which workers on Ray get their orders.

It is alone here so that its process, which starts with each study, imports little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Order = Literal["work", "stop", "leave"]
"""The orders: continue, end runs at their next step, or leave them at once."""


@dataclass
class Postbox:
    """A Ray actor beside the driver that gives workers their orders and takes their reports."""

    order: Order = "work"
    notes: dict[str, None] = field(default_factory=dict)

    def give(self, order: Order) -> None:
        """Tell the workers what to do from now on."""
        self.order = order

    def ask(self) -> Order:
        """The order of the moment."""
        return self.order

    def note(self, text: str) -> None:
        """Hear what the user should know; the same from several workers counts once."""
        self.notes[text] = None

    def heard(self, after: int) -> list[str]:
        """The notes from a position on."""
        return list(self.notes)[after:]
