"""Other conditions that differ in one parameter: with each, a replay tells whether the record shows its value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from labmates.workflows.protocol.experiment import Condition

Path = tuple[str | int, ...]


def neighbours(condition: Condition) -> Iterator[tuple[str, Condition]]:
    """Yield conditions with another valid value of one parameter, each with the parameter's name."""
    data, words = condition.model_dump(mode="json"), sorted(_choices(type(condition).model_json_schema()))
    for path, value in leaves(data):
        for other in _others(value, words):
            try:
                changed = type(condition).model_validate(_changed(data, path, other))
            except ValidationError:
                continue
            if changed != condition:
                yield dotted(path), changed


def dotted(path: Path) -> str:
    """The name of a parameter."""
    return ".".join(map(str, path))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the simple values in JSON data, each with its place."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict | list):
        yield path, value
    for name, each in inner:
        yield from leaves(each, (*path, name))


def _others(value: Any, words: list[str]) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int() | float():
            return [value - 1, value + 1, value + 0.01, value / 2]
        case str() if re.fullmatch(r"\d+(\.\d+)?", value):
            return [str(float(value) + 1), str(float(value) / 2)]
        case str():
            return words
    return [1, 0.5, *words]


def _changed(data: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = _changed(data[path[0]], path[1:], value)
    return copy


def _choices(schema: Any) -> set[str]:
    """The words that the parameters of a schema choose from."""
    if isinstance(schema, list):
        return set().union(*map(_choices, schema))
    if not isinstance(schema, dict):
        return set()
    own = {word for word in [*schema.get("enum", ()), schema.get("const")] if isinstance(word, str)}
    return own.union(*map(_choices, schema.values()))
