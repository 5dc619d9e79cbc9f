"""The names in reach of a class and of its functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from labmates_populations.engine.kernel.names import MODULES
from labmates_populations.engine.kernel.rewriting.nodes import UnfitError
from labmates_populations.engine.kernel.syntax import FIELDS, add_children

_BINDING = frozenset({
    ast.ClassDef, ast.ExceptHandler, ast.FunctionDef, ast.Global, ast.Import, ast.ImportFrom, ast.Lambda,
})  # fmt: skip

_SHORT = {f"strategies.{name}": name for name in ("Action", "BaseStrategy", "C", "D", "PlayerHistory")} | {
    "Action.C": "C",
    "Action.D": "D",
}


class ClassScope:
    """The names of a class, and what rewriting finds out about it.

    Attributes
    ----------
    name
        The class's own name.
    methods
        The names of its methods.
    properties
        Those that are read as attributes.
    enums
        The names of its enumerations and of their members.
    draws
        Whether it draws random numbers.
    """

    def __init__(
        self, name: str, methods: frozenset[str], properties: frozenset[str], imported: Mapping[str, str]
    ) -> None:
        self.name = name
        self.methods = methods
        self.properties = properties
        self.enums: dict[str, frozenset[str]] = {}
        self.draws = False
        self._imported = imported

    def meaning(self, node: ast.expr) -> str:
        """The full name that a name or an attribute of a module refers to; empty if it is something else."""
        match node:
            case ast.Name(id=name):
                full = self._imported.get(name, name)
                return _SHORT.get(full, full)
            case ast.Attribute(value=inner, attr=attribute):
                outer = self.meaning(inner)
                full = f"{outer}.{attribute}"
                return _SHORT.get(full, full) if outer in MODULES or outer == "Action" else ""
        return ""


def assigned_names(node: ast.FunctionDef | ast.Lambda) -> tuple[list[str], set[str]]:
    """All variables of a function, and the names of functions in it.

    Nested functions are excluded.
    """
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg)
    names = [argument.arg for argument in every if argument is not None]
    functions: set[str] = set()
    found: set[str] = set()
    nodes: list[ast.AST] = [*node.body] if isinstance(node, ast.FunctionDef) else [node.body]
    for one in nodes:
        kind = type(one)
        if type(one) is ast.Name:
            if type(one.ctx) is not ast.Load:
                found.add(one.id)
        elif kind not in _BINDING:  # most nodes: a lookup takes less time than the patterns
            if FIELDS[kind]:
                add_children(one, nodes)
        else:
            match one:
                case ast.ExceptHandler(name=name):
                    found |= set() if name is None else {name}
                    add_children(one, nodes)
                case ast.FunctionDef(name=name):
                    functions.add(name)
                case ast.Import() | ast.ImportFrom() | ast.Global() | ast.ClassDef():
                    raise UnfitError(f"{kind.__name__} within a function")
    return [*names, *found, *functions], functions
