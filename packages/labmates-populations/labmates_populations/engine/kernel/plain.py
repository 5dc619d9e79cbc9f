"""Rewriting of equivalent syntax into the subset of `compiler`."""

from __future__ import annotations

import ast
from collections import Counter
from copy import deepcopy

from labmates_populations.engine.kernel.rewriting.constants import with_known


def plain(node: ast.ClassDef) -> ast.ClassDef:
    """A strategy's class, rewritten in place."""
    names = Counter(child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute))
    names.update(
        child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and type(child.value) is str
    )
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.args.args:
            _Plain(node.name, method.args.args[0].arg, names, _of_class(node)).visit(method)
    return node


def _of_class(node: ast.ClassDef) -> frozenset[str]:
    """The attributes that only the class assigns, so that they are the same of a player and of the class."""
    stored = {
        one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load)
    }
    names = {one.id for part in node.body for one in ast.walk(part)
             if not isinstance(part, ast.FunctionDef) and isinstance(one, ast.Name)}  # fmt: skip
    return frozenset(names - stored)


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
    constants
        The attributes of the class that no player assigns.
    """

    def __init__(self, name: str, player: str, names: Counter[str], constants: frozenset[str]) -> None:
        self._name = name
        self._player = player
        self._names = names
        self._constants = constants

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Replace lambdas by ``def``, unpacked generators by lists, and unused generators of random numbers."""
        self.generic_visit(node)
        match node.targets, node.value:
            case [ast.Name(id=name)], ast.Lambda(args=arguments, body=body):
                made = ast.FunctionDef(name=name, args=arguments, body=[ast.Return(body)], decorator_list=[])
                return ast.fix_missing_locations(ast.copy_location(made, node))
            case [ast.Tuple()], ast.GeneratorExp(elt=item, generators=generators):
                node.value = ast.copy_location(_written_out(item, generators), node.value)
            case [ast.Attribute(value=ast.Name(self._player), attr=name)], ast.Call(func, [], []) if (
                isinstance(func, ast.Attribute) and func.attr == "Random" and self._names[name] == 1
            ):
                # The only effect of an unused generator is the draw of its seed.
                func.attr = "getrandbits"
                node.value.args = [ast.copy_location(ast.Constant(64), node)]
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """Replace the method of a dict as a key by a function."""
        self.generic_visit(node)
        match node:
            case ast.keyword(
                arg="key", value=ast.Attribute(value=ast.Name() | ast.Attribute(value=ast.Name()), attr="get") as method
            ):
                one = ast.arguments([], [ast.arg("_one")], None, [], [], None, [])
                made = ast.Lambda(one, ast.Call(method, [ast.Name("_one", ast.Load())], []))
                node.value = ast.fix_missing_locations(ast.copy_location(made, node.value))
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """Replace a choice between constants by comparisons."""
        self.generic_visit(node)
        subject = f"_subject_{node.lineno}"
        chosen: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = _test_of(case.pattern, subject)
            if test is None:
                return node
            both = test if case.guard is None else ast.BoolOp(ast.And(), [test, case.guard])
            chosen = [ast.If(both, case.body, chosen)]
        first = ast.Assign([ast.Name(subject, ast.Store())], node.subject)
        return [ast.fix_missing_locations(ast.copy_location(one, node)) for one in (first, *chosen)]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace the name of the class by a text, and the class of a constant by the player."""
        self.generic_visit(node)
        match node:
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(self._player), attr="__class__")
                | ast.Call(func=ast.Name("type"), args=[ast.Name(self._player)], keywords=[])
                | ast.Name(self._name),
                attr=attribute,
            ) if attribute in self._constants:
                node.value = ast.copy_location(ast.Name(self._player, ast.Load()), node)
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(self._player), attr="__class__")
                | ast.Call(func=ast.Name("type"), args=[ast.Name(self._player)], keywords=[]),
                attr="__name__",
            ):
                return ast.copy_location(ast.Constant(self._name), node)
        return node


def _written_out(item: ast.expr, generators: list[ast.comprehension]) -> ast.expr:
    """What a generator gives, as a list: its items, if it goes through constants."""
    match generators:
        case [ast.comprehension(target=ast.Name(id=name), iter=ast.Tuple(elts=values) | ast.List(elts=values), ifs=[])]:
            inner = any(isinstance(one, (ast.comprehension, ast.Lambda)) for one in ast.walk(item))
            if all(isinstance(one, ast.Constant) for one in values) and not inner:
                return ast.Tuple([with_known(deepcopy(item), {name: one}) for one in values], ast.Load())
    return ast.ListComp(item, generators)


def _test_of(pattern: ast.pattern, subject: str) -> ast.expr | None:
    """The condition that a pattern of constants stands for; None if it is another pattern."""
    name = ast.Name(subject, ast.Load())
    match pattern:
        case ast.MatchValue(value=value):
            return ast.Compare(name, [ast.Eq()], [value])
        case ast.MatchSingleton(value=constant):
            return ast.Compare(name, [ast.Is()], [ast.Constant(constant)])
        case ast.MatchAs(pattern=None, name=None):
            return ast.Constant(True)
        case ast.MatchOr(patterns=patterns):
            tests = [test for one in patterns if (test := _test_of(one, subject)) is not None]
            return ast.BoolOp(ast.Or(), [*tests]) if len(tests) == len(patterns) else None
    return None
