"""The names of a strategy whose players share a process: nothing of what they reach can hold a note for another player.

Each player executes its strategy's code anew, in globals of its own. Modules are replaced by what `EXPOSED` lists of
them; random numbers come from the player's own streams; and `guards` sends whatever else could lead to shared
objects through the functions below, which refuse it.
"""

from __future__ import annotations

import builtins
import collections
import types
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from labmates.util.seeds import derive
from labmates_populations.engine.kernel import interface
from labmates_populations.engine.kernel.exposed import (
    CHANCES,
    EXPOSED,
    MEMORY,
    OF_STATES,
    OWN,
    PARTS,
    RANDOM,
    SEEDED,
    Annotation,
    Array,
    Base,
    look,
    own,
    some,
    still,
    words,
)
from labmates_populations.engine.kernel.names import chance_of, interfaces, made_chance, module_of, number_of

GUARDS = ("guarded_own", "guarded_look", "guarded_kind", "guarded_call")
"""The names of the functions that rewritten code calls: `own`, `look`, `kind` and `call`."""


def call(called: Any, /, *arguments: Any, **options: Any) -> Any:
    """Call what gets arguments that name memory, or may do so; numpy leaves memory unwritten where it is told to."""
    named = MEMORY & options.keys()
    if named and not _is_made(called) and not (named == {"where"} and _writes(called, arguments, options)):
        raise TypeError(f"the argument {min(named)} can't be passed to this here")
    return called(*arguments, **options)


def _is_made(called: Any) -> bool:
    """Whether it is a function, a method or a class of the strategy's code."""
    made = called.__func__ if type(called) is types.MethodType else called
    return isinstance(made, (type, types.FunctionType)) and made.__module__ == OWN


def _writes(called: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Whether a function of numpy writes all that it returns."""
    if type(called) is np.ufunc:
        given = options.get("out", arguments[called.nin :])
        given = given if type(given) is tuple else (given,)
        return len(given) == called.nout and all(type(one) is np.ndarray for one in given)
    of = called.__self__ if type(called) is types.BuiltinMethodType else None
    return called in _REDUCING or isinstance(of, (np.ndarray, np.generic, np.ufunc))


_REDUCING = [
    EXPOSED["numpy"][name]
    for name in words(
        "all amax amin any copyto max mean min nanmax nanmean nanmin nanprod nanstd nansum nanvar prod std sum var"
    )
]


def _has(thing: Any, name: str) -> bool:
    try:
        look(thing, name)
    except (AttributeError, TypeError):
        return False
    return True


def _change(thing: Any, name: Any, value: Any) -> None:
    if type(name) is not str or name.startswith("__"):
        raise TypeError("such an attribute can't be changed here")
    setattr(own(thing), name, value)


def _delete(thing: Any, name: Any) -> None:
    _change(thing, name, None)
    delattr(thing, name)


def kind(thing: Any) -> Any:
    """The type of a thing, unless instances of it could be made to reach what is shared."""
    found = type(thing)
    if found is np.ndarray:
        return Array
    if found.__module__ == OWN or found in _KINDS or issubclass(found, (np.number, np.bool_, BaseException)):
        return found
    raise TypeError(f"the type {found.__name__} can't be read here")


_KINDS = frozenset({
    bool, bytes, complex, dict, float, frozenset, int, list, range, set, slice, str, tuple, type(None),
    collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque,
    interface.Action, interface.PlayerHistory, interface.ActionHistory, interface.PaperHistory, interface.GameState,
    interface.CommonPoolState, *interface.DESCRIPTIONS.values(),
})  # fmt: skip


def _state(seed: Any) -> np.random.RandomState:
    made = np.random.RandomState(np.random.MT19937(0))  # without one, it takes its first seed from the system
    made.seed(seed)
    return made


class _NumpyChance:
    """A player's ``numpy.random``."""

    __slots__ = ("_seed", "_state")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._state: np.random.RandomState | None = None

    def __getattr__(self, name: str) -> Any:
        if self._state is None:
            self._state = _state(self._seed)
        state = self._state
        if name in SEEDED:
            made: Any = {"RandomState": _state, "seed": state.seed}.get(name) or getattr(np.random, name)
            return still(lambda seed=None: made(state.randint(2**31) if seed is None else seed))
        if name == "Generator":
            return np.random.Generator
        if name == "BitGenerator":
            return Annotation
        if name in OF_STATES:
            return getattr(state, name)
        raise AttributeError(f"numpy.random has no '{name}' here")


_BUILTINS = {
    name: getattr(builtins, name)
    for name in words(
        "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter "
        "float format frozenset hash hex int isinstance issubclass iter len list map max min next object oct ord pow "
        "property range repr reversed round set slice sorted staticmethod str sum super tuple zip NotImplemented "
        "Ellipsis __build_class__"
    )
} | {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
_CHANGED = {
    "delattr": _delete,
    "getattr": look,
    "hasattr": _has,
    "id": lambda thing: number_of(type(thing).__name__),
    "print": lambda *_, **__: None,
    "setattr": _change,
    "type": kind,
}


@cache
def _modules(*, paper: bool) -> Mapping[str, types.ModuleType]:
    """The modules that all players see."""
    # With their usual names, an import of what a module lacks would be looked up in the real module.
    made = {name: module_of(f"{OWN}.{name}", names) for name, names in EXPOSED.items()}
    for name, module in made.items():
        parent, _, part = name.rpartition(".")
        if parent:
            setattr(made[parent], part, module)
    return made | interfaces(Base, paper=paper)


def guarded_names(seed: int, group: int, seat: int, *, paper: bool) -> dict[str, Any]:
    """The globals of a player; the class of the history depends on the strategy's form, `paper` or current."""
    shared, chances = _modules(paper=paper), dict[str, Any]()

    def chance(name: str) -> Any:
        if name not in chances:
            if name == "numpy":
                parts = {part: shared[f"numpy.{part}"] for part in PARTS}
                made: Any = module_of(OWN, EXPOSED[name] | parts | {"random": chance("numpy.random")})
            elif name == "numpy.random":
                made = _NumpyChance(derive(seed, group, seat, "numpy"))
            else:
                stream = chance_of(seed, group, seat)
                made = module_of(OWN, some(stream, CHANCES) | {"Random": still(partial(made_chance, stream))})
            chances[name] = made
        return chances[name]

    def import_(name: str, _globals: Any = None, _locals: Any = None, wanted: Any = (), level: int = 0) -> Any:
        full = name if wanted else name.partition(".")[0]
        if name not in shared and name not in RANDOM:  # numpy's own code, on behalf of the strategy
            return builtins.__import__(name, _globals, _locals, wanted, level)
        return chance(full) if full in RANDOM or full == "numpy" else shared[full]

    known = _BUILTINS | _CHANGED | {"__import__": import_}
    return {"__builtins__": known, "__name__": OWN, **dict(zip(GUARDS, (own, look, kind, call), strict=True))}
