"""Odd but valid findings, of which models may state any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from labmates.tasks.base import FindingsT
from labmates.tasks.findings import check_findings
from labmates.util.relaxed_json import MOST_DIGITS

NUMBERS = (0, -1, 10**MOST_DIGITS - 1, 0.5, -1e-12, 1e300)
TEXTS = ("", " ", "\x00", "nobody", "x" * 90, "\N{GREEK SMALL LETTER MU}\N{COMBINING ACUTE ACCENT}")


def odd_findings(right: FindingsT) -> Iterator[FindingsT]:
    """Odd variants of the `right` findings that the schema allows.

    All numbers, texts or lists are replaced at once, lists are repeated, and parts are omitted; parts that the schema
    forbids are omitted too, as in reading a report.
    """
    block = right.model_dump(mode="json", exclude_none=True)
    for odd in _blocks(block):
        read = check_findings(odd, type(right))
        if read.findings is not None:
            yield read.findings


def _blocks(block: dict[str, Any]) -> Iterator[Any]:
    for number in NUMBERS:
        yield _changed(block, partial(_replaced, (int, float), number))
    for text in TEXTS:
        yield _changed(block, partial(_replaced, str, text))
    yield _changed(block, partial(_replaced, list, []))
    yield _changed(block, lambda value: value * 2 if isinstance(value, list) else value)
    for name in block:
        yield {name: block[name]}
    for name in sorted(set(_inner_names(block)) - set(block)):
        yield _changed(block, partial(_without, name))


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value with `change` applied to every part except booleans."""
    if isinstance(value, Mapping):
        value = {name: _changed(inner, change) for name, inner in value.items()}
    elif isinstance(value, list):
        value = [_changed(inner, change) for inner in value]
    return value if isinstance(value, bool) else change(value)


def _inner_names(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _inner_names(inner)


def _replaced(kind: type | tuple[type, ...], by: object, value: object) -> object:
    return by if isinstance(value, kind) else value


def _without(name: str, value: Any) -> Any:
    return {key: inner for key, inner in value.items() if key != name} if isinstance(value, Mapping) else value
