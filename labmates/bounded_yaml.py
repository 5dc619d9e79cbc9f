"""YAML of users, refused where its aliases expand to more than a program can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

MOST_NODES = 1_000_000
"""Most values, keys included, that a document may hold once its aliases are expanded."""


def compose_yaml(text: str) -> yaml.Node | None:
    """Parse a document into nodes, without building its values; None if it is empty.

    Raises
    ------
    yaml.YAMLError
        If it is not YAML, contains itself, or expands to more than `MOST_NODES` nodes (a "YAML bomb").
    """
    import yaml

    root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _expanded_size(root, {})
    return root


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Number of nodes below `node`, with each alias counted as what it stands for; one visit a node."""
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
