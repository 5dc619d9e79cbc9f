"""What a page tells of a run beyond its events, by kind. A kind that is not here, as a plug-in's, has its events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from markupsafe import Markup

from labmates.viewer.links import Links
from labmates.viewer.reader import RunReader

_log = logging.getLogger(__name__)


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


Teller = Callable[[RunReader, Links], Iterable[Section]]

_TELLERS: Final = {
    "science": "science",
    "game": "game",
    "dilemma": "dilemma",
    "tournament": "tournament",
    "selfplay": "selfplay",
    "evolution": "evolution",
    "strategies": "strategies",
}
"""Kind to the module whose `sections` tells it."""


def kind_sections(reader: RunReader, links: Links) -> list[Section]:
    """Return what is to be told of a run of its kind.

    A record that is not as it should be (one that was cut short, or another version's) must not hide the rest of the
    page: then the reason stands there.
    """
    name = _TELLERS.get(reader.run.kind)
    if name is None:
        return []
    tell: Teller = import_module(f"labmates.viewer.kinds.{name}").sections
    found: list[Section] = []
    try:
        found.extend(tell(reader, links))
    except Exception as error:
        _log.warning("the run %s can't be told as a %s", reader.run.id, reader.run.kind, exc_info=True)
        why = Markup("<p class=quiet>{}: {}</p>").format(type(error).__name__, str(error)[:500])
        found.append(Section("unread", "What this version can't read of the record", why))
    return found
