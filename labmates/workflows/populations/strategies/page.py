"""Strategy writing: what was described, and the code that passed the checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from labmates.pages.links import Links
from labmates.pages.reader import RunReader
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section

render = templates_of(__package__)


_MOST: Final = 40


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """Tell how strategies were written."""
    written = reader.events("artifact")
    if not written:
        return
    shown = dict(list(written.items())[:_MOST])
    bodies = reader.values(event.content for event in shown.values())
    strategies = [(number, event, bodies.get(event.content, {})) for number, event in shown.items()]
    body = render("strategies.html", strategies=strategies, links=links, run=reader.run)
    left = len(written) - len(shown)
    yield Section("strategies", "Strategies", body, f"{left} more stand in the story" if left else "")
