"""Nodes of syntax trees without contexts and operators, found faster than by `ast.walk`."""

import ast

_PLAIN = frozenset({
    "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "name", "op", "ops", "simple",
    "type_comment",
})  # fmt: skip
"""Fields that hold a name, a number, a context or an operator."""
_FIELDS = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each kind of nodes that may hold nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that are directly within a node."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes within it."""
    nodes = [node]
    for one in nodes:
        nodes += children(one)
    return nodes
