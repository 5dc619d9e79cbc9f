"""Findings that are written as YAML: read as text, numbers and truth values, and found in prose by their fields."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator
from typing import Any, Final

import yaml

from labmates.relaxed_json import Unusable, read_number

MOST_CHARS: Final = 30_000
"""A longer text is not read as YAML."""
MOST_NODES: Final = 20_000
MOST_DEPTH: Final = 40

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
_MINUS = re.compile(r"([:,\[{][ \t]+)-(?=[ \t]*(?:$|#|[,}\]]))", re.MULTILINE)
_ENTRY = re.compile(r"([^\W\d]\w*):(?:\s|$)")
_CONSTANTS: Final = {"": None, "~": None, "null": None, "none": None, "true": True, "false": False}


class YAMLFaultError(ValueError):
    """A text can't be read as a mapping in YAML; says why."""


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping that a text in YAML holds; what is neither a number, a truth value nor null is text.

    A lone minus is read as text, where YAML itself would begin a list. A value that is not finite and a key that is
    given twice become `Unusable`.

    Raises
    ------
    YAMLFaultError
        If the text is no mapping in YAML, or too long.
    """
    if len(text) > MOST_CHARS:
        raise YAMLFaultError(f"longer than {MOST_CHARS} characters")
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MOST_DEPTH:
            raise YAMLFaultError("nested too deeply")
    try:
        node = yaml.compose(_MINUS.sub(r'\1"-"', textwrap.dedent(text)), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YAMLFaultError("not YAML") from error
    if not isinstance(node, yaml.MappingNode):
        raise YAMLFaultError("not a mapping")
    value: dict[str, Any] = _Values().of(node, 0)
    return value


def find_yaml(prose: str, fields: Collection[str]) -> Iterator[str]:
    """Yield the passages of a text that begin with ``field: …`` at the margin and go on as YAML would."""
    passage: list[str] = []
    for line in [*prose.split("\n"), "."]:
        entry = _ENTRY.match(line)
        goes_on = bool(passage) and (not line.strip() or line[0] in " \t-")
        if goes_on or (entry is not None and (passage or entry[1] in fields)):
            passage.append(line)
        elif passage:
            yield "\n".join(passage)
            passage = []


class _Values:
    """Makes values of nodes; a few nodes may stand for very many by reference, so that all of them are counted."""

    def __init__(self) -> None:
        self.left = MOST_NODES

    def of(self, node: yaml.Node, depth: int) -> Any:
        self.left -= 1
        if self.left < 0 or depth > MOST_DEPTH:
            raise YAMLFaultError("too large")
        if isinstance(node, yaml.MappingNode):
            values: dict[str, Any] = {}
            for key, inner in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise YAMLFaultError("a key is not text")
                value = self.of(inner, depth + 1)
                values[key.value] = (
                    Unusable(f"the key '{key.value:.60}' is given twice") if key.value in values else value
                )
            return values
        if isinstance(node, yaml.SequenceNode):
            return [self.of(inner, depth + 1) for inner in node.value]
        is_plain = isinstance(node, yaml.ScalarNode) and node.style is None
        return _scalar(node.value) if is_plain else node.value


def _scalar(text: str) -> Any:
    plain = text.replace("\N{MINUS SIGN}", "-")
    if plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower()]
    if _NUMBER.fullmatch(plain):
        return read_number(plain)
    if _NOT_FINITE.fullmatch(plain):
        return Unusable(f"{text} is not a number of JSON")
    return text
