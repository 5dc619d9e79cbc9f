"""The subset of Python that strategies may share a process in: no objects, attributes or addresses are in reach of it.

A class that fits the subset is rewritten: each variable and each attribute of its own gets a prefix, so that none can
name anything of the interpreter, and each call goes to a function of `names.CALLS`, to a listed method of values, or to
a function of the class itself. What remains can compute with scalars, texts, lists, tuples, dicts and arrays, and
can neither leave something behind for another player nor reach one. A class that does not fit plays in a process of
its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import CodeType

from labmates_populations.engine.kernel.rewriting.constants import (
    assignments,
    is_fixed,
    is_only_read,
    replace_known,
    value_of,
    with_known,
)
from labmates_populations.engine.kernel.rewriting.functions import Function
from labmates_populations.engine.kernel.rewriting.nodes import (
    HERE,
    PREFIX,
    UnfitError,
    assign,
    call,
    is_constant,
    name_of,
)
from labmates_populations.engine.kernel.rewriting.scopes import ClassScope

_NOBODY = "__player"
"""Replacement for the player in static methods: not a valid variable name."""
_MERGED = {"labmates.strategies": "strategies"} | {
    f"emergent_llm.{part}": "strategies" for part in ("players", "games", "common")
}


@dataclass(frozen=True)
class Compiled:
    """A compiled class of a strategy.

    Attributes
    ----------
    draws
        Whether it draws random numbers.
    """

    code: CodeType
    draws: bool


def compile_class(node: ast.ClassDef, names: FileNames) -> Compiled:
    """The code of a strategy's class, for execution with `names.compiled_names`; the class's tree is changed.

    Parameters
    ----------
    names
        The names of its file; see `file_names`.

    Raises
    ------
    UnfitError
        If the class is outside the subset.
    """
    try:
        made = _Class(node, names)
        rewritten = made.rewritten()
        code: CodeType = compile(ast.Module([rewritten], []), "strategy", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnfitError(str(error)) from error
    return Compiled(code, made.scope.draws)


@dataclass(frozen=True)
class FileNames:
    """The names of a file beside its strategies: the meanings of those that it imports, and constants."""

    imported: Mapping[str, str]
    constants: Mapping[str, ast.expr]


def file_names(statements: Iterable[ast.stmt]) -> FileNames:
    """The names of a file; UnfitError if it has other statements than imports and constants that can't change."""
    imported: dict[str, str] = {}
    constants: dict[str, ast.expr] = {}
    for statement in statements:
        match statement:
            case ast.Import(names=aliases):
                short = [(one, one.name.partition(".")[0]) for one in aliases]
                imported |= {one.asname or first: one.name if one.asname else first for one, first in short}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                merged = _MERGED.get(module, module)
                imported |= {one.asname or one.name: f"{merged}.{one.name}" for one in aliases}
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                pairs = [(name, with_known(deepcopy(value), constants)) for name, value in assignments(statement)]
                if not pairs or not all(is_constant(value) and name not in constants for name, value in pairs):
                    raise UnfitError(f"line {statement.lineno}: needs more of its file than imports and constants")
                constants.update(pairs)
    return FileNames(imported, constants)


class _Class:
    """The rewriting of a class."""

    def __init__(self, node: ast.ClassDef, names: FileNames) -> None:
        if names.constants:
            replace_known(node, names.constants)
        self._node = node
        self._known: dict[str, ast.expr] = {}
        self._functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        methods = frozenset(one.name for one in self._functions)
        properties = frozenset(one.name for one in self._functions if _decorators(one) == ["property"])
        self.scope = ClassScope(node.name, methods, properties, names.imported)

    def rewritten(self) -> ast.ClassDef:
        node = self._node
        if node.decorator_list or node.keywords or len(node.bases) > 1:
            raise UnfitError("the class has decorators or several bases")
        if any(self.scope.meaning(base) != "BaseStrategy" for base in node.bases):
            raise UnfitError("the class has a base of its own")
        body: list[ast.stmt] = [*self._constants(node), *(self._method(one) for one in self._functions)]
        node.name, node.bases, node.body = "Strategy", [name_of("BaseStrategy")], body
        vars(node)["type_params"] = []
        return node

    def _constants(self, node: ast.ClassDef) -> Iterator[ast.stmt]:
        for statement in node.body:
            match statement:
                case ast.FunctionDef() | ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
                    pass
                case ast.ClassDef(name=name, bases=[base], keywords=[], decorator_list=[], body=body) if (
                    self.scope.meaning(base) == "enum.Enum" and (members := _members(body))
                ):
                    self.scope.enums[name] = frozenset(members)
                    keys: list[ast.expr | None] = [ast.Constant(one, **HERE) for one in members]
                    arguments = [ast.Constant(name, **HERE), ast.Dict(keys, [*members.values()], **HERE)]
                    yield assign(name, call("enumeration", arguments))
                case _:
                    yield from self._constant(statement)

    def _constant(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """The rewritten constants of a statement; each player has its own copies of those that it may change."""
        pairs = assignments(statement)
        for name, given in pairs:
            value = value_of(with_known(deepcopy(given), self._known), self.scope.meaning)
            deleted = any(
                isinstance(one, ast.Attribute) and one.attr == name and isinstance(one.ctx, ast.Del)
                for one in ast.walk(self._node)
            )
            if value is None or name.startswith("__") or name in self._known or deleted:
                pairs = []
                break
            if is_fixed(value):
                self._known[name] = value
            if is_fixed(value) or is_only_read(self._node, name, value):
                yield assign(name, value)
            else:
                own = ast.Attribute(name_of(self._made().args.args[0].arg), name, ast.Store(), **HERE)
                self._made().body.insert(0, ast.Assign([own], with_known(given, self._known), **HERE))
        if not pairs:
            raise UnfitError(f"line {statement.lineno}: a class holds more than functions and constants")

    def _made(self) -> ast.FunctionDef:
        """The method that makes a player."""
        for one in self._functions:
            if one.name == "__init__" and one.args.args:
                return one
        text = "def __init__(self, game_description): super().__init__(game_description)"
        [made] = ast.parse(text).body
        assert isinstance(made, ast.FunctionDef)
        self._functions.append(made)
        return made

    def _method(self, node: ast.FunctionDef) -> ast.FunctionDef:
        special = node.name in ("__init__", "__call__")
        match _decorators(node):
            case ["staticmethod"] if not special:
                node.args.args.insert(0, ast.arg(_NOBODY, **HERE))
                node.decorator_list = []
            case ["property"] if not special:
                node.decorator_list = []
        if (node.name.startswith("__") and not special) or node.decorator_list or not node.args.args:
            raise UnfitError(f"line {node.lineno}: a method of this kind can't be compiled")
        if node.args.posonlyargs:  # the player would be one of them, and the next argument have attributes
            raise UnfitError(f"line {node.lineno}: a method of this kind can't be compiled")
        name = node.name
        function = Function(self.scope, None, node).rewritten(node)
        function.name = name if special else PREFIX + name
        return function


def _decorators(node: ast.FunctionDef) -> list[str]:
    return [one.id if isinstance(one, ast.Name) else "" for one in node.decorator_list]


def _members(body: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """The members of an enumeration; none if it has other statements."""
    found: dict[str, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_constant(value) and not (
                name.startswith("_") or name == "mro"
            ):
                found[name] = value
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                return {}
    return found
