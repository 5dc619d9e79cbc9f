"""The names of a strategy whose players share a process: nothing of what they reach can hold a note for another player.

Each player executes its strategy's code anew, in globals of its own. Modules are replaced by what `EXPOSED` lists of
them; random numbers come from the player's own streams; and `rewriting.guards` sends whatever else could lead to shared
objects through the functions below, which refuse it.
"""

from __future__ import annotations

import builtins
import collections
import random
import types
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from labmates.util.seeds import derive
from labmates_populations.engine.kernel import interface
from labmates_populations.engine.kernel.exposed import (
    AMBIGUOUS,
    CHANCES,
    EXPOSED,
    OF_STATES,
    OWN,
    RANDOM,
    SAFE,
    Annotation,
    Array,
    Base,
    own,
    some,
    still,
    words,
)
from labmates_populations.engine.kernel.names import interfaces, module_of, number_of

GUARDS = ("guarded_own", "guarded_look", "guarded_kind")
"""The names of the functions that rewritten code calls: `own`, `look` and `kind`."""


def look(thing: Any, name: Any, *default: Any) -> Any:
    """An attribute by a name that also means something elsewhere."""
    if type(name) is not str:
        raise TypeError("an attribute's name is a text")
    if name in SAFE:
        return getattr(thing, name, *default)
    if name.startswith("__"):
        raise TypeError(f"the attribute {name} can't be read here")
    try:
        made = own(thing)
    except AttributeError as error:
        if default and name not in AMBIGUOUS:  # which nothing has
            return default[0]
        raise AttributeError(f"a {type(thing).__name__} has no attribute '{name}' here") from error
    return getattr(made, name, *default)


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


class _Chance(random.Random):
    """A player's generator, or one that it has made, which is never seeded by the operating system."""

    parent: random.Random | None = None

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seed it; without a seed by the player's own random numbers."""
        super().seed(self.parent.getrandbits(64) if a is None and self.parent is not None else a, version)


def _made_generator(parent: random.Random, seed: Any = None) -> random.Random:
    made = _Chance(0)
    made.parent = parent
    made.seed(seed)
    return made


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
        if name in ("default_rng", "RandomState", "seed"):
            made: Any = {"default_rng": np.random.default_rng, "RandomState": _state, "seed": state.seed}[name]
            return still(lambda given=None: made(state.randint(2**31) if given is None else given))
        if name in ("Generator", "BitGenerator"):
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
    return made | interfaces(Base, paper=paper)


def guarded_names(seed: int, group: int, seat: int, *, paper: bool) -> dict[str, Any]:
    """The globals of a player; see `names.own_names`."""
    shared, chances = _modules(paper=paper), dict[str, Any]()

    def chance(name: str) -> Any:
        if name not in chances:
            if name == "numpy":
                parts = {part: shared[f"numpy.{part}"] for part in ("linalg", "typing")}
                lib = module_of(OWN, {"stride_tricks": shared["numpy.lib.stride_tricks"]})
                made: Any = module_of(OWN, EXPOSED[name] | parts | {"random": chance("numpy.random"), "lib": lib})
            elif name == "numpy.random":
                made = _NumpyChance(derive(seed, group, seat, "numpy"))
            else:
                stream = _Chance(derive(seed, group, seat))  # as `player_random`
                stream.parent = stream
                made = module_of(OWN, some(stream, CHANCES) | {"Random": still(partial(_made_generator, stream))})
            chances[name] = made
        return chances[name]

    def import_(name: str, _globals: Any = None, _locals: Any = None, wanted: Any = (), level: int = 0) -> Any:
        full = name if wanted else name.partition(".")[0]
        if name not in shared and name not in RANDOM:  # numpy's own code, on behalf of the strategy
            return builtins.__import__(name, _globals, _locals, wanted, level)
        return chance(full) if full in RANDOM or full == "numpy" else shared[full]

    known = _BUILTINS | _CHANGED | {"__import__": import_}
    return {"__builtins__": known, "__name__": OWN, **dict(zip(GUARDS, (own, look, kind), strict=True))}
