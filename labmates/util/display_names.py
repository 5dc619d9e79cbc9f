"""Short names of models, and labels of conditions by the parameters that differ."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_REFERENCES: Final = ("none", "solo")


def short_names(name: str) -> Iterator[str]:
    """Yield a model's name in lower case: whole, then without its leading parts, one after the other.

    Examples
    --------
    >>> list(short_names("openai:Qwen/Qwen3-4B"))
    ['openai:qwen/qwen3-4b', 'qwen/qwen3-4b', 'qwen3-4b']
    """
    lower = name.lower()
    yield lower
    for mark in re.finditer("[:/]", lower):
        yield lower[mark.end() :]


def in_words(names: Sequence[str], most: int = 6) -> str:
    """Names as a list in a sentence; more than `most` and one are counted.

    Examples
    --------
    >>> in_words(["a", "b", "c", "d", "e"], 3)
    'a, b, c and 2 others'
    """
    more = len(names) - most
    shown = names if more < 2 else [*names[:most], f"{more} others"]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def settings_apart(conditions: Sequence[Mapping[str, Any]], known: Collection[str] = ()) -> list[str]:
    """The names of settings that differ, except `known` ones, which are shown elsewhere."""
    names = dict.fromkeys(name for settings in conditions for name in settings if name not in known)
    return [name for name in names if len({str(settings.get(name)) for settings in conditions}) > 1]


def settings_shown(conditions: Sequence[Mapping[str, Any]], always: Sequence[str] = ()) -> list[str]:
    """The names of settings that tell conditions apart: `always`, as far as any has them, and those that differ.

    A setting that some conditions lack counts as different only if it differs among the others, or if nothing else
    tells these conditions apart.

    Examples
    --------
    >>> settings_shown([{"task": "a", "size": 2}, {"task": "b"}, {"task": "c", "size": 2}], ["task"])
    ['task']
    """
    names = [name for name in always if any(name in condition for condition in conditions)]
    apart = settings_apart(conditions, always)
    differing = [name for name in apart if len({str(each[name]) for each in conditions if name in each}) > 1]
    labels = {tuple(str(each.get(name)) for name in (*names, *differing)) for each in conditions}
    return [*names, *(differing if len(labels) == len(conditions) else apart)]


def is_reference(value: str) -> bool:
    """Whether others are compared with this level: ``none``, ``solo`` or a scripted baseline."""
    return value in _REFERENCES or value.startswith("scripted:")


def references_first(values: Iterable[str]) -> list[str]:
    """The distinct values in order of appearance, references first.

    Examples
    --------
    >>> references_first(["contract", "none", "contract", "mediation"])
    ['none', 'contract', 'mediation']
    """
    return sorted(dict.fromkeys(values), key=lambda value: not is_reference(value))


def order_of_settings(conditions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[int]:
    """The places of conditions sorted by these settings, whose values are in the order of `references_first`.

    Examples
    --------
    >>> order_of_settings([{"model": "b", "size": 2}, {"model": "a", "size": 2}, {"model": "b", "size": 3}], ["model"])
    [0, 2, 1]
    """
    labels = [[str(condition.get(name)) for name in names] for condition in conditions]
    values = [references_first(column) for column in zip(*labels, strict=True)]
    places = [[known.index(label) for known, label in zip(values, row, strict=True)] for row in labels]
    return sorted(range(len(conditions)), key=lambda at: places[at])


def shown_settings(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Settings as values of a table's row."""
    return {name: _shown(settings.get(name)) for name in names}


def labels_apart(conditions: Sequence[Mapping[str, Any]], known: Collection[str] = ()) -> list[str]:
    """A label per condition from the settings that differ; empty if none does.

    Nested settings (a game's rules) appear by the parts that differ, tables from files by their names. A condition's
    missing settings are left out of its label.

    Examples
    --------
    >>> labels_apart([{"game": "g", "rules": {"k": 2}}, {"game": "g", "rules": {"k": 3}, "mutation": 0.2}])
    ['k=2', 'k=3, mutation=0.2']
    """
    flat = [dict(_parts(settings, known)) for settings in conditions]
    names = settings_apart(flat)
    return [
        ", ".join(f"{name.rpartition('.')[2]}={_shown(one[name])}" for name in names if one.get(name) is not None)
        for one in flat
    ]


def _parts(settings: Mapping[str, Any], known: Collection[str] = (), before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
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
