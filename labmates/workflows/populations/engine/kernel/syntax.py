"""Nodes of syntax trees without contexts, operators and imported names, found faster than by `ast.walk`."""

import ast

_PLAIN = frozenset({
    "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "name", "names", "op",
    "ops", "rest", "simple", "type_comment",
})  # fmt: skip
"""Fields that hold names, a number, a context or an operator."""
FIELDS = {
    kind: ()
    if kind in (ast.Constant, ast.MatchSingleton)
    else tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""The fields of each kind of nodes that may hold nodes."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes that are directly within a node."""
    found: list[ast.AST] = []
    for name in FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [one for one in value if one is not None] if None in value else value
        elif value is not None:
            found.append(value)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all nodes within it."""
    nodes = [node]
    for one in nodes:
        nodes += children(one)
    return nodes
