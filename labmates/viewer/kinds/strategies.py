"""Strategy writing: what was described, and the code that passed the checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from labmates.viewer.kinds import Section
from labmates.viewer.links import Links
from labmates.viewer.reader import RunReader
from labmates.viewer.rendering import render

_MOST: Final = 40


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """Tell how strategies were written."""
    written = reader.events("artifact")
    if not written:
        return
    shown = dict(list(written.items())[:_MOST])
    bodies = reader.values(event.content for event in shown.values())
    strategies = [(number, event, bodies.get(event.content, {})) for number, event in shown.items()]
    body = render("kinds/strategies.html", strategies=strategies, links=links, run=reader.run)
    left = len(written) - len(shown)
    yield Section("strategies", "Strategies", body, f"{left} more stand in the story" if left else "")
