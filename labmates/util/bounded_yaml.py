"""Users' YAML: bounded in size, with the line number in each error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError

if TYPE_CHECKING:
    import yaml

MOST_NODES = 1_000_000
"""Maximum number of values, keys included, in a document with its aliases expanded."""

_REMEDIES = {
    "mapping values are not allowed": "quote a text that holds ': ', and indent keys of the same level alike",
    "'\\t'": "indent with spaces in place of tabs",
    "unknown escape character": "use single quotes for a text with a backslash",
}
"""What to do, by a part of PyYAML's message."""

Path = tuple[str | int, ...]
"""The path of a value: keys and list indices, from the top."""


def compose_yaml(text: str) -> yaml.Node | None:
    """Parse a document into nodes, without building its values; None if it is empty.

    Raises `yaml.YAMLError` if it is not YAML, contains itself, or expands to more than `MOST_NODES` nodes (a "YAML
    bomb").
    """
    import yaml

    from labmates.util.yaml_rules import Loader

    root: yaml.Node | None = yaml.compose(text, Loader=Loader)
    if root is not None:
        _expanded_size(root, {})
    return root


def yaml_value(root: yaml.Node | None) -> Any:
    """The value of a document parsed by `compose_yaml`."""
    from labmates.util.yaml_rules import Loader

    return None if root is None else Loader("").construct_document(root)


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Number of nodes below `node`, with aliases expanded; visits each node once."""
    import yaml

    if id(node) in sizes:
        if not sizes[id(node)]:
            raise _problem(node, "an alias refers to the value that contains it")
        return sizes[id(node)]
    sizes[id(node)] = 0  # until it is known
    children: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        children = node.value
    elif isinstance(node, yaml.MappingNode):
        children = [part for pair in node.value for part in pair]
    size = 1 + sum(_expanded_size(child, sizes) for child in children)
    if size > MOST_NODES:
        raise _problem(node, f"its aliases expand to more than {MOST_NODES:,} values")
    sizes[id(node)] = size
    return size


def _problem(node: yaml.Node, text: str) -> yaml.MarkedYAMLError:
    import yaml

    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


@dataclass(frozen=True)
class Source:
    """A YAML file, read."""

    name: str  # name in errors
    data: dict[str, Any]  # its content
    lines: dict[Path, int]  # the line of each key and list entry, by path

    def fault(self, path: Sequence[str | int], text: str) -> str:
        """`text` after its place: file, line and key."""
        where: Path = tuple(path)
        while where and where not in self.lines:  # a missing key: the line of what lacks it
            where = where[:-1]
        line = f":{self.lines[where]}" if path and where in self.lines else ""
        key = _dotted(path)
        return f"{self.name}{line}: {f'{key}: ' if key else ''}{text}"

    def error(self, faults: Iterable[tuple[Sequence[str | int], str]]) -> UsageError:
        """The error that lists all `faults`, one a line."""
        return UsageError("\n".join(self.fault(path, text) for path, text in faults))


def invalid_yaml(name: str, error: Exception) -> UsageError:
    """The error for invalid YAML, with its line and the remedy where known."""
    import yaml

    if isinstance(error, RecursionError):
        return UsageError(f"{name}: invalid YAML: it is nested too deeply")
    if not isinstance(error, yaml.MarkedYAMLError):
        return UsageError(f"{name}: invalid YAML: {' '.join(str(error).split())[:200]}")
    problem = error.problem or error.context or ""
    mark = error.problem_mark
    if "quoted scalar" in (error.context or "") and "unexpected" in problem:
        problem, mark = "this quote is not closed", error.context_mark
    remedy = next((f"; {remedy}" for part, remedy in _REMEDIES.items() if part in problem), "")
    line = f":{mark.line + 1}" if mark else ""
    return UsageError(f"{name}{line}: invalid YAML: {problem}{remedy}")


def read_source(text: str, name: str, what: str, example: str, *, may_be_empty: bool = False) -> Source:
    """Read YAML whose top is a mapping.

    `what` and `example` are a noun and a line for errors. Raises `UsageError` if the text is not YAML, a key is
    repeated, or the top is not a mapping.
    """
    import yaml

    try:
        root = compose_yaml(text)
        lines: dict[Path, int] = {}
        if root is not None:
            lines[()] = root.start_mark.line + 1
            _note_lines(root, (), lines, name)
        data = yaml_value(root)
    except UsageError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise invalid_yaml(name, error) from error
    if data is None and may_be_empty:
        data = {}
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: the {what} must be a mapping of keys to values, for instance '{example}'")
    return Source(name, data, lines)


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            line = key.start_mark.line + 1
            if inner in lines:
                first = f"first in line {lines[inner]}"
                raise UsageError(f"{name}:{line}: {_dotted(inner)}: repeated key ({first})")
            lines[inner] = line
            _note_lines(value, inner, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            lines[*path, place] = value.start_mark.line + 1
            _note_lines(value, (*path, place), lines, name)


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in path)
