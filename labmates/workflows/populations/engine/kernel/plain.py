"""Other ways to write what the subset of `compiler` has, put plainly: they mean the same."""

from __future__ import annotations

import ast
from collections import Counter


def plain(node: ast.ClassDef) -> ast.ClassDef:
    """A strategy's class with what is written otherwise put plainly; the class is changed."""
    names = Counter(one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute))
    names.update(one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and type(one.value) is str)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.args.args:
            _Plain(node.name, method.args.args[0].arg, names).visit(method)
    return node


class _Plain(ast.NodeTransformer):
    """A method that is put plainly.

    Parameters
    ----------
    name
        The name of its class.
    player
        What it calls its player.
    names
        How often the class has each attribute or text.
    """

    def __init__(self, name: str, player: str, names: Counter[str]) -> None:
        self._name = name
        self._player = player
        self._names = names

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Functions get names by ``def``, and nothing is unpacked from a generator."""
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
                # A generator that nothing reads: what is left of it is that its seed is drawn.
                func.attr = "getrandbits"
                node.value.args = [ast.copy_location(ast.Constant(64), node)]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The name of the class is a text."""
        self.generic_visit(node)
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(self._player), attr="__class__")
                | ast.Call(func=ast.Name("type"), args=[ast.Name(self._player)], keywords=[]),
                attr="__name__",
            ):
                return ast.copy_location(ast.Constant(self._name), node)
        return node
