"""A section of a run's page."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Section:
    """A part of a run's first page.

    Attributes
    ----------
    anchor
        Its name within the page's address.
    note
        What it does not show, and where that is.
    """

    anchor: str
    title: str
    body: Markup
    note: str = ""
