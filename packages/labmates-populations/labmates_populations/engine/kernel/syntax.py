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
"""The fields of each type of node that may contain nodes."""


def add_children(node: ast.AST, nodes: list[ast.AST]) -> None:
    """Append the child nodes of a node to a list."""
    for name in FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            nodes += [child for child in value if child is not None] if None in value else value
        elif value is not None:
            nodes.append(value)
