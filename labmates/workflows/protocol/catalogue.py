"""Catalogues: commands that list, show, check and create the entries of a registry."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.registry import Registry, look_at_all
from labmates.util.grouping import grouped
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.stats.tables import Table
    from labmates.workflows.protocol.command import Lab

Facts = Mapping[str, Any]
_MOST_TEXTS: Final = 4
"""Maximum printed problems of one rule; ``--json`` has all."""
_MOST_PLACES: Final = 3


class Named(Params):
    """An entry, by its name."""

    name: str = Field(json_schema_extra={"argument": True})


class NewParams(Named):
    """A package with a new entry."""

    folder: str | None = Field(None, description="Folder to write to, new or empty. [default: NAME]")


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


def verdict(
    name: str,
    rules: Iterable[Mapping[str, Any]],
    *,
    head: str = "",
    passed: bool,
    tables: Sequence[Table] = (),
    **facts: Any,
) -> Result:
    """The outcome of a conformance test, a line per rule.

    Parameters
    ----------
    rules
        ``rule``, its meaning ``about``, its ``status`` and its ``problems``: ``severity``, ``text`` and ``where``.
    head
        The first line.
    facts
        Further entries of the JSON object.
    """
    rules = list(rules)
    found = [severity for rule in rules for severity, _ in {(one["severity"], one["text"]) for one in rule["problems"]}]
    lines = [line for rule in rules for line in _rule_lines(**rule)]
    errors, warnings = (
        f"{number} {kind}{'s' * (number != 1)}" for kind in ("error", "warning") for number in [found.count(kind)]
    )
    total = f"{'passed' if passed else 'failed'}: {errors}, {warnings}"
    fault = None if passed else f"{name} does not pass the check"
    objects = [{**facts, "passed": passed, "rules": rules}]
    return Result(tables, verdict=[*([head] if head else []), *lines, total], objects=objects, fault=fault)


def _rule_lines(rule: str, status: str, about: str, problems: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """One rule: a line if it holds or was not tried, else its violations and their places."""
    if not problems:
        yield f"{status:<10}{rule:<14}{about}"
    places = grouped(((problem["severity"], problem["text"]), problem["where"]) for problem in problems)
    for (severity, text), all_places in sorted(places.items())[:_MOST_TEXTS]:
        more = f" and {len(all_places) - _MOST_PLACES} more" if len(all_places) > _MOST_PLACES else ""
        where = "; ".join(filter(None, all_places[:_MOST_PLACES])) + more
        yield f"{severity:<10}{rule:<14}" + (f"{text} [{where}]" if where else text)
    if len(places) > _MOST_TEXTS:
        yield f"{'':<10}{rule:<14}and {len(places) - _MOST_TEXTS} more; --json prints all"


def checked(name: str, problems: Sequence[str]) -> Result:
    """The problems of something that was checked."""
    text = f"{name}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}."
    return Result((), verdict=[*problems, text], fault=f"{name} does not pass the check" if problems else None)


def written(folder: Path, paths: Iterable[Path], *commands: str) -> Result:
    """The files of a new package, and what to do next."""
    lines = [
        *(f"wrote {folder / path}" for path in paths),
        "Next, in the environment that has labmates:",
        f"  pip install -e {shlex.quote(str(folder))}",
        *(f"  {command}" for command in commands),
        f"{folder / 'README.md'} lists what to change.",
    ]
    return Result((), verdict=lines)
