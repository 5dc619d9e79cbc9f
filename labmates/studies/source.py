"""Reading a YAML file such that an error can name the line that it is about."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from labmates.bounded_yaml import compose_yaml
from labmates.errors import UsageError
from labmates.studies import ready

Path = tuple[str | int, ...]
"""The place of a value: keys and places in lists, from the top."""


@dataclass(frozen=True)
class Source:
    """A YAML file, read.

    Attributes
    ----------
    name
        What errors call it.
    data
        Its content.
    lines
        The line of each key and list entry, by path.
    """

    name: str
    data: dict[str, Any]
    lines: dict[Path, int]

    def fault(self, path: Sequence[str | int], text: str) -> str:
        """Return `text` with the place that it is about before it: file, line and key."""
        where: Path = tuple(path)
        while where and where not in self.lines:
            where = where[:-1]
        line = f":{self.lines[where]}" if where in self.lines else ""
        key = _dotted(path)
        return f"{self.name}{line}: {f'{key}: ' if key else ''}{text}"

    def error(self, faults: Iterable[tuple[Sequence[str | int], str]]) -> UsageError:
        """Return the error that tells all `faults`, one a line."""
        return UsageError("\n".join(self.fault(path, text) for path, text in faults))


def read_source(text: str, name: str) -> Source:
    """Read YAML whose top is a mapping.

    Raises
    ------
    UsageError
        If it is no YAML, a key stands twice, or the top is no mapping.
    """
    try:
        root = compose_yaml(text)
        lines: dict[Path, int] = {}
        if root is not None:
            _note_lines(root, (), lines, name)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{name}{line}: this is no YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{name}: this is no YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: a study is a mapping of keys to values, for instance 'kind: game'")
    return Source(name, data, lines)


def find_study(name: str) -> Source:
    """Return the study in a file, or one of those that come with labmates, by name.

    Raises
    ------
    UsageError
        If there is none, or it is no YAML.
    """
    path = pathlib.Path(name)
    if path.suffix in (".yaml", ".yml") or path.exists():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read the study '{name}': {getattr(error, 'strerror', None) or error}") from error
        source = read_source(text, name)
        source.data.setdefault("name", path.stem)
        return source
    if name in ready.names():
        return read_source(ready.text(name), f"{name}.yaml")
    known = ", ".join(ready.names())
    raise UsageError(f"there is no file '{name}', and no study of that name comes with labmates (these do: {known})")


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, _plain(key))
            line = key.start_mark.line + 1
            if inner in lines:
                first = f"first in line {lines[inner]}"
                raise UsageError(f"{name}:{line}: {_dotted(inner)}: this key stands twice ({first})")
            lines[inner] = line
            _note_lines(value, inner, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            lines[*path, place] = value.start_mark.line + 1
            _note_lines(value, (*path, place), lines, name)


def _plain(key: yaml.Node) -> str:
    return key.value if isinstance(key, yaml.ScalarNode) else str(key.value)


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in path)
