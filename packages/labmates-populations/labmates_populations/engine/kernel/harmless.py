"""Strategies whose text shows that they are harmless: all of these share one process, and their players a class.

Their code names nothing but what is listed here and in `names`: functions, methods and attributes of values, its own
methods, and its own attributes on the player alone. What it can get hold of, and call, is numbers, texts, collections,
arrays, its history and its own functions; none of these leads to an object that it shares with another player, and
constants of the file and the class can't be changed. Formats of texts, sets of objects and hashes would show addresses.

The code is executed as it is written, but for what `names` replaces: imported names, and some operators and methods.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labmates_populations.engine.kernel.names import (
    CALLS,
    CONSTANTS,
    DRAWS,
    ERRORS,
    MODULES,
    NUMBERS,
    OF_SETS,
    TYPES,
    table_name,
)
from labmates_populations.engine.kernel.syntax import (
    UnfitError,
    assignments,
    children,
    is_collection,
    is_constant,
    nodes_in,
    unfit,
)

_MERGED = {"labmates.strategies": "strategies"} | {
    f"emergent_llm.{part}": "strategies" for part in ("players", "games", "common")
}
_SHORT = {f"strategies.{name}": name for name in ("Action", "BaseStrategy", "C", "D", "PlayerHistory")} | {
    "Action.C": "C",
    "Action.D": "D",
}
_DATA = frozenset({
    "C", "D", "T", "actions", "capacity", "cooperate", "current_stock", "defect", "k", "m", "my_actions", "my_payoffs",
    "n_players", "n_rounds", "ndim", "opponent_actions", "opponent_cooperators", "opponent_counts", "opponent_payoffs",
    "opponent_sources", "own_source", "real", "round_number", "shape", "size", "table", "value",
})  # fmt: skip
"""Attributes of any value: their values give access to nothing else."""
_METHODS = frozenset({
    "add", "all", "any", "append", "argmax", "argmin", "astype", "clear", "copy", "count", "cumsum", "extend",
    "flatten", "flip", "get", "index", "insert", "is_integer", "item", "items", "keys", "max", "mean", "min", "pop",
    "ravel", "remove", "reverse", "round", "setdefault", "sort", "std", "sum", "tolist", "update", "values", "var",
})  # fmt: skip
_MANY = frozenset({"get", "insert", "pop", "setdefault", *DRAWS})
"""Methods with any arguments, none of arrays."""
_PLACES = {"arange": 3, "clip": 3, "linspace": 3, "where": 3} | dict.fromkeys(
    ("array", "asarray", "ones", "ones_like", "zeros", "zeros_like"), 1
)
"""Maximum number of positional arguments of numpy's functions; the default is two: types and arrays to write follow."""
_KEYWORDS = frozenset({
    "abs_tol", "atol", "axis", "ddof", "default", "equal_nan", "key", "n", "ndigits", "decimals", "dtype", "rel_tol",
    "reverse", "rtol", "start", "strict", "weights",
})  # fmt: skip
_HISTORIES = ("PlayerHistory", "PaperHistory")
_SPECIAL = frozenset({"__init__", "__call__"})
_PLAIN = (
    ast.Expr, ast.If, ast.For, ast.While, ast.Assign, ast.AugAssign, ast.Return, ast.Pass, ast.Break, ast.Continue,
    ast.Assert, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.List, ast.Tuple, ast.Dict, ast.ListComp,
    ast.DictComp, ast.GeneratorExp, ast.Subscript, ast.Slice, ast.Starred, ast.NamedExpr, ast.Raise,
    ast.Delete, ast.Nonlocal, ast.Lambda, ast.keyword, ast.Match, ast.match_case, ast.MatchValue, ast.MatchSingleton,
    ast.MatchOr,
)  # fmt: skip
"""Nodes that need no check besides their children."""
_COSTLY = (ast.LShift, ast.MatMult)
_REPLACED = (ast.Mod, ast.Pow)
_KINDS = {"JoinedStr": "an f-string", "LShift": "the operator <<", "MatMult": "the operator @",
          "Mod": "%", "Pow": "**", "Yield": "a generator", "With": "a with statement"}  # fmt: skip


@dataclass(frozen=True)
class Harmless:
    """Code that may share a process.

    Attributes
    ----------
    statements
        Its constants and its class.
    copied
        The constants of the class that a player may change, so that each has its own.
    is_named
        Whether its functions name constants of the file or the class, so that it needs its own globals.
    draws
        Whether it draws random numbers.
    """

    statements: list[ast.stmt]
    copied: list[str]
    is_named: bool
    draws: bool


def harmless(before: Iterable[ast.stmt], node: ast.ClassDef, *, paper: bool) -> Harmless:
    """The code of a strategy that may share a process with others; its tree is changed.

    Parameters
    ----------
    before
        What the class needs of its file.
    paper
        Whether it has the paper's form.

    Raises
    ------
    UnfitError
        If its text does not show that it is harmless; its tree is then as before.
    """
    imported: dict[str, str] = {}
    known: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for statement in before:
        match statement:
            case ast.Import(names=aliases):
                short = [(one, one.name.partition(".")[0]) for one in aliases]
                imported |= {one.asname or first: one.name if one.asname else first for one, first in short}
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                imported |= {one.asname or one.name: f"{_MERGED.get(module, module)}.{one.name}" for one in aliases}
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                pairs = assignments(statement)
                if not pairs or not all(is_constant(value, known) and name[:2] != "__" for name, value in pairs):
                    raise unfit(statement, "needs more of its file than imports and constants")
                known.update(pairs)
                kept.append(statement)
    histories = {"strategies.PlayerHistory": "PaperHistory"} if paper else {}
    check = _Check(node, {name: histories.get(full, full) for name, full in imported.items()}, known)
    check.all()
    for target, field, value in check.edits:
        setattr(target, field, value)
    rewritten = _Replaced().visit(node) if check.is_replaced else node
    return Harmless([*kept, rewritten], check.copied, check.is_named, check.draws)


class _Check:
    """The check of a class."""

    def __init__(self, node: ast.ClassDef, imported: Mapping[str, str], known: Mapping[str, ast.expr]) -> None:
        self.draws = self.is_replaced = False
        self.is_named = bool(known)
        self.edits: list[tuple[ast.AST, str, Any]] = []
        """Nodes, and their fields that have other values in the code that is executed."""
        self.copied: list[str] = []
        self._enums: dict[str, set[str]] = {}
        self._node = node
        self._imported = imported
        self._known = known
        self._methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        self._constants: dict[str, ast.expr] = {}
        self._bound = Counter(name for method in self._methods for name in _bound(method))
        first = [one for method in self._methods if not _is_static(method) for one in _arguments(method)[:1]]
        self._self = first[0].arg if first else ""
        if any(one.arg != self._self for one in first) or self._bound[self._self] != len(first):
            # It would be another object, with attributes that all players share.
            raise unfit(node, f"another thing is called {self._self}")
        taken = {*imported, *known, *CALLS, *TYPES}
        if hidden := sorted({*self._bound, *known} & imported.keys() | {node.name} & {*self._bound, *taken}):
            raise unfit(node, f"{hidden[0]} has two meanings")

    def all(self) -> None:
        """Check the class and its methods; UnfitError if one does not fit."""
        node = self._node
        if node.decorator_list or node.keywords or len(node.bases) > 1 or getattr(node, "type_params", None):
            raise unfit(node, "the class has decorators or several bases")
        if any(self._meaning(base) != "BaseStrategy" for base in node.bases):
            raise unfit(node, "the class has a base class")
        for statement in node.body:
            match statement:
                case ast.FunctionDef() | ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case ast.AnnAssign(target=ast.Name(), value=None):
                    pass
                case ast.ClassDef(bases=[base], keywords=[], decorator_list=[]) if self._meaning(base) == "enum.Enum":
                    self._enums[statement.name] = {name for one in statement.body for name in self._members(one)}
                case _:
                    self._constant(statement)
        for method in self._methods:
            self._method(method)

    def _members(self, statement: ast.stmt) -> Iterator[str]:
        """The members of an enumeration that a statement makes."""
        pairs = assignments(statement)
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and not (pairs and all(is_constant(value, {}) for _, value in pairs)):
            raise unfit(statement, "an enumeration of more than constants")
        for name, _ in pairs:
            if name.startswith("_") or name == "mro":
                raise unfit(statement, f"a member {name}")
            yield name

    def _constant(self, statement: ast.stmt) -> None:
        pairs, known = assignments(statement), {**self._known, **self._constants}
        if not pairs or not all(is_collection(value, known, self._is_listed) for _, value in pairs):
            raise unfit(statement, "a class holds more than functions and constants")
        for name, value in pairs:
            if name.startswith("__") or name in (*self._constants, *self.copied, *(one.name for one in self._methods)):
                raise unfit(statement, f"a constant {name}")
            if is_constant(value, known, self._is_listed):
                self._constants[name] = value
            else:
                self.copied.append(name)

    def _method(self, node: ast.FunctionDef) -> None:
        decorators = [ast.unparse(one) for one in node.decorator_list]
        allowed = [[]] if node.name in _SPECIAL else [[], ["staticmethod"], ["property"]]
        is_special = node.name.startswith("__") and node.name not in _SPECIAL
        if is_special or decorators not in allowed or not (_is_static(node) or _arguments(node)):
            raise unfit(node, "a method of this kind can't be compiled")
        self._function(node)

    def _function(self, node: ast.FunctionDef) -> None:
        """Check the body of a method, or of a function in it; annotations are not evaluated."""
        if getattr(node, "type_params", None):
            raise unfit(node, "a function with parameters for types")
        self._defaults(node.args)
        self._each(node.body)
        # What has no effect would take memory, and place in the processor's cache.
        self.edits += [(node, "returns", None), *((one, "annotation", None) for one in _arguments(node))]
        if ast.get_docstring(node, clean=False) is not None:
            self.edits.append((node, "body", node.body[1:] or [ast.copy_location(ast.Pass(), node)]))

    def _defaults(self, arguments: ast.arguments) -> None:
        defaults = [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]
        if not all(is_constant(one, self._known) for one in defaults):
            raise UnfitError("defaults that can change")

    def _each(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        _VISITORS.get(type(node), _Check._refuse)(self, node)

    def _visit_plain(self, node: ast.AST) -> None:
        self._each(children(node))

    def _refuse(self, node: ast.AST) -> None:
        raise unfit(node, _kind(node))

    def _visit_functiondef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise unfit(node, "a function of this kind can't be compiled")
        self._function(node)

    def _visit_arguments(self, node: ast.arguments) -> None:
        self._defaults(node)

    def _visit_annassign(self, node: ast.AnnAssign) -> None:
        self._each(one for one in (node.target, node.value) if one is not None)

    def _visit_constant(self, node: ast.Constant) -> None:
        if not is_constant(node, {}):
            raise unfit(node, f"a constant of type {type(node.value).__name__}")

    def _visit_set(self, node: ast.Set) -> None:
        if not all(is_constant(one, {}) for one in node.elts):
            raise unfit(node, "a set")

    def _visit_compare(self, node: ast.Compare) -> None:
        self._visit(node.left)
        for operator, right in zip(node.ops, node.comparators, strict=True):
            # A set that is only asked for an item shows no order.
            is_asked = isinstance(right, ast.Set) and isinstance(operator, (ast.In, ast.NotIn))
            self._each(children(right) if is_asked else [right])

    def _visit_binop(self, node: ast.BinOp) -> None:
        if isinstance(node.op, _COSTLY):
            raise unfit(node, _kind(node.op))
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            raise unfit(node, "formats a text")
        self.is_replaced |= isinstance(node.op, _REPLACED)
        self._each((node.left, node.right))

    def _visit_comprehension(self, node: ast.comprehension) -> None:
        if node.is_async:
            raise UnfitError("an asynchronous comprehension")
        self._each(children(node))

    def _visit_augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, (*_COSTLY, *_REPLACED)):
            raise unfit(node, f"{_kind(node.op)} in place")
        self._each((node.target, node.value))

    def _visit_matchas(self, node: ast.MatchAs) -> None:
        if node.pattern is not None or node.name is not None:
            raise unfit(node, "a pattern with a name")

    def _visit_try(self, node: ast.Try) -> None:
        if node.finalbody or any(one.type is None for one in node.handlers):
            raise unfit(node, "a handler of everything")
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            if not all(kind is not None and self._builtin(kind) in ERRORS for kind in kinds):
                raise unfit(handler, "catches what it can't name")
            self._each(handler.body)
        self._each((*node.body, *node.orelse))

    def _visit_raise(self, node: ast.Raise) -> None:
        match node.exc:
            case ast.Call(func=kind, args=arguments, keywords=[]):
                self._each(arguments)
            case kind:
                pass
        if node.cause is not None or (kind is not None and self._builtin(kind) not in ERRORS):
            raise unfit(node, "raises what it can't name")

    def _builtin(self, node: ast.expr) -> str:
        """The name of a builtin, where nothing else has this name."""
        name = node.id if isinstance(node, ast.Name) else ""
        return "" if name in self._bound or name in self._imported or name in self._known else name

    def _meaning(self, node: ast.expr) -> str:
        """The full name of what is imported, or of its attribute; empty if it is something else."""
        match node:
            case ast.Name(id=name):
                full = self._imported.get(name, "")
                if full:
                    self.edits.append((node, "id", table_name(_SHORT.get(full, full))))
            case ast.Attribute(value=inner, attr=attribute):
                outer = self._meaning(inner)
                if outer == "Action":  # as an attribute of a class, an action takes longer
                    self.edits.append((inner, "id", table_name("actions")))
                full = f"{outer}.{attribute}" if outer in MODULES or outer == "Action" else ""
            case _:
                full = ""
        return _SHORT.get(full, full) or self._builtin(node)

    def _is_module(self, node: ast.expr) -> bool:
        return self._meaning(node) in (*MODULES, "Action")

    def _is_listed(self, node: ast.expr) -> bool:
        return self._meaning(node) in CONSTANTS

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._self

    def _is_class(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(value=player, attr="__class__") | ast.Call(args=[player], keywords=[]):
                is_type = isinstance(node, ast.Attribute) or self._builtin(node.func) == "type"
                return is_type and self._is_self(player)
        is_named = self._builtin(node) == self._node.name
        self.is_named |= is_named
        return is_named

    def _visit_name(self, node: ast.Name) -> None:
        name = node.id
        if name.startswith("__") or (self._is_self(node) and isinstance(node.ctx, ast.Load)):
            raise unfit(node, f"{name} as a value")
        if name in self._bound or name in self._known or self._builtin(node) in CALLS or self._is_listed(node):
            return
        raise unfit(node, f"{name} as a value")

    def _visit_attribute(self, node: ast.Attribute) -> None:
        is_read = isinstance(node.ctx, ast.Load)
        if self._is_class(node.value) and is_read and node.attr in (*self._constants, "__name__"):
            return
        match node.value:
            case ast.Attribute(value=player, attr=name) if is_read and self._is_self(player):
                if node.attr in self._enums.get(name, ()):
                    return
        if self._is_self(node.value):
            # Without a player's own copy, it would have that of the class, which all share.
            is_uncovered = isinstance(node.ctx, ast.Del) and node.attr in self.copied
            if node.attr.startswith("__") or node.attr in self._enums or is_uncovered:
                raise unfit(node, f"the attribute {node.attr}")
        elif self._is_module(node.value):
            if not (is_read and self._is_listed(node)):
                raise unfit(node, f"{ast.unparse(node)} as a value")
        elif is_read and (node.attr in _DATA or node.attr in _MANY):
            self._visit(node.value)
        else:
            raise unfit(node, f"the attribute {node.attr}")

    def _visit_call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name() as base, args=[], keywords=[]), attr="__init__") if (
                self._builtin(base) == "super"
            ):
                self._each((*node.args, *node.keywords))
            case ast.Attribute(value=value, attr=attribute) if not self._is_self(value) and not self._is_module(value):
                self._visit(value)
                self._method_called(attribute, node)
            case function if name := self._meaning(function):
                self._library_called(name, node)
            case function:  # defined by the strategy
                self._each((function, *node.args, *node.keywords))

    def _method_called(self, name: str, node: ast.Call) -> None:
        if name == "astype" and len(node.args) == 1 and not node.keywords:
            self._type(node.args[0], NUMBERS)
        elif name in _MANY:
            self._each((*node.args, *node.keywords))
        elif name in _METHODS and name != "astype":
            self.is_replaced |= name in OF_SETS
            self._passed(node, 1)
        else:
            raise unfit(node, f"the method {name}")

    def _library_called(self, name: str, node: ast.Call) -> None:
        module, _, short = name.rpartition(".")
        if name in ("getattr", "hasattr"):
            self._looked_up(name, node)
        elif name == "isinstance" and len(node.args) == 2 and not node.keywords:
            self._visit(node.args[0])
            kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
            for kind in kinds:
                self._type(kind, (*TYPES, "Action", *_HISTORIES))
        elif module == "random" and short in (*DRAWS, "seed", "Random"):
            self.draws = True
            self._each((*node.args, *node.keywords))
        elif name == "id" and len(node.args) == 1 and self._is_self(node.args[0]) and not node.keywords:
            pass
        elif name in CALLS or name in ("Action", *_HISTORIES):
            most = _PLACES.get(short, 2) if module == "numpy" else None
            self._passed(node, 1 if name == "Action" else most)
        else:
            raise unfit(node, f"calls {ast.unparse(node.func)}")

    def _passed(self, node: ast.Call, most: int | None) -> None:
        """Check the arguments of a function of a module or a method: `most` without a keyword, none that is written."""
        if most is not None and (len(node.args) > most or any(isinstance(one, ast.Starred) for one in node.args)):
            raise unfit(node, f"{ast.unparse(node.func)} with {len(node.args)} arguments")
        self._each(node.args)
        for one in node.keywords:
            if one.arg == "dtype":
                self._type(one.value, NUMBERS)
            elif one.arg in _KEYWORDS or self._meaning(node.func) in _HISTORIES:
                self._visit(one.value)
            else:
                raise unfit(node, f"the argument {one.arg}")

    def _type(self, node: ast.expr, allowed: Iterable[str]) -> None:
        if self._meaning(node) not in allowed:
            raise unfit(node, "an unsupported type")

    def _looked_up(self, function: str, node: ast.Call) -> None:
        match node.args:
            case [target, ast.Constant(value=str(name)), *default] if not node.keywords and name[:2] != "__":
                is_own = self._is_self(target) and name not in self._enums
                if is_own or name in _DATA or (function == "hasattr" and name in _METHODS):
                    self._each(default if is_own else (target, *default))
                    return
        raise unfit(node, function)


_VISITORS: dict[type[ast.AST], Callable[[_Check, Any], None]] = dict.fromkeys(_PLAIN, _Check._visit_plain) | {
    kind: getattr(_Check, f"_visit_{kind.__name__.lower()}")
    for kind in vars(ast).values()
    if isinstance(kind, type) and hasattr(_Check, f"_visit_{kind.__name__.lower()}")
}


def _kind(node: ast.AST) -> str:
    """What a node is, in a reason."""
    name = type(node).__name__
    return _KINDS.get(name, name)


def _is_static(method: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in method.decorator_list)


def _arguments(function: ast.FunctionDef) -> Sequence[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def _bound(method: ast.FunctionDef) -> Iterator[str]:
    """All names that a method and functions in it bind, once for each time."""
    for node in nodes_in(*children(method)):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name


class _Replaced(ast.NodeTransformer):
    """Replaces operators and methods by functions of `names`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace remainders that may format a text, and powers that may be enormous."""
        self.generic_visit(node)
        is_small = isinstance(node.right, ast.Constant) and isinstance(node.right.value, (int, float))
        is_small = is_small and abs(node.right.value) <= 64  # type: ignore[attr-defined]
        is_number = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, (ast.Sub, ast.Div, ast.FloorDiv))
        if isinstance(node.op, ast.Mod) and not (is_small and is_number):
            return _call("modulo", node, node.left, node.right)
        if isinstance(node.op, ast.Pow) and not is_small:
            return _call("power", node, node.left, node.right)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace methods that add to a set."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in OF_SETS:
            made = _call(OF_SETS[node.func.attr], node, node.func.value, *node.args)
            made.keywords = node.keywords
            return made
        return node


def _call(name: str, node: ast.AST, *arguments: Any) -> ast.Call:
    made = ast.Call(ast.Name(table_name(name), ast.Load()), [*arguments], [])
    return ast.fix_missing_locations(ast.copy_location(made, node))
