"""Rewriting of equivalent syntax into the subset of `compiler`."""

from __future__ import annotations

import ast
from collections import Counter


def plain(node: ast.ClassDef) -> ast.ClassDef:
    """A strategy's class, rewritten in place."""
    names = Counter(child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute))
    names.update(
        child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and type(child.value) is str
    )
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.args.args:
            _Plain(node.name, method.args.args[0].arg, names).visit(method)
    return node


class _Plain(ast.NodeTransformer):
    """Rewrites a method.

    Parameters
    ----------
    name
        The name of its class.
    player
        The name of its first argument.
    names
        Number of occurrences in the class of each attribute and text.
    """

    def __init__(self, name: str, player: str, names: Counter[str]) -> None:
        self._name = name
        self._player = player
        self._names = names

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Replace lambdas by ``def``, unpacked generators by lists, and unused generators of random numbers."""
        self.generic_visit(node)
        match node.targets, node.value:
            case [ast.Name(id=name)], ast.Lambda(args=arguments, body=body):
                made = ast.FunctionDef(name=name, args=arguments, body=[ast.Return(body)], decorator_list=[])
                return ast.fix_missing_locations(ast.copy_location(made, node))
            case [ast.Tuple()], ast.GeneratorExp(elt=item, generators=generators):
                node.value = ast.copy_location(ast.ListComp(item, generators), node.value)
            case [ast.Attribute(value=ast.Name(self._player), attr=name)], ast.Call(func, [], []) if (
                isinstance(func, ast.Attribute) and func.attr == "Random" and self._names[name] == 1
            ):
                # The only effect of an unused generator is the draw of its seed.
                func.attr = "getrandbits"
                node.value.args = [ast.copy_location(ast.Constant(64), node)]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace the name of the class by a text."""
        self.generic_visit(node)
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(self._player), attr="__class__")
                | ast.Call(func=ast.Name("type"), args=[ast.Name(self._player)], keywords=[]),
                attr="__name__",
            ):
                return ast.copy_location(ast.Constant(self._name), node)
        return node
