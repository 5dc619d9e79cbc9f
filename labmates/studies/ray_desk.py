"""Where workers on Ray ask for orders.

It is alone here so that its process, which starts with each study, imports little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Order = Literal["work", "stop", "leave"]
"""What workers are to do: go on, end runs at their next step, or leave them at once."""


@dataclass
class Desk:
    """Where workers ask for orders and report: a Ray actor beside whoever started them."""

    order: Order = "work"
    notes: dict[str, None] = field(default_factory=dict)

    def give(self, order: Order) -> None:
        """Tell the workers what to do from now on."""
        self.order = order

    def ask(self) -> Order:
        """Return what workers are to do."""
        return self.order

    def note(self, text: str) -> None:
        """Hear what the user should know; the same from several workers counts once."""
        self.notes[text] = None

    def heard(self, after: int) -> list[str]:
        """Return what was noted after so many notes."""
        return list(self.notes)[after:]
