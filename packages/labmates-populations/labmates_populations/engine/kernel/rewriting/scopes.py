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
_COMPREHENSIONS = frozenset({ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp})

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
    variables
        The variables assigned in each rewritten function, excluding comprehensions and nested functions.
    """

    def __init__(
        self, name: str, methods: frozenset[str], properties: frozenset[str], imported: Mapping[str, str]
    ) -> None:
        self.name = name
        self.methods = methods
        self.properties = properties
        self.enums: dict[str, frozenset[str]] = {}
        self.draws = False
        self.variables: dict[ast.FunctionDef, list[str]] = {}
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


def assigned_names(node: ast.FunctionDef | ast.Lambda) -> tuple[list[str], list[str], set[str]]:
    """All variables of a function, those that it assigns outside comprehensions, and the names of functions in it.

    Nested functions are excluded.
    """
    arguments = node.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg)
    names = [argument.arg for argument in every if argument is not None]
    functions: set[str] = set()
    own: dict[str, None] = {}
    others: dict[str, None] = {}
    outside: list[ast.AST] = [*node.body] if isinstance(node, ast.FunctionDef) else [node.body]
    within: list[ast.AST] = []
    for nodes, found in ((outside, own), (within, others)):
        for one in nodes:
            kind = type(one)
            if type(one) is ast.Name:
                if type(one.ctx) is not ast.Load:
                    found[one.id] = None
            elif kind not in _BINDING:  # most nodes: a lookup takes less time than the patterns
                if FIELDS[kind]:
                    add_children(one, within if kind in _COMPREHENSIONS else nodes)
            else:
                match one:
                    case ast.ExceptHandler(name=name):
                        others |= {} if name is None else {name: None}
                        add_children(one, nodes)
                    case ast.FunctionDef(name=name):
                        functions.add(name)
                    case ast.Import() | ast.ImportFrom() | ast.Global() | ast.ClassDef():
                        raise UnfitError(f"{kind.__name__} within a function")
    return [*names, *own, *others, *functions], [*own], functions
