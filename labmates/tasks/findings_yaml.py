"""Findings in YAML: parsed to text, numbers and booleans, and found in prose by their fields."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator
from typing import Any, Final

import yaml

from labmates.util.relaxed_json import Unusable, read_number

MOST_CHARS: Final = 30_000
"""Limit of a YAML text."""
MOST_NODES: Final = 20_000
MOST_DEPTH: Final = 40

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_FINITE = re.compile(r"[+-]?\.?(?:inf|infinity|nan)", re.IGNORECASE)
_MINUS = re.compile(r"([:,\[{][ \t]+)-(?=[ \t]*(?:$|#|[,}\]]))", re.MULTILINE)
_ENTRY = re.compile(r"([^\W\d]\w*):(?:\s|$)")
_CONSTANTS: Final = {"": None, "~": None, "null": None, "none": None, "true": True, "false": False}


class YAMLFaultError(ValueError):
    """A text is not a YAML mapping."""


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping in a YAML text; everything but numbers, booleans and null is text.

    A lone minus is text, where YAML would begin a list. Non-finite values and repeated keys become `Unusable`.

    Raises
    ------
    YAMLFaultError
        If the text is not a YAML mapping, or too long.
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
    """The passages of a text that begin with ``field: …`` at the margin and continue as YAML."""
    passage: list[str] = []
    for line in [*prose.split("\n"), "."]:
        entry = _ENTRY.match(line)
        continues = bool(passage) and (not line.strip() or line[0] in " \t-")
        if continues or (entry is not None and (passage or entry[1] in fields)):
            passage.append(line)
        elif passage:
            yield "\n".join(passage)
            passage = []


class _Values:
    """Conversion of nodes to values, with a limit on their number: references may repeat nodes."""

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
