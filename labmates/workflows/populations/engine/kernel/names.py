"""The names that a strategy finds: builtins and modules, each cut down to what a strategy needs.

This keeps strategies apart from each other within a worker; what confines the worker itself is `confine`.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import enum
import functools
import itertools
import math
import statistics
import typing
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from labmates.workflows.populations.engine.kernel import interface
from labmates.workflows.populations.engine.kernel.chance import NUMPY_RANDOM, RANDOM

_BUILTINS = (
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "Ellipsis", "Exception", "False", "format",
    "FloatingPointError", "GeneratorExit", "IndexError", "KeyError", "LookupError", "MemoryError", "NameError", "None",
    "NotImplemented", "NotImplementedError", "OverflowError", "RecursionError", "RuntimeError", "StopIteration", "True",
    "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError", "__build_class__", "abs", "all", "any",
    "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "frozenset", "hash", "hex", "int", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "oct", "ord", "pow", "property", "range", "repr", "reversed",
    "round", "set", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "zip",
)  # fmt: skip
_NUMPY_LEFT_OUT = {
    # They reach files, memory outside of arrays, settings that all strategies share, or the interpreter.
    "lib", "ctypeslib", "f2py", "testing", "core", "rec", "char", "ma", "strings", "typing", "exceptions", "dtypes",
    "polynomial", "emath", "test", "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "save", "savez",
    "savez_compressed", "savetxt", "frompyfunc", "frombuffer", "getbufsize", "setbufsize", "geterr", "seterr",
    "geterrcall", "seterrcall", "set_printoptions", "get_printoptions", "printoptions", "show_config", "show_runtime",
    "info", "get_include", "nditer", "nested_iters", "from_dlpack", "asfortranarray", "require", "add_newdoc",
    "random", "linalg", "fft", "bool8",
}  # fmt: skip

HIDDEN = frozenset({
    "base", "cr_await", "cr_code", "cr_frame", "ctypes", "data", "dump", "dumps", "f_back", "f_builtins",
    "f_code", "f_globals", "f_locals", "f_trace", "format_map", "func_code", "func_globals", "gi_code",
    "gi_frame", "gi_yieldfrom", "ag_code", "ag_frame", "ag_await", "mro", "obj", "setflags", "tb_frame",
    "tb_lasti", "tb_next", "tofile", "with_traceback",
})  # fmt: skip
"""Attributes that lead out of a strategy, or into what others share, and that no strategy needs."""


class Module:
    """A module as a strategy sees it: these names and nothing else."""

    def __init__(self, name: str, names: Mapping[str, Any]) -> None:
        self.__dict__.update(names)
        self.__dict__["__name__"] = name

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a module can't be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a module can't be changed")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a strategy's module '{self.__dict__['__name__']}' has no '{name}'")


def is_hidden(name: str) -> bool:
    """Whether no strategy may ask for an attribute of this name."""
    return name in HIDDEN or name.startswith("__") or (name.startswith("_") and name.endswith("_") and name != "_")


def _checked(name: object) -> str:
    if type(name) is not str:
        raise TypeError("the name of an attribute must be a string")
    if is_hidden(name):
        raise AttributeError(f"a strategy can't use the attribute '{name}'")
    return name


def _getattr(thing: Any, name: str, *default: Any) -> Any:
    return getattr(thing, _checked(name), *default)


def _setattr(thing: Any, name: str, value: Any) -> None:
    setattr(thing, _checked(name), value)


def _hasattr(thing: Any, name: str) -> bool:
    return hasattr(thing, _checked(name))


def _delattr(thing: Any, name: str) -> None:
    delattr(thing, _checked(name))


class _Type:
    """What `type` is for a strategy: tells the class of a thing, and makes none."""

    def __new__(cls, thing: Any) -> Any:
        found = type(thing)
        return cls if found is type else found

    def __class_getitem__(cls, _item: Any) -> Any:
        return cls


def _id(thing: Any) -> int:
    """Return a number for the kind of a thing: its address would differ from process to process."""
    return zlib.crc32(type(thing).__name__.encode())


def _print(*_values: Any, **_options: Any) -> None:
    """Do nothing: nobody reads what a strategy prints."""


def _public(module: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names}


_SHARED: dict[str, dict[str, Any]] = {
    "math": {name: value for name, value in vars(math).items() if not name.startswith("_")},
    "dataclasses": _public(dataclasses, "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"),
    "enum": _public(enum, "Enum", "Flag", "IntEnum", "IntFlag", "StrEnum", "auto", "unique"),
    "typing": {
        name: getattr(typing, name)
        for name in typing.__all__
        if name not in ("get_type_hints", "ForwardRef", "NamedTuple", "get_overloads", "clear_overloads")
    },
    "collections": _public(collections, "Counter", "OrderedDict", "defaultdict", "deque"),
    "functools": _public(functools, "partial", "reduce"),
    "itertools": {name: value for name, value in vars(itertools).items() if not name.startswith("_")},
    "statistics": {name: getattr(statistics, name) for name in statistics.__all__ if name != "NormalDist"},
    "numpy.typing": _public(npt, "ArrayLike", "DTypeLike", "NDArray"),
    "__future__": {"annotations": None},
}
_ACTIONS = {"Action": interface.Action, "C": interface.C, "D": interface.D}
_GAMES = _public(
    interface, "CollectiveRiskDescription", "CommonPoolDescription", "CommonPoolState", "PublicGoodsDescription"
)
_NUMPY = {
    **{name: getattr(np, name) for name in np.__all__ if name not in _NUMPY_LEFT_OUT and not name.startswith("_")},
    # What was in the memory before may be another player's.
    **{"empty": np.zeros, "empty_like": np.zeros_like},
}

MODULES = frozenset(
    {*_SHARED, "random", "numpy", "numpy.random", "numpy.linalg", "labmates.strategies"}
    | {"emergent_llm", "emergent_llm.players", "emergent_llm.games", "emergent_llm.common"}
)
"""Modules that a strategy may import."""


def _modules(history: type[Any]) -> dict[str, Module]:
    common = {**_ACTIONS, "PlayerHistory": history, **_public(interface, "GameDescription", "GameState")}
    players = {"BaseStrategy": interface.BaseStrategy}
    found = {name: Module(name, names) for name, names in _SHARED.items()}
    linalg = {name: getattr(np.linalg, name) for name in np.linalg.__all__}
    inner = {"random": Module("numpy.random", NUMPY_RANDOM), "linalg": Module("numpy.linalg", linalg)}
    found["random"] = Module("random", RANDOM)
    found["numpy"] = Module("numpy", {**_NUMPY, **inner, "typing": found["numpy.typing"]})
    found |= {f"numpy.{name}": module for name, module in inner.items()}
    found["labmates.strategies"] = Module("labmates.strategies", {**common, **players, **_GAMES})
    published = {"players": players, "games": _GAMES, "common": common}
    parts = {name: Module(f"emergent_llm.{name}", names) for name, names in published.items()}
    found |= {f"emergent_llm.{name}": module for name, module in parts.items()}
    found["emergent_llm"] = Module("emergent_llm", parts)
    found["labmates"] = Module("labmates", {"strategies": found["labmates.strategies"]})
    return found


def _importer(known: dict[str, Module]) -> Any:
    def import_(name: str, _globals: Any = None, _locals: Any = None, wanted: Any = (), level: int = 0) -> Module:
        if level or type(name) is not str or name not in known:
            raise ImportError(f"a strategy can't import '{name}'")
        module = known[name]
        for one in wanted or ():
            if one not in module.__dict__:
                raise ImportError(f"a strategy can't import '{one}' from '{name}'")
        return module if wanted else known[name.partition(".")[0]]

    return import_


_SAFE: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in _BUILTINS},
    **{"getattr": _getattr, "setattr": _setattr, "hasattr": _hasattr, "delattr": _delattr},
    **{"id": _id, "print": _print, "type": _Type},
}
BUILTINS = frozenset(_SAFE)
"""Builtins that a strategy finds."""

_IMPORTERS = {
    True: _importer(_modules(interface.PaperHistory)),
    False: _importer(_modules(interface.PlayerHistory)),
}


def namespace(*, paper: bool) -> dict[str, Any]:
    """Return the globals in which a strategy's code is executed.

    Parameters
    ----------
    paper
        Whether it is of the paper's form, whose history is another one.
    """
    return {"__builtins__": {**_SAFE, "__import__": _IMPORTERS[paper]}, "__name__": "strategy"}
