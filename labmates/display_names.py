"""Short names of models, and of conditions by the parameters in which they differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any


def short_names(name: str) -> Iterator[str]:
    """Yield a model's name in small letters, whole and then without one part before it after the other.

    Examples
    --------
    >>> list(short_names("openai:Qwen/Qwen3-4B"))
    ['openai:qwen/qwen3-4b', 'qwen/qwen3-4b', 'qwen3-4b']
    """
    lower = name.lower()
    yield lower
    for mark in re.finditer("[:/]", lower):
        yield lower[mark.end() :]


def settings_apart(all_: Sequence[Mapping[str, Any]], known: Collection[str] = ()) -> list[str]:
    """The names of settings that differ; those shown elsewhere are left out."""
    names = dict.fromkeys(name for one in all_ for name in one if name not in known)
    return [name for name in names if len({str(one.get(name)) for one in all_}) > 1]


def shown_settings(one: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Settings as values of a table's row."""
    return {name: _shown(one.get(name)) for name in names}


def labels_apart(all_: Sequence[Mapping[str, Any]], known: Collection[str] = ()) -> list[str]:
    """A label of each condition, made of the settings in which they differ; empty where they are the same.

    Settings with parts (a game's rules) are told by the parts that differ, tables that are given in files by their
    names. What a condition does not have is left out of its label.

    Examples
    --------
    >>> labels_apart([{"game": "g", "rules": {"k": 2}}, {"game": "g", "rules": {"k": 3}, "mutation": 0.2}])
    ['k=2', 'k=3, mutation=0.2']
    """
    flat = [dict(_parts(one, known)) for one in all_]
    names = settings_apart(flat)
    return [
        ", ".join(f"{name.rpartition('.')[2]}={_shown(one[name])}" for name in names if one.get(name) is not None)
        for one in flat
    ]


def _parts(one: Mapping[str, Any], known: Collection[str] = (), before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in one.items():
        if name in known and not before:
            continue
        if isinstance(value, Mapping) and "name" not in value:
            yield from _parts(value, known, f"{before}{name}.")
        else:
            yield f"{before}{name}", value["name"] if isinstance(value, Mapping) else value


def _shown(value: Any) -> Any:
    match value:
        case float() if value.is_integer():
            return int(value)
        case None | int() | float() | str():
            return value
        case {"name": str(name)}:
            return name
        case Mapping():
            return ", ".join(f"{name}={_shown(inner)}" for name, inner in value.items())
        case list() | tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)
