"""The names available to strategies: those of harmless ones, and the modules that any strategy may import."""

from __future__ import annotations

import builtins
import math
import random
import types
import zlib
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from labmates.util.seeds import derive
from labmates_populations.engine.kernel import interface

_LIBRARY = ("math", "random", "numpy", "numpy.random", "numpy.linalg", "numpy.lib.stride_tricks", "numpy.typing",
            "dataclasses", "enum", "typing", "bisect", "collections", "functools", "heapq", "itertools",
            "statistics", "__future__")  # fmt: skip
_OURS = {"labmates.strategies": "", "emergent_llm": "", "emergent_llm.players": "", "emergent_llm.games": "",
         "emergent_llm.common": ""}  # fmt: skip
MODULES = frozenset({*_LIBRARY, *_OURS})
"""Modules that a strategy may import."""

_MOST_BITS = 100_000


def _power(base: Any, exponent: Any) -> Any:
    """A power; MemoryError for enormous integers."""
    if type(base) is int and type(exponent) is int and base.bit_length() * exponent > _MOST_BITS:
        raise MemoryError
    return base**exponent


def _modulo(left: Any, right: Any) -> Any:
    """A remainder; formatting of texts is an error because it can reveal addresses."""
    if isinstance(left, str) or (isinstance(left, np.ndarray) and left.dtype == object):
        raise TypeError("a text can't be formatted here")
    return left % right


def _sum(values: Any, axis: Any = None, **options: Any) -> Any:
    """The sum, equal to numpy's, but twice as fast for arrays."""
    if type(values) is np.ndarray and not options:
        return np.add.reduce(values, axis)
    return np.sum(values, axis, **options)


def _mean(values: Any, axis: Any = None, **options: Any) -> Any:
    """The mean, equal to numpy's, but twice as fast for the arrays of a history."""
    plain = type(values) is np.ndarray and not options and type(axis) in (int, type(None))
    if plain and values.size and values.dtype in _EXACT:
        return np.add.reduce(values, axis, np.float64) / (values.size if axis is None else values.shape[axis])
    return np.mean(values, axis, **options)


def _hashed(item: Any) -> Any:
    """What has a hash that is no address: a number, a text, or a tuple of these; addresses would order a set."""
    for part in item if type(item) is tuple else ():
        _hashed(part)
    if not isinstance(item, (int, float, str, tuple, np.generic, Enum, type(None))) or item != item:
        raise TypeError("only numbers, texts, None and tuples of them have a hash here, and can be in a set")
    return item


def _set(items: Any = ()) -> set[Any]:
    known = items if type(items) in (dict, set) else [*items]
    for item in known:
        _hashed(item)
    return set(known)


def _added(thing: Any, item: Any) -> Any:
    return thing.add(_hashed(item))


def _updated(thing: Any, *others: Any, **named: Any) -> Any:
    return thing.update(*(map(_hashed, other) if type(thing) is set else other for other in others), **named)


_EXACT = (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.bool_))


def _all_of(module: types.ModuleType, names: str) -> dict[str, Any]:
    return {f"{module.__name__}.{name}": getattr(module, name) for name in names.split()}


CALLS: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in (
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "int", "len", "list", "map",
        "max", "min", "next", "range", "reversed", "round", "slice", "sorted", "sum", "tuple", "zip",
    )},
    **_all_of(math, "acos asin atan atan2 ceil comb copysign cos cosh dist exp expm1 fabs factorial floor fmod fsum "
              "gcd hypot isclose isfinite isinf isnan isqrt log log10 log1p log2 perm pow prod sin sinh sqrt tan tanh "
              "trunc"),
    **_all_of(np, "abs absolute add all allclose any append arange argmax argmin argsort around array array_equal "
              "asarray average bincount bool_ ceil clip concatenate convolve corrcoef count_nonzero cumprod cumsum "
              "diff divide dot equal exp flatnonzero flip float32 float64 floor full greater greater_equal int32 int64 "
              "int_ isclose isfinite isinf isnan less less_equal linspace log log2 logical_and logical_not logical_or "
              "max maximum mean median min minimum multiply not_equal ones percentile power prod ptp quantile "
              "repeat roll round sign sort sqrt square std subtract sum take tile unique var where zeros zeros_like "
              "ones_like"),
    "numpy.mean": _mean,
    "numpy.sum": _sum,
    "hash": lambda item: hash(_hashed(item)),
    "set": _set,
}  # fmt: skip
"""Functions available to a harmless strategy, by full name."""
OF_SETS = {"add": "added", "update": "updated"}
"""Functions in place of the methods of sets that add to them."""
_REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "added": _added,
    "modulo": _modulo,
    "power": _power,
    "updated": _updated,
}
"""Replacements for operators and methods; a strategy can't name them."""
TYPES: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in ("bool", "dict", "float", "int", "list", "str", "tuple")},
    **_all_of(np, "bool_ float32 float64 floating generic int32 int64 int_ integer ndarray number"),
}
"""Types available to a harmless strategy in type checks, beside its actions and histories."""
NUMBERS = frozenset({"bool", "float", "int"} | {f"numpy.{name}" for name in (
    "bool_", "float32", "float64", "int32", "int64", "int_")})  # fmt: skip
"""Types available to it for conversions."""
CONSTANTS: dict[str, Any] = {
    "C": interface.C,
    "D": interface.D,
    **_all_of(math, "e inf nan pi tau"),
    **_all_of(np, "e inf nan pi"),
}
"""Constants available to a harmless strategy."""
DRAWS = frozenset({
    "betavariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randint", "random", "randrange", "sample", "shuffle", "triangular", "uniform",
    "vonmisesvariate", "weibullvariate",
})  # fmt: skip
"""Functions of ``random`` available to a harmless strategy: they draw from the player's own stream."""
ERRORS: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in (
        "ArithmeticError", "AssertionError", "AttributeError", "Exception", "IndexError", "KeyError", "LookupError",
        "NotImplementedError", "OverflowError", "RuntimeError", "TypeError", "ValueError", "ZeroDivisionError",
    )},
    "BaseException": Exception,
}  # fmt: skip
"""Errors that a harmless strategy may raise and catch; that of a limit of time is none of them."""


class Chance(random.Random):
    """A player's generator, or one that it has made, which is never seeded by the operating system."""

    parent: random.Random | None = None

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed it; without a seed by the player's own random numbers."""
        super().seed(self.parent.getrandbits(64) if a is None and self.parent is not None else a, version)


def chance_of(seed: int, group: int, seat: int) -> Chance:
    """The stream of random numbers of a player."""
    stream = Chance(derive(seed, group, seat))
    stream.parent = stream
    return stream


def made_chance(parent: random.Random | None, seed: Any = None) -> Chance:
    """A generator that a player makes."""
    made = Chance(0)
    made.parent = parent
    made.seed(seed)
    return made


class _Drawing:
    """The stream of the harmless player that decides."""

    stream: random.Random | None = None


def drawing(stream: Chance | None, decide: Callable[..., Any], *arguments: Any) -> Any:
    """What a harmless player does with its stream of random numbers."""
    _Drawing.stream = stream
    return decide(*arguments)


def _draws(name: str) -> Callable[..., Any]:
    return lambda *arguments, **options: getattr(_Drawing.stream, name)(*arguments, **options)


def table_name(name: str) -> str:
    """The name, in the globals of harmless strategies, of what has this full name: their code can't have such names."""
    return f"__{name.replace('.', '_')}__"


@cache
def harmless_names() -> dict[str, Any]:
    """The globals that harmless strategies share: builtins, replacements, modules, and all that is in these."""
    builtin = ("getattr", "hasattr", "isinstance", "property", "staticmethod", "super", "type")
    drawn = {f"random.{name}": _draws(name) for name in (*DRAWS, "seed")}
    drawn["random.Random"] = lambda seed=None: made_chance(_Drawing.stream, seed)
    found = {**CALLS, **TYPES, **CONSTANTS, **drawn, "enum.Enum": Enum}
    modules: dict[str, dict[str, Any]] = {}
    for name, value in found.items():
        module, _, short = name.rpartition(".")
        modules.setdefault(module, {})[short] = value
    inside = modules.pop("")
    found |= {name: module_of(name, names) for name, names in modules.items()}
    found["actions"] = module_of("actions", {"C": interface.C, "D": interface.D})
    ours = {"Action": interface.Action, "BaseStrategy": interface.BaseStrategy, "C": interface.C, "D": interface.D,
            "PlayerHistory": interface.PlayerHistory, "PaperHistory": interface.PaperHistory}  # fmt: skip
    return {
        "__builtins__": {"__build_class__": builtins.__build_class__},
        "__name__": "strategy",
        "id": lambda thing: number_of(type(thing).__name__),
        **{name: getattr(builtins, name) for name in builtin},
        **{name: inside[name] for name in inside.keys() - ours.keys()},
        **ERRORS,
        **{table_name(name): value for name, value in {**found, **ours, **_REPLACEMENTS}.items()},
    }


def number_of(name: str) -> int:
    """The number of a thing by the name of its type: its address would differ between processes."""
    return zlib.crc32(name.encode())


def interfaces(base: type, *, paper: bool) -> dict[str, types.ModuleType]:
    """Replacements for our modules and the modules of the published program, with the `base` of strategies."""
    actions = {"Action": interface.Action, "C": interface.C, "D": interface.D}
    history = {
        "PlayerHistory": interface.PaperHistory if paper else interface.PlayerHistory,
        "ActionHistory": interface.ActionHistory,
    }
    states = {"GameDescription": interface.GameDescription, "GameState": interface.GameState}
    common, players = {**actions, **history, **states}, {"BaseStrategy": base}
    games = {kind.__name__: kind for kind in (*interface.DESCRIPTIONS.values(), interface.CommonPoolState)}
    parts: dict[str, dict[str, Any]] = {"players": players, "games": games, "common": common}
    made = {name: module_of(f"emergent_llm.{name}", names) for name, names in parts.items()}
    ours = module_of("labmates.strategies", {**common, **players, **games})
    return {
        **{f"emergent_llm.{name}": module for name, module in made.items()},
        "emergent_llm": module_of("emergent_llm", made),
        "labmates.strategies": ours,
        "labmates": module_of("labmates", {"strategies": ours}),
    }


def module_of(name: str, names: Mapping[str, Any]) -> types.ModuleType:
    """A module with these names."""
    module = types.ModuleType(name)
    vars(module).update(names)
    return module
