"""Catalogues: commands that list and show the entries of a registry; other packages may bring more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.registry import Registry, look_at_all
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab

Facts = Mapping[str, Any]


class Named(Params):
    """An entry, by its name."""

    name: str = Field(json_schema_extra={"argument": True})


def catalogue(
    text: str,
    registry: Registry[Any],
    facts: Callable[[str], Facts],
    commands: Mapping[str, Command],
    *,
    example: str,
    objects: str,
    more: Callable[[], Mapping[str, Facts]] = dict,
) -> Command:
    """The command of a registry: a list of its entries, and the commands for one of them.

    Parameters
    ----------
    text
        The help text.
    facts
        Facts about an entry for ``--json``; the list shows its ``title``.
    more
        Facts about names that are used like those of entries.
    """

    def listing(lab: Lab, _params: Params) -> Iterator[Result]:
        entries = {**look_at_all(registry, facts, lab.warn), **more()}
        width = max(map(len, entries), default=0) + 2
        for name, known in entries.items():
            package = registry.package(name)
            line = f"{name:<{width}}{known['title']}"
            shown = {"name": name, **known, "package": package}
            yield Result((), verdict=[line + (f"  ({package})" if package else "")], objects=[shown])

    listing.__doc__ = text
    return Command(listing, example=example, objects=objects, commands=commands)
