"""Instructions for calls: the strategy's methods and functions are inlined, or routines; others have instructions."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from labmates_fast import instructions as ops
from labmates_fast.lowering.expressions import has_effects
from labmates_fast.lowering.loops import NAMED, Loops, generator_of, names_in
from labmates_fast.lowering.program import (
    RecursiveError,
    Register,
    Scope,
    UnloweredError,
)

_METHODS = {
    "sum": ops.NUMPY_SUM, "mean": ops.NUMPY_MEAN, "max": ops.NUMPY_MAX, "min": ops.NUMPY_MIN, "all": ops.NUMPY_ALL,
    "any": ops.NUMPY_ANY, "std": ops.NUMPY_STD, "var": ops.NUMPY_VAR, "tolist": ops.TO_LIST,
}  # fmt: skip
_KINDS = {"bool": ops.AS_BOOLS, "numpy_bool_": ops.AS_BOOLS, "int": ops.AS_INTS, "numpy_int64": ops.AS_INTS,
          "numpy_int_": ops.AS_INTS, "float": ops.AS_FLOATS, "numpy_float64": ops.AS_FLOATS}  # fmt: skip
_INSTANCES = {
    "bool": (ops.BOOL,), "int": (ops.BOOL, ops.INT), "float": (ops.FLOAT, ops.NUMPY_FLOAT),
    "numpy_bool_": (ops.NUMPY_BOOL,), "numpy_int64": (ops.NUMPY_INT,), "numpy_integer": (ops.NUMPY_INT,),
    "numpy_float64": (ops.NUMPY_FLOAT,), "numpy_floating": (ops.NUMPY_FLOAT,),
    "numpy_ndarray": (ops.BOOLS, ops.INTS, ops.FLOATS),
}  # fmt: skip
_MOST_INLINED = 8
_LISTABLE = sum(1 << kind for kind in (ops.NUMPY_BOOL, ops.NUMPY_INT, ops.NUMPY_FLOAT, ops.BOOLS, ops.INTS, ops.FLOATS))


class Calls(Loops):
    """A program to which calls are added."""

    @abstractmethod
    def _block(self, body: Sequence[ast.stmt]) -> None:
        """Add statements."""

    def _add_call(self, node: ast.Call, into: Register | None = None) -> Register:
        match node:
            case ast.Call(func=ast.Attribute(value=thing, attr=name)) if self._is_self(thing):
                return self._own_call(self._methods[name], [thing, *node.args], node.keywords, into)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=thing, attr="chance"), attr=name)) if (
                self._is_self(thing)
            ):
                return self._drawn(name, node)
            case ast.Call(func=ast.Attribute(value=value, attr="astype"), args=[ast.Name(id=kind)], keywords=[]):
                return self._converted(kind, value, into)
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=[], keywords=[]) if name in _METHODS:
                array = self._expression(value)
                self._made(None, ops.ATTRIBUTE, array, ops.SIZE)  # lists have no such methods, nor a size
                return self._made(into, ops.CALL, array, _METHODS[name])
            case ast.Call(func=ast.Attribute(value=items, attr="pop"), args=[] | [ast.Constant(int(0))], keywords=[]):
                return self._made(None, ops.POP, self._expression(items), len(node.args))
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[key, *default], keywords=[]):
                return self._looked_up_key(value, key, default, into)
            case ast.Call(func=ast.Attribute(value=value, attr="setdefault"), args=[key, default], keywords=[]):
                return self._set_default(value, key, default)
            case ast.Call(func=ast.Attribute(attr="keys" | "values" | "items"), args=[], keywords=[]):
                return self._gone_through(node, during_loop=False)
            case ast.Call(func=ast.Name(id=name)):
                scope = self._scope.find(name)
                if scope is not None:
                    return self._own_call(scope.functions[name], node.args, node.keywords, into)
                return self._library_call(name, node, into)
        raise UnloweredError(f"calls {ast.unparse(node.func):.40}")

    def _own_call(
        self,
        function: ast.FunctionDef,
        arguments: Sequence[ast.expr],
        keywords: Sequence[ast.keyword],
        into: Register | None,
    ) -> Register:
        names = plain_arguments(function)
        given: dict[str, ast.expr] = dict(zip(names[::-1], function.args.defaults[::-1], strict=False))
        given |= dict(zip(names, arguments, strict=False)) | {str(one.arg): one.value for one in keywords}
        named = [str(one.arg) for one in keywords]
        if len(arguments) > len(names) or given.keys() != {*names} or not {*named} <= {*names[len(arguments) :]}:
            raise UnloweredError("other arguments than a function has")
        if any(has_effects(one.value) for one in keywords) and sorted(named, key=names.index) != named:
            raise UnloweredError("arguments in another order")
        player = names[0] if arguments and self._is_self(arguments[0]) else None
        passed = names[player is not None :]
        if function.name in self._recursive:
            return self._call_routine(function, player, passed, [given[name] for name in passed], into)
        values = [self._put(self._new(), given[name]) for name in passed]
        result = self._new() if into is None else into
        with self._within(function, player, dict(zip(passed, values, strict=True)), result):
            if not isinstance(function.body[-1], ast.Return):
                self._emit(ops.MOVE, result, self._constant(None))
            self._patch(self._scope.ends)
        return result

    @contextmanager
    def _within(
        self, function: ast.FunctionDef, player: str | None, variables: Mapping[str, Register], result: Register | None
    ) -> Iterator[None]:
        """A context in which the body of a function is added; `player` is the player's name if it is a method."""
        if function.name in self._inlined:
            raise RecursiveError(function.name)
        if len(self._inlined) > _MOST_INLINED:
            raise UnloweredError("calls nested too deep")
        outer, own, loops = self._scope, self._self, self._loops
        self._scope = Scope(self._scope_around(function, player), result)
        self._scope.variables |= variables
        self._self = own if player is None else player
        self._inlined.append(function.name)
        self._declare(function)
        self._loops = []
        self._block(function.body)
        if isinstance(function.body[-1], ast.Return) and result is not None:
            del self._code[self._scope.ends.pop()]  # its jump to the end
        yield
        self._inlined.pop()
        self._scope, self._self, self._loops = outer, own, loops

    def _scope_around(self, function: ast.FunctionDef, player: str | None) -> Scope | None:
        """What a function sees of who calls it: a method nothing; for one within another function, that function."""
        return self._scope.find(function.name) if player is None else None

    def _call_routine(
        self,
        function: ast.FunctionDef,
        player: str | None,
        passed: Sequence[str],
        arguments: Sequence[ast.expr],
        into: Register | None,
    ) -> Register:
        """A call of a function that calls itself."""
        if len(self._inlined) + self._comprehensions > _MOST_INLINED:
            raise UnloweredError("calls nested too deep")
        key = function, self._scope_around(function, player)
        if key not in self._routines:
            self._add_routine(key, function, player, passed)
        result = self._new() if into is None else into
        first = self._in_a_row(*arguments)  # the last registers in use: those before are kept
        self._patch([self._emit(ops.CALL_ROUTINE, result, first, 0)], self._routines[key])
        return result

    def _add_routine(
        self,
        key: tuple[ast.FunctionDef, Scope | None],
        function: ast.FunctionDef,
        player: str | None,
        passed: Sequence[str],
    ) -> None:
        """The instructions of a routine, which are skipped here; it may use the registers of those who call it."""
        around = self._emit(ops.JUMP, 0)
        inlined, comprehensions, locals_ = self._inlined, self._comprehensions, self._locals
        self._inlined, self._comprehensions = [], 0
        parameters = [self._new() for _ in passed] or [self._new()]
        self._routines[key] = len(self._code)
        self._emit(ops.ENTER, 0, parameters[0], len(passed))
        with self._within(function, player, dict(zip(passed, parameters, strict=False)), None):
            self._emit(ops.RETURN, self._constant(None))
        self._inlined, self._comprehensions, self._locals = inlined, comprehensions, locals_
        self._patch([around])

    def _declare(self, function: ast.FunctionDef) -> None:
        """Assign each variable of a function a separate register."""
        new = {name: self._new() for name in self._assigned[function] if name not in self._scope.variables}
        self._scope.variables |= new
        if new and (self._loops or self._inlined) and (unsure := _read_early(function.body, new)):
            first = min(new[name] for name in unsure)
            self._emit(ops.UNSET_REGISTERS, 0, first, max(new[name] for name in unsure) - first + 1)

    def _converted(self, kind: str, value: ast.expr, into: Register | None) -> Register:
        if kind not in _KINDS:
            raise UnloweredError(f"the type {kind}")
        return self._made(into, ops.CALL, self._expression(value), _KINDS[kind])

    def _library_call(self, name: str, node: ast.Call, into: Register | None) -> Register:
        match name, node.args, node.keywords:
            case ("numpy_array" | "numpy_asarray", [value], [ast.keyword(arg="dtype", value=ast.Name(id=kind))]):
                array = self._made(None, ops.CALL, self._expression(value), ops.NUMPY_ARRAY)
                return self._made(into, ops.CALL, array, _KINDS[kind]) if kind in _KINDS else self._unfit(name)
            case "getattr", [thing, ast.Constant(value=str(attribute)), *default], []:
                return self._looked_up(thing, attribute, default)
            case "hasattr", [thing, ast.Constant(value="tolist")], []:
                return self._made(into, ops.IS_KIND, self._expression(thing), _LISTABLE)
            case "hasattr", [thing, ast.Constant(value=str(attribute))], []:
                return self._is_there(thing, attribute)
            case "isinstance", [value, ast.Tuple(elts=types)], []:
                return self._made(into, ops.IS_KIND, self._expression(value), _kinds_of(types))
            case "float", [ast.Constant(value="inf" | "-inf" as text)], []:
                return self._constant(float(text))
            case "math_comb", [whole, chosen], []:
                return self._made(into, ops.COMBINATIONS, *self._operands(whole, chosen))
            case "math_isclose", [left, right], _:
                return self._is_close(left, right, node.keywords, into)
            case (("max" | "min"), [_, _, *_], []):
                registers = self._operands(*node.args)
                op = ops.MAXIMUM if name == "max" else ops.MINIMUM
                best = registers[0]
                for one in registers[1:-1]:
                    best = self._made(None, op, best, one)
                return self._made(into, op, best, registers[-1])
            case (("max" | "min"), [items], [_, *_]):
                return self._best(name, items, {str(one.arg): one.value for one in node.keywords})
            case (("sum" | "all" | "any" | "list" | "tuple" | "sorted" | "max" | "min"), [value], []) if (
                generator := generator_of(value)
            ):
                return self._consumed(name, generator)
            case "sorted", [value], [ast.keyword(arg="reverse", value=ast.Constant(value=bool(backwards)))]:
                if not backwards:
                    return self._add_call(ast.Call(node.func, node.args, []), into)
                # Equal items keep their order, also backwards.
                listed = self._made(None, ops.CALL, self._gone_through(value, during_loop=False), ops.REVERSED)
                return self._made(into, ops.CALL, self._made(None, ops.CALL, listed, ops.SORTED), ops.REVERSED)
            case "power", [left, right], []:
                return self._binary(ast.Pow, left, right, into)
            case "modulo", [left, right], []:
                return self._binary(ast.Mod, left, right, into)
            case "divmod", [left, right], []:
                left_, right_ = self._operands(left, right)
                pair = [self._new(), self._new()]
                self._emit(ops.FLOOR_DIVIDE, pair[0], left_, right_)
                self._emit(ops.MODULO, pair[1], left_, right_)
                return self._made(into, ops.NEW_TUPLE, pair[0], 2)
            case "numpy_diff", [value], []:
                array = self._made(None, ops.CALL, self._expression(value), ops.NUMPY_ARRAY)
                return self._made(into, ops.SUBTRACT, self._part(array, 1, None), self._part(array, None, -1))
            case "numpy_clip", [value, low, high], []:
                if any(map(has_effects, node.args)):
                    raise UnloweredError("limits that are called")
                return self._made(into, ops.CLIP, self._in_a_row(value, low, high))
            case "numpy_average", [value], [ast.keyword(arg="weights", value=weights)]:
                return self._average(self._operands(value, weights), into)
            case "numpy_arange", [start, stop], []:
                first, last = self._operands(start, stop)
                offsets = self._made(None, ops.CALL, self._made(None, ops.SUBTRACT, last, first), ops.NUMPY_ARANGE)
                return self._made(into, ops.ADD, offsets, first)
            case "list", [], []:
                return self._made(into, ops.NEW_LIST, self._new(), 0)
            case "dict", [], []:
                return self._made(into, ops.NEW_DICT)
            case ("round", [value, digits], []) | ("round", [value], [ast.keyword(arg="ndigits", value=digits)]):
                return self._made(into, ops.ROUND_TO, *self._operands(value, digits))
            case (("list" | "tuple" | "sorted" | "sum" | "max" | "min" | "all" | "any"), [value], []):
                return self._made(into, ops.CALL, self._gone_through(value, during_loop=False), NAMED[name])
            case _, [value], [] if name in NAMED:
                return self._made(into, ops.CALL, self._expression(value), NAMED[name])
        return self._unfit(name)

    def _part(self, array: Register, start: int | None, stop: int | None) -> Register:
        """A slice of an array."""
        bounds = [self._new() for _ in range(3)]
        for bound, value in zip(bounds, (start, stop, None), strict=True):
            self._emit(ops.MOVE, bound, self._constant(value))
        return self._made(None, ops.SLICE, array, bounds[0])

    def _average(self, both: Sequence[Register], into: Register | None) -> Register:
        """A mean with weights, calculated as numpy does."""
        numbers, weighing = (
            self._made(None, ops.CALL, self._made(None, ops.CALL, one, ops.NUMPY_ARRAY), ops.AS_FLOATS) for one in both
        )
        total = self._made(None, ops.CALL, weighing, ops.NUMPY_SUM)
        some = self._emit(ops.JUMP_TRUE, total, 0)
        self._emit(ops.LEAVE)
        self._patch([some])
        weighed = self._made(None, ops.CALL, self._made(None, ops.MULTIPLY, numbers, weighing), ops.NUMPY_SUM)
        return self._made(into, ops.DIVIDE, weighed, total)

    def _is_close(
        self, left: ast.expr, right: ast.expr, keywords: Sequence[ast.keyword], into: Register | None
    ) -> Register:
        tolerances: dict[str | None, ast.expr] = {"rel_tol": ast.Constant(1e-09), "abs_tol": ast.Constant(0.0)}
        tolerances |= {one.arg: one.value for one in keywords}
        if len(tolerances) > 2 or any(has_effects(one.value) for one in keywords):
            raise UnloweredError("other arguments of isclose")
        first = self._in_a_row(left, right, *tolerances.values())
        return self._made(into, ops.IS_CLOSE, first)

    def _unfit(self, name: str) -> Register:
        raise UnloweredError(f"calls {name}")

    def _looked_up_key(
        self, value: ast.expr, key: ast.expr, default: Sequence[ast.expr], into: Register | None
    ) -> Register:
        if len(default) > 1:
            raise UnloweredError("other arguments of get")
        pair = [key, *(default or [ast.Constant(None)])]
        table = self._expression(value)
        if any(map(has_effects, pair)):
            table = self._kept(table)
        return self._made(into, ops.GET, table, self._in_a_row(*pair))

    def _set_default(self, value: ast.expr, key: ast.expr, default: ast.expr) -> Register:
        """The item of a key, which is first put there if there is none."""
        table, name, item = map(self._kept, self._operands(value, key, default))
        table = self._made(None, ops.CALL, table, ops.AS_DICT)
        known = self._emit(ops.JUMP_TRUE, self._made(None, ops.CONTAINS, name, table), 0)
        self._emit(ops.SET_ITEM, table, name, item)
        self._patch([known])
        return self._made(None, ops.ITEM, table, name)

    def _looked_up(self, thing: ast.expr, attribute: str, default: Sequence[ast.expr]) -> Register:
        target = self._lookup(thing, attribute)
        if not default:
            return self._kept(target)
        result = self._new()
        value = self._expression(default[0])
        self._emit(ops.MOVE, result, value)
        absent = self._emit(ops.JUMP_SET, target, 0)
        end = self._emit(ops.JUMP, 0)
        self._patch([absent])
        self._emit(ops.MOVE, result, target)
        self._patch([end])
        return result

    def _lookup(self, thing: ast.expr, attribute: str) -> Register:
        """A register with an attribute that may be unset."""
        if self._is_self(thing):
            return self._attribute(attribute)
        if attribute not in ops.ATTRIBUTES:
            raise UnloweredError(f"the attribute {attribute}")
        number = ops.ATTRIBUTES.index(attribute)
        return self._made(None, ops.ATTRIBUTE_OR_UNSET, self._expression(thing), number)

    def _is_there(self, thing: ast.expr, attribute: str) -> Register:
        target = self._lookup(thing, attribute)
        result = self._kept(self._constant(True))
        present = self._emit(ops.JUMP_SET, target, 0)
        self._emit(ops.MOVE, result, self._constant(False))
        self._patch([present])
        return result

    def _drawn(self, name: str, node: ast.Call) -> Register:
        match name, node.args, node.keywords:
            case "random", [], []:
                return self._made(None, ops.RANDOM)
            case "uniform", [low, high], []:
                start, end = self._operands(low, high)
                width = self._made(None, ops.SUBTRACT, end, start)
                return self._made(
                    None, ops.ADD, start, self._made(None, ops.MULTIPLY, width, self._made(None, ops.RANDOM))
                )
            case "randrange", [count], []:
                return self._made(None, ops.RANDOM_BELOW, self._expression(count))
            case "randint", [low, high], []:
                first, last = map(self._kept, self._operands(low, high))
                width = self._made(None, ops.ADD, self._made(None, ops.SUBTRACT, last, first), self._constant(1))
                return self._made(None, ops.ADD, self._made(None, ops.RANDOM_BELOW, width), first)
            case "choice", [items], []:
                several = self._kept(self._expression(items))
                length = self._made(None, ops.CALL, several, ops.LEN)
                return self._made(None, ops.ITEM, several, self._made(None, ops.RANDOM_BELOW, length))
        raise UnloweredError(f"draws by {name}")


def plain_arguments(function: ast.FunctionDef) -> list[str]:
    """The names of a function's arguments.

    Raises
    ------
    UnloweredError
        If it takes any number of them, or some by name alone.
    """
    arguments = function.args
    if arguments.vararg or arguments.kwonlyargs or arguments.posonlyargs:
        raise UnloweredError("any number of arguments, or arguments by name alone")
    return [one.arg for one in arguments.args]


def _read_early(body: Sequence[ast.stmt], variables: Iterable[str]) -> set[str]:
    """Variables that a body may read before it has assigned them."""
    unsure = set(variables)
    for statement in body:
        assigned, read = _assignment(statement)
        if not unsure or not unsure.isdisjoint(names_in(read)):
            break
        unsure.difference_update(assigned)
    return unsure


def _assignment(statement: ast.stmt) -> tuple[list[str], ast.AST]:
    """The variables that a statement assigns for certain, and what it may read before."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [name], value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            return (names, value) if len(names) == len(targets) else ([], statement)
    return [], statement


def _kinds_of(types: Sequence[ast.expr]) -> int:
    """The kinds of values of these types, in the encoding of `instructions.IS_KIND`."""
    names = [one.id for one in types if isinstance(one, ast.Name)]
    if len(names) != len(types) or not set(names) <= _INSTANCES.keys():
        raise UnloweredError("isinstance of another type")
    return sum(1 << kind for kind in {kind for name in names for kind in _INSTANCES[name]})
