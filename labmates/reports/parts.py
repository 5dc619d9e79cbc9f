"""What a report is made of: parts with sentences, tables and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labmates.stats.figures import Picture as Picture
from labmates.stats.figures import svg_text
from labmates.stats.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """A part of a report under a heading."""

    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    code: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What links to it are called."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())


@dataclass(frozen=True)
class Report:
    """All that is told of some runs.

    Attributes
    ----------
    facts
        Numbers that are told first, each with what it is.
    warnings
        What a reader must know before anything else.
    """

    title: str
    description: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    parts: tuple[Part, ...]
    version: str


def picture(figure: Figure, title: str, alt: str) -> Picture:
    """Return a figure as a part of a page."""
    return Picture(title, alt, svg_text(figure))
