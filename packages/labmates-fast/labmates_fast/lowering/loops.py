"""Instructions for loops, comprehensions, and functions that go through what a generator or `map` gives."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from labmates_fast import instructions as ops
from labmates_fast.lowering.expressions import Expressions, has_effects
from labmates_fast.lowering.program import Register, Scope, UnloweredError

NAMED = {name: number for number, name in enumerate(ops.FUNCTIONS) if name != "reversed"} | {
    "numpy_asarray": ops.NUMPY_ARRAY
}
"""The numbers of functions of one argument, by the names that strategies call them."""
_ITEM = "an item"
"""A variable that no strategy can name."""


class Loops(Expressions):
    """A program to which loops are added."""

    @abstractmethod
    def _add_call(self, node: ast.Call, into: Register | None = None) -> Register:
        """Add a call."""

    def _iterate(self, target: ast.expr, sequence: ast.expr) -> tuple[int, list[int]]:
        """Begin a loop; return the start of its next iteration, and the jumps to its end."""
        match sequence:
            case ast.Call(func=ast.Name("range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
                return self._iterate_range(target, arguments)
            case ast.Call(
                func=ast.Name("reversed"),
                args=[ast.Call(func=ast.Name("range"), args=arguments, keywords=[])],
                keywords=[],
            ) if 1 <= len(arguments) <= 2:
                return self._iterate_range(target, arguments, backwards=True)
            case ast.Call(func=ast.Name("zip"), args=sequences, keywords=[]) if isinstance(target, ast.Tuple):
                return self._iterate_many(target.elts, sequences)
            case ast.Call(func=ast.Attribute(value=value, attr="items"), args=[], keywords=[]):
                return self._iterate_items(target, value)
            case ast.Call(func=ast.Attribute(value=value, attr="values"), args=[], keywords=[]):
                return self._iterate_items(target, value, values=True)
            case ast.Call(func=ast.Name("map"), args=[function, *sequences], keywords=[]):
                return self._iterate_mapped(target, function, sequences)
            case ast.Call(func=ast.Name("enumerate"), args=[inner], keywords=[]):
                if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and is_simple(target)):
                    raise UnloweredError("enumerate")
                number = self._kept(self._constant(0))
                start, ends = self._iterate(target.elts[1], inner)
                self._store(target.elts[0], number)
                self._emit(ops.ADD, number, number, self._constant(1))
                return start, ends
        return self._iterate_many([target], [sequence])

    @cached_property
    def _changes_items(self) -> bool:
        """Whether the strategy changes or removes any list's items."""
        return any(_changes_items(node) for method in self._methods.values() for node in ast.walk(method))

    def _gone_through(self, sequence: ast.expr, *, during_loop: bool) -> Register:
        """A sequence for a loop or a function that goes through it once; a reversed one is a copy."""
        match sequence:
            case ast.Call(func=ast.Name("reversed"), args=[value], keywords=[]):
                fresh = isinstance(value, ast.ListComp) or (
                    isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
                )  # the loop can't name it
                if during_loop and self._changes_items and not fresh:
                    raise UnloweredError("changes what it goes through backwards")
                return self._made(None, ops.CALL, self._expression(value), ops.REVERSED)
            case ast.Call(func=ast.Attribute(value=value, attr="keys"), args=[], keywords=[]):
                return self._made(None, ops.CALL, self._expression(value), ops.AS_DICT)
            case ast.Call(func=ast.Name("range" | "zip" | "enumerate")) if items := generator_of(sequence):
                return self._consumed("list", items)
            case ast.Call(func=ast.Attribute(attr="values" | "items"), args=[], keywords=[]):
                if during_loop and self._changes_items:
                    raise UnloweredError("changes a dict that it goes through beside another sequence")
                return self._consumed("list", _items_of(sequence))
        return self._expression(sequence)

    def _iterate_items(self, target: ast.expr, value: ast.expr, *, values: bool = False) -> tuple[int, list[int]]:
        """A loop over the pairs of keys and items of a dict, or its items alone."""
        table = self._made(None, ops.CALL, self._expression(value), ops.AS_DICT)
        state, number, key, item, pair = (self._new() for _ in range(5))
        self._emit(ops.MOVE, state, table)
        self._emit(ops.MOVE, number, self._constant(0))
        start = len(self._code)
        ends = [self._emit(ops.NEXT, state, key, 0)]
        self._emit(ops.ITEM, item, state, key)
        if not values:
            self._emit(ops.NEW_TUPLE, pair, key, 2)
        self._store(target, item if values else pair)
        return start, ends

    def _iterate_mapped(
        self, target: ast.expr, function: ast.expr, sequences: Sequence[ast.expr]
    ) -> tuple[int, list[int]]:
        """A loop over what a function returns for each item."""
        names = [f"{_ITEM} {place}" for place in range(len(sequences))]
        items = [self._new() for _ in names]
        outer = self._scope
        self._scope = Scope(outer, outer.result)
        self._scope.variables |= dict(zip(names, items, strict=True))
        start, ends = self._iterate_many([ast.Name(name, ast.Store()) for name in names], sequences)
        if isinstance(function, ast.Lambda):
            self._scope.variables |= dict(zip(_parameters(function, len(items)), items, strict=True))
            value = self._expression(function.body)
        else:
            value = self._add_call(ast.Call(function, [ast.Name(name, ast.Load()) for name in names], []))
        self._scope = outer
        self._store(target, value)
        return start, ends

    def _iterate_range(
        self, target: ast.expr, arguments: Sequence[ast.expr], *, backwards: bool = False
    ) -> tuple[int, list[int]]:
        values: list[ast.expr] = [ast.Constant(0), *arguments] if len(arguments) == 1 else [*arguments]
        first, stop, step = (self._new() for _ in range(3))
        for register, value in zip((first, stop, step), [*values, ast.Constant(1)], strict=False):
            self._emit(ops.MOVE, register, self._expression(value))
        self._emit(ops.RANGE, first)
        if backwards:
            last = self._made(None, ops.SUBTRACT, stop, self._constant(1))
            self._emit(ops.SUBTRACT, stop, first, self._constant(1))
            self._emit(ops.MOVE, first, last)
            self._emit(ops.MOVE, step, self._constant(-1))
            self._emit(ops.RANGE, first)
        item = self._new()
        start = len(self._code)
        ends = [self._emit(ops.RANGE_NEXT, first, item, 0)]
        self._store(target, item)
        return start, ends

    def _iterate_many(self, targets: Sequence[ast.expr], sequences: Sequence[ast.expr]) -> tuple[int, list[int]]:
        if len(targets) != len(sequences):
            raise UnloweredError("unpacks another number")
        states = []
        for sequence in sequences:
            state, number = self._new(), self._new()
            self._emit(ops.MOVE, state, self._gone_through(sequence, during_loop=True))
            self._emit(ops.MOVE, number, self._constant(0))
            states.append(state)
        items = [self._new() for _ in targets]
        start = len(self._code)
        ends = [self._emit(ops.NEXT, state, item, 0) for state, item in zip(states, items, strict=True)]
        for target, item in zip(targets, items, strict=True):
            self._store(target, item)
        return start, ends

    def _add_listcomp(self, node: ast.ListComp, into: Register | None = None) -> Register:
        target = self._made(None, ops.NEW_LIST, self._new(), 0)
        self._generate(node.generators, lambda: self._emit(ops.APPEND, target, self._expression(node.elt)))
        return target

    def _add_dictcomp(self, node: ast.DictComp, into: Register | None = None) -> Register:
        target = self._made(None, ops.NEW_DICT)
        self._generate(node.generators, lambda: self._emit(ops.SET_ITEM, target, *self._operands(node.key, node.value)))
        return target

    def _generate(self, generators: Sequence[ast.comprehension], each: Callable[[], object]) -> None:
        """A loop, or several within each other, with the body `each`."""
        generator, *inner = generators
        own = names_in(generator.target)
        if not is_simple(generator.target) or not set(own).isdisjoint(names_in(generator.iter)):
            raise UnloweredError("a comprehension over what its variables hide")
        outer = self._scope
        self._scope = Scope(outer, outer.result)
        for name in own:
            self._scope.variables[name] = self._new()
        start, ends = self._iterate(generator.target, generator.iter)
        self._comprehensions += 1
        for condition in generator.ifs:
            self._patch(self._condition(condition, jump_if=False), start)
        before = self._locals
        if inner:
            self._generate(inner, each)
        else:
            each()
        self._locals = before
        self._comprehensions -= 1
        self._jump(start)
        self._patch(ends)
        self._scope = outer

    def _consumed(self, name: str, items: ast.GeneratorExp) -> Register:
        """What a function makes of all that a generator gives."""
        if name not in ("sum", "all", "any"):
            made = self._add_listcomp(ast.ListComp(items.elt, items.generators), None)
            return made if name == "list" else self._made(None, ops.CALL, made, NAMED[name])
        total = self._kept(self._constant(0 if name == "sum" else name == "all"))
        if name == "sum":
            self._generate(items.generators, lambda: self._emit(ops.SUM_ADD, total, total, self._expression(items.elt)))
            return total
        jump = ops.JUMP_FALSE if name == "all" else ops.JUMP_TRUE
        early: list[int] = []
        self._generate(items.generators, lambda: early.append(self._emit(jump, self._expression(items.elt), 0)))
        end = self._emit(ops.JUMP, 0)
        self._patch(early)
        self._emit(ops.MOVE, total, self._constant(name != "all"))
        self._patch([end])
        return total

    def _best(self, name: str, items: ast.expr, options: Mapping[str, ast.expr]) -> Register:
        """The first of the greatest (least) items by a key, or what is taken if there is none."""
        if not options.keys() <= {"key", "default"}:
            raise UnloweredError(f"other arguments of {name}")
        if "default" in options and has_effects(options["default"]):
            raise UnloweredError("a default that is drawn before the items")
        default = self._kept(self._expression(options["default"])) if "default" in options else None
        best, most = self._new(), self._new()
        self._emit(ops.UNSET_REGISTERS, 0, best, 2)
        jump = ops.JUMP_UNLESS_COMPARED + (ops.GREATER if name == "max" else ops.LESS) - ops.LESS
        generator = items if isinstance(items, ast.GeneratorExp) else _items_of(items)

        def each() -> None:
            item = self._kept(self._expression(generator.elt))
            value = self._key_of(item, options.get("key"))
            is_set = self._emit(ops.JUMP_SET, most, 0)
            first = self._emit(ops.JUMP, 0)
            self._patch([is_set])
            worse = self._emit(jump, value, most, 0)
            self._patch([first])
            self._emit(ops.MOVE, best, item)
            self._emit(ops.MOVE, most, value)
            self._patch([worse])

        self._generate(generator.generators, each)
        found = self._emit(ops.JUMP_SET, best, 0)
        if default is None:
            self._emit(ops.LEAVE)
        else:
            self._emit(ops.MOVE, best, default)
        self._patch([found])
        return best

    def _key_of(self, item: Register, key: ast.expr | None) -> Register:
        """What a key function makes of an item."""
        if key is None or (isinstance(key, ast.Constant) and key.value is None):
            return item
        outer = self._scope
        self._scope = Scope(outer, outer.result)
        match key:
            case ast.Lambda():
                [name] = _parameters(key, 1)
                self._scope.variables[name] = item
                value = self._expression(key.body)
            case ast.Name():
                self._scope.variables[_ITEM] = item
                value = self._add_call(ast.Call(key, [ast.Name(_ITEM, ast.Load())], []))
            case _:
                raise UnloweredError("a key of another kind")
        self._scope = outer
        return value


def generator_of(node: ast.expr) -> ast.GeneratorExp | None:
    """A generator, also of what `map` and the like give; None if a value is something else."""
    match node:
        case ast.GeneratorExp():
            return node
        case ast.Call(func=ast.Name("range" | "map"), keywords=[]):
            return _items_of(node)
        case ast.Call(func=ast.Name("zip" | "enumerate" as name), args=sequences, keywords=[]) if sequences:
            count = len(sequences) if name == "zip" else 2
            names = [f"{_ITEM} {place}" for place in range(count)]
            pair = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
            both = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
            return ast.GeneratorExp(pair, [ast.comprehension(both, node, [], 0)])
    return None


def _parameters(function: ast.Lambda, count: int) -> list[str]:
    """The names of a lambda's arguments, if there are so many, and nothing else."""
    arguments = function.args
    names = [one.arg for one in arguments.args]
    if len(names) != count or arguments.defaults or arguments.vararg or arguments.kwonlyargs or arguments.posonlyargs:
        raise UnloweredError("other arguments of a lambda")
    return names


def _items_of(sequence: ast.expr) -> ast.GeneratorExp:
    """A generator of the items of a sequence."""
    item = ast.Name(_ITEM, ast.Store())
    return ast.GeneratorExp(ast.Name(_ITEM, ast.Load()), [ast.comprehension(item, sequence, [], 0)])


def names_in(node: ast.AST) -> list[str]:
    """The names of variables in a node, each as often as it occurs."""
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def _changes_items(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(ctx=ast.Store()) | ast.Call(func=ast.Attribute(attr="pop")):
            return True
    return False


def is_simple(target: ast.expr) -> bool:
    """Whether a target of a loop is different variables, so that it does not matter which is assigned first."""
    names = [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
    return len(set(names)) == len(names) and not any(isinstance(one, ast.Subscript) for one in ast.walk(target))
