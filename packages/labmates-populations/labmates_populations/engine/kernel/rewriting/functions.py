"""The rewriting of functions: each node is allowed and replaced, or refused."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from labmates_populations.engine.kernel.names import (
    CALLS,
    CONSTANTS,
    DRAWS,
    MODULES,
    NUMBERS,
    TYPES,
    number_of,
)
from labmates_populations.engine.kernel.rewriting.nodes import (
    CONSTANT_TYPES,
    HERE,
    LOAD,
    PREFIX,
    UnfitError,
    call,
    is_constant,
    kind_of,
    library,
    name_of,
    no_statement,
)
from labmates_populations.engine.kernel.rewriting.scopes import ClassScope, assigned_names
from labmates_populations.engine.kernel.syntax import FIELDS

_DATA = frozenset({
    "C", "D", "T", "actions", "capacity", "cooperate", "current_stock", "defect", "k", "m", "my_actions", "my_payoffs",
    "n_players", "n_rounds", "ndim", "opponent_actions", "opponent_cooperators", "opponent_counts", "opponent_payoffs",
    "opponent_sources", "own_source", "real", "round_number", "shape", "size", "table", "value",
})  # fmt: skip
"""Attributes available on any value: their values give access to nothing else."""
_METHODS = frozenset({
    "add", "all", "any", "append", "argmax", "argmin", "astype", "clear", "copy", "count", "cumsum", "extend",
    "flatten", "flip", "get", "index", "insert", "is_integer", "item", "items", "keys", "max", "mean", "min", "pop",
    "ravel", "remove", "reverse", "round", "setdefault", "sort", "std", "sum", "tolist", "update", "values", "var",
})  # fmt: skip
_MANY = frozenset({"get", "insert", "pop", "setdefault"})
"""Methods with two arguments, none of arrays."""
_OF_SETS = {"add": "added", "update": "updated"}
"""Methods that control the items of a set."""
_PLACES = {"arange": 3, "clip": 3, "linspace": 3, "where": 3} | dict.fromkeys(
    ("array", "asarray", "ones", "ones_like", "zeros", "zeros_like"), 1
)
"""Maximum number of positional arguments of numpy functions; the default is two."""
_KEYWORDS = frozenset({
    "abs_tol", "atol", "axis", "ddof", "default", "equal_nan", "key", "n", "ndigits", "decimals", "dtype", "rel_tol",
    "reverse", "rtol", "start", "strict", "weights",
})  # fmt: skip
_ERRORS = frozenset({
    "ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError", "KeyError", "LookupError",
    "NotImplementedError", "OverflowError", "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError",
})  # fmt: skip
_PLAIN = frozenset({
    ast.Expr, ast.If, ast.For, ast.While, ast.Assign, ast.AugAssign, ast.Return, ast.Pass, ast.Break, ast.Continue,
    ast.Assert, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.List, ast.Tuple, ast.Dict, ast.ListComp,
    ast.DictComp, ast.Subscript, ast.Slice, ast.Starred, ast.NamedExpr,
    ast.Raise, ast.Delete,
})  # fmt: skip
"""Nodes that need no check besides their children."""
_CONSUMERS = frozenset({"all", "any", "sum", "min", "max", "list", "tuple", "set", "sorted", "len", "dict", "next"})
_HIGHER = frozenset({"map", "filter"})
_HISTORIES = {
    "current_history": ("my_actions", "my_payoffs", "opponent_cooperators"),
    "paper_history": ("my_actions", "my_payoffs", "opponent_actions", "opponent_payoffs"),
}


class Function:
    """The rewriting of a function, with its variables and those of enclosing functions."""

    def __init__(self, outer: ClassScope, around: Function | None, node: ast.FunctionDef | ast.Lambda) -> None:
        self._class = outer
        self._self: str = around._self if around is not None else node.args.args[0].arg
        assigned, inner = assigned_names(node)
        if assigned.count(self._self) != (around is None):
            # It would be another object, with attributes shared by all players.
            raise UnfitError(f"line {node.lineno}: another thing is called {self._self}")
        self._functions: set[str] = inner | (around._functions if around is not None else set())
        self._variables: set[str] = {*assigned} | (around._variables if around is not None else set())

    def rewritten(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function, itself changed."""
        arguments = self._arguments(node.args)
        body = [one for statement in node.body for one in self._statement(statement)]
        node.name, node.args, node.body, node.returns = PREFIX + node.name, arguments, body or [no_statement()], None
        vars(node)["type_params"] = []
        return node

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return []
        made = self.visit(node)
        return made if isinstance(made, list) else [made]

    def _arguments(self, arguments: ast.arguments) -> ast.arguments:
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [arguments.vararg] if arguments.vararg else []
        defaults = [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]
        if arguments.kwarg is not None or not all(map(is_constant, defaults)):
            raise UnfitError("arguments of any name, or defaults that can change")
        for one in every:
            one.arg, one.annotation = PREFIX + one.arg, None
        return arguments

    def visit(self, node: ast.AST) -> Any:
        """The replacement for a node, often itself."""
        return _VISITORS[type(node)](self, node)

    def _refused(self, node: ast.AST) -> ast.AST:
        raise UnfitError(f"line {getattr(node, 'lineno', 0)}: {kind_of(node)}")

    def _with_visited(self, node: ast.AST) -> ast.AST:
        for name in FIELDS[type(node)]:
            value = getattr(node, name, None)
            if type(value) is list:
                for place, one in enumerate(value):
                    if one is not None:
                        value[place] = _VISITORS[type(one)](self, one)
            elif value is not None:
                made = _VISITORS[type(value)](self, value)
                if made is not value:
                    setattr(node, name, made)
        return node

    def _visit_functiondef(self, node: ast.FunctionDef) -> ast.AST:
        if node.decorator_list or node.name in self._class.methods:
            raise UnfitError(f"line {node.lineno}: a function of this kind can't be compiled")
        return Function(self._class, self, node).rewritten(node)

    def _visit_nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [PREFIX + name for name in node.names]
        return node

    def _visit_annassign(self, node: ast.AnnAssign) -> ast.AST:
        target = self.visit(node.target)
        if node.value is None:
            return no_statement()
        return ast.Assign([target], self.visit(node.value), **HERE)

    def _visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        if node.is_async:
            raise UnfitError("an asynchronous comprehension")
        return self._with_visited(node)

    def _visit_constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, CONSTANT_TYPES):
            raise UnfitError(f"line {node.lineno}: a constant of type {type(node.value).__name__}")
        return node

    def _visit_set(self, node: ast.Set) -> ast.AST:
        if not all(map(is_constant, node.elts)):
            raise UnfitError(f"line {node.lineno}: a set")
        return call("set", [ast.Tuple(node.elts, LOAD, **HERE)])

    def _visit_compare(self, node: ast.Compare) -> ast.AST:
        for place, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(right, ast.Set):
                if not isinstance(operator, (ast.In, ast.NotIn)):
                    raise UnfitError(f"line {node.lineno}: a set")
                # A tuple of constants can be asked for membership as well, and has instructions.
                if all(map(is_constant, right.elts)):
                    node.comparators[place] = ast.Tuple(right.elts, LOAD, **HERE)
                else:
                    self._with_visited(right)
                continue
            node.comparators[place] = self.visit(right)
        if isinstance(node.left, ast.Set):
            raise UnfitError(f"line {node.lineno}: a set")
        node.left = self.visit(node.left)
        return node

    def _visit_binop(self, node: ast.BinOp) -> ast.AST:
        operator, number, numeric = type(node.op), _is_number(node.right), _is_numeric(node.left)
        if operator in (ast.LShift, ast.MatMult):
            raise UnfitError(f"line {node.lineno}: {kind_of(node.op)}")
        if operator is ast.Mod and (isinstance(node.left, ast.JoinedStr) or _is_text(node.left)):
            raise UnfitError(f"line {node.lineno}: formats a text")
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if operator is ast.Mod and not (number and numeric):
            return call("modulo", [node.left, node.right])
        return call("power", [node.left, node.right]) if operator is ast.Pow and not number else node

    def _visit_augassign(self, node: ast.AugAssign) -> ast.AST:
        if isinstance(node.op, (ast.Mod, ast.Pow, ast.LShift, ast.MatMult)):
            raise UnfitError(f"line {node.lineno}: {kind_of(node.op)} in place")
        return self._with_visited(node)

    def _visit_try(self, node: ast.Try) -> ast.AST:
        if node.finalbody:
            raise UnfitError(f"line {node.lineno}: finally")
        if any(one.type is None for one in node.handlers[:-1]):
            raise UnfitError(f"line {node.lineno}: handlers after the one for all exceptions")
        handlers = [self._handler(one) for one in node.handlers]
        body, other = (
            [made for statement in part for made in self._statement(statement)] for part in (node.body, node.orelse)
        )
        node.body, node.handlers, node.orelse = body or [no_statement()], handlers, other
        return node

    def _handler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type is not None else []
        names = ["Exception" if one == "BaseException" else one for one in map(self._class.meaning, kinds)]
        if not set(names) <= _ERRORS:
            raise UnfitError(f"line {node.lineno}: catches what it can't name")
        types: list[ast.expr] = [*map(name_of, names or ["Exception"])]
        body = [made for statement in node.body for made in self._statement(statement)]
        node.type = types[0] if len(types) == 1 else ast.Tuple(types, LOAD, **HERE)
        node.name = None if node.name is None else PREFIX + node.name
        node.body = body or [no_statement()]
        return node

    def _visit_raise(self, node: ast.Raise) -> ast.AST:
        if node.cause is not None:
            raise UnfitError(f"line {node.lineno}: raise from")
        match node.exc:
            case ast.Call(func=kind, args=arguments, keywords=[]):
                node.exc = ast.Call(self._error(kind), [self.visit(one) for one in arguments], [], **HERE)
            case ast.expr() as kind:
                node.exc = self._error(kind)
        return node

    def _error(self, kind: ast.expr) -> ast.expr:
        name = self._class.meaning(kind)
        if name not in _ERRORS:
            raise UnfitError(f"line {kind.lineno}: raises what it can't name")
        return name_of(name)

    def _visit_name(self, node: ast.Name) -> ast.AST:
        if node.id.startswith("__") or (node.id == self._self and isinstance(node.ctx, ast.Load)):
            raise UnfitError(f"line {node.lineno}: {node.id} as a value")
        if node.id in self._variables:
            if node.id in self._functions:
                raise UnfitError(f"line {node.lineno}: a function as a value")
            node.id = PREFIX + node.id
            return node
        return self._constant(node)

    def _constant(self, node: ast.expr) -> ast.expr:
        """A name of the file or a module's as a value."""
        name = self._class.meaning(node)
        if name in CONSTANTS:
            return library(name)
        raise UnfitError(f"line {node.lineno}: {ast.unparse(node)} as a value")

    def _is_module(self, node: ast.expr) -> bool:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._variables:
            return False
        name = self._class.meaning(node)
        return name in MODULES or name == "Action"

    def _visit_attribute(self, node: ast.Attribute) -> ast.AST:
        if self._is_self(node.value):
            if node.attr in self._class.properties and isinstance(node.ctx, ast.Load):
                return ast.Call(self._own_attribute(node), [], [], **HERE)
            if node.attr in self._class.methods or node.attr in self._class.enums or node.attr.startswith("__"):
                raise UnfitError(f"line {node.lineno}: a method or a class as a value")
            return self._own_attribute(node)
        if self._is_module(node.value):
            return self._constant(node)
        match node:
            case ast.Attribute(value=ast.Attribute() as enumeration, ctx=ast.Load()) if self._is_self(
                enumeration.value
            ) and node.attr in self._class.enums.get(enumeration.attr, ()):
                self._own_attribute(enumeration)
                return node
        if node.attr not in _DATA or not isinstance(node.ctx, ast.Load):
            raise UnfitError(f"line {node.lineno}: the attribute {node.attr}")
        node.value = self.visit(node.value)
        return node

    def _own_attribute(self, node: ast.Attribute) -> ast.Attribute:
        """An attribute of the player, rewritten."""
        node.value, node.attr = self._player(), PREFIX + node.attr
        return node

    def _player(self) -> ast.Name:
        return name_of(PREFIX + self._self)

    def _is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._self

    def _visit_call(self, node: ast.Call) -> ast.AST:
        function = node.func
        match function:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[], keywords=[]), attr="__init__"):
                return self._base_made(node)
            case ast.Attribute(value=value, attr=attribute) if self._is_self(value):
                if attribute not in self._class.methods or attribute.startswith("__"):
                    raise UnfitError(f"line {node.lineno}: calls something other than a method")
                return self._own_call(self._own_attribute(function), node)
            case ast.Name(id=name) if name in self._variables:
                if name not in self._functions:
                    raise UnfitError(f"line {node.lineno}: calls a value")
                return self._own_call(name_of(PREFIX + name), node)
            case ast.Attribute(value=value, attr=attribute) if not self._is_module(value):
                if attribute not in _METHODS:
                    raise UnfitError(f"line {node.lineno}: the method {attribute}")
                if attribute not in _MANY:
                    _check_places(node, 1)
                if attribute == "astype":
                    return self._converted(self.visit(value), node)
                if attribute in _OF_SETS:
                    arguments, keywords = self._passed(node)
                    return call(_OF_SETS[attribute], [self.visit(value), *arguments], keywords)
                function.value = self.visit(value)
                return self._called(node, function)
        return self._library_call(self._class.meaning(node.func), node)

    def _library_call(self, name: str, node: ast.Call) -> ast.AST:
        if name in ("getattr", "hasattr"):
            return self._looked_up(name, node)
        if name == "isinstance":
            return self._is_instance(node)
        if name == "PlayerHistory":
            return self._history_made(node)
        if name == "Action":
            return self._called(node, name_of("action_of"))
        if name == "id" and len(node.args) == 1 and self._is_self(node.args[0]) and not node.keywords:
            return ast.Constant(number_of(self._class.name), **HERE)
        if name.startswith("random.") and name.removeprefix("random.") in (*DRAWS, "seed"):
            self._class.draws = True
            chance = ast.Attribute(self._player(), "chance", LOAD, **HERE)
            if name == "random.seed":
                arguments, keywords = self._passed(node)
                return call("seeded", [chance, *arguments], keywords)
            return self._called(node, ast.Attribute(chance, name.removeprefix("random."), LOAD, **HERE))
        if name not in CALLS:
            raise UnfitError(f"line {node.lineno}: calls {ast.unparse(node.func)}")
        if name.startswith("numpy."):
            _check_places(node, _PLACES.get(name.removeprefix("numpy."), 2))
        function = library(name)
        if name in _HIGHER:
            if len(node.args) < 2 or node.keywords:
                raise UnfitError(f"line {node.lineno}: {name}")
            node.func, node.args = function, [self._callable(node.args[0]), *map(self.visit, node.args[1:])]
            return node
        if name in _CONSUMERS and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            self._with_visited(node.args[0])
            node.func, node.keywords = function, self._passed(node, 1)[1]
            return node
        return self._called(node, function)

    def _called(self, node: ast.Call, function: ast.expr) -> ast.Call:
        """A call of another function with the visited arguments."""
        node.func, (node.args, node.keywords) = function, self._passed(node)
        return node

    def _passed(self, node: ast.Call, start: int = 0) -> tuple[list[ast.expr], list[ast.keyword]]:
        keywords = []
        for one in node.keywords:
            if one.arg not in _KEYWORDS:
                raise UnfitError(f"line {node.lineno}: the argument {one.arg}")
            if one.arg == "dtype":
                value: ast.expr = self._type(one.value)
            elif one.arg == "key":
                value = self._callable(one.value)
            else:
                value = self.visit(one.value)
            one.value = value
            keywords.append(one)
        return [self.visit(one) for one in node.args[start:]], keywords

    def _own_call(self, function: ast.expr, node: ast.Call) -> ast.Call:
        if any(one.arg is None for one in node.keywords):
            raise UnfitError(f"line {node.lineno}: arguments of any name")
        for one in node.keywords:
            one.arg, one.value = PREFIX + str(one.arg), self.visit(one.value)
        node.func, node.args = function, [self.visit(one) for one in node.args]
        return node

    def _callable(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Lambda):
            inner = Function(self._class, self, node)
            node.args, node.body = inner._arguments(node.args), inner.visit(node.body)
            return node
        name = self._class.meaning(node)
        root = node.id if isinstance(node, ast.Name) else ""
        if root in self._functions:
            return name_of(PREFIX + root)
        if root in self._variables or name not in CALLS or name in _HIGHER or "numpy" in name:
            raise UnfitError(f"line {node.lineno}: passes a function")
        return library(name)

    def _converted(self, value: ast.expr, node: ast.Call) -> ast.Call:
        if len(node.args) != 1 or node.keywords:
            raise UnfitError(f"line {node.lineno}: astype")
        node.func, node.args = ast.Attribute(value, "astype", LOAD, **HERE), [self._type(node.args[0])]
        return node

    def _type(self, node: ast.expr, *, numeric: bool = True) -> ast.expr:
        name = self._class.meaning(node)
        if name not in (NUMBERS if numeric else TYPES) or (isinstance(node, ast.Name) and node.id in self._variables):
            raise UnfitError(f"line {node.lineno}: an unsupported type")
        return library(name)

    def _is_instance(self, node: ast.Call) -> ast.Call:
        if len(node.args) != 2 or node.keywords:
            raise UnfitError(f"line {node.lineno}: isinstance")
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        types = ast.Tuple([self._type(one, numeric=False) for one in kinds], LOAD, **HERE)
        return call("isinstance", [self.visit(node.args[0]), types])

    def _looked_up(self, function: str, node: ast.Call) -> ast.Call:
        match node.args:
            case [target, ast.Constant(value=str(name)), *default] if not node.keywords and len(default) <= 1:
                own = self._is_self(target)
                known = own or name in _DATA or (function == "hasattr" and name in _METHODS)
                hidden = (*self._class.methods, *self._class.enums)
                if not known or (own and (name in hidden or name.startswith("__"))):
                    raise UnfitError(f"line {node.lineno}: {function} of {name}")
                thing = self._player() if own else self.visit(target)
                key = ast.Constant(PREFIX + name if own else name, **HERE)
                return call(function, [thing, key, *map(self.visit, default)])
        raise UnfitError(f"line {node.lineno}: {function}")

    def _history_made(self, node: ast.Call) -> ast.Call:
        for made, names in _HISTORIES.items():
            left = names[len(node.args) :]
            if len(node.args) <= len(names) and sorted(str(one.arg) for one in node.keywords) == sorted(left):
                for one in node.keywords:
                    one.value = self.visit(one.value)
                return call(made, [*map(self.visit, node.args)], node.keywords)
        raise UnfitError(f"line {node.lineno}: a history of another form")

    def _base_made(self, node: ast.Call) -> ast.Call:
        match node.args, node.keywords:
            case ([description], []) | ([], [ast.keyword(value=description)]):
                function = ast.Attribute(name_of("BaseStrategy"), "__init__", LOAD, **HERE)
                return ast.Call(function, [self._player(), self.visit(description)], [], **HERE)
        raise UnfitError(f"line {node.lineno}: super().__init__")


def _visitor(kind: type[ast.AST]) -> Callable[[Function, Any], Any]:
    other = Function._with_visited if kind in _PLAIN else Function._refused
    found: Callable[[Function, Any], Any] = getattr(Function, f"_visit_{kind.__name__.lower()}", other)
    return found


_VISITORS = {kind: _visitor(kind) for kind in FIELDS}


def _check_places(node: ast.Call, most: int) -> None:
    """Refuse numpy arguments for types and output arrays."""
    if len(node.args) > most or any(isinstance(one, ast.Starred) for one in node.args):
        raise UnfitError(f"line {node.lineno}: {ast.unparse(node.func)} with {len(node.args)} arguments")


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is a small literal number."""
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and abs(node.value) <= 64


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_numeric(node: Any) -> bool:
    """Whether a value can't be a text."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv))
