"""Randomness for strategies: each player has a stream of its own, whatever it or anybody else does to the seed.

A strategy's module `random` draws from the stream of the player that decides at the moment; the engine says which that
is. A stream is made when something is drawn from it first.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from labmates.seeds import derive

_DRAWS = (
    "betavariate",
    "choice",
    "choices",
    "expovariate",
    "gammavariate",
    "gauss",
    "getrandbits",
    "getstate",
    "lognormvariate",
    "normalvariate",
    "paretovariate",
    "randbytes",
    "randint",
    "randrange",
    "sample",
    "seed",
    "setstate",
    "shuffle",
    "triangular",
    "uniform",
    "vonmisesvariate",
    "weibullvariate",
)
_NUMPY_DRAWS = (
    "beta",
    "binomial",
    "choice",
    "exponential",
    "geometric",
    "normal",
    "permutation",
    "poisson",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "seed",
    "shuffle",
    "standard_normal",
    "uniform",
)


class Stream:
    """The randomness of one player.

    Parameters
    ----------
    seed, path
        Where it derives from; the same give the same stream.
    """

    __slots__ = ("_made", "_numpy", "_path", "_seed")

    def __init__(self, seed: int, path: tuple[str | int, ...]) -> None:
        self._seed = seed
        self._path = path
        self._made: random.Random | None = None
        self._numpy: np.random.RandomState | None = None

    def python(self) -> random.Random:
        """Return the generator for the module `random`."""
        if self._made is None:
            self._made = random.Random(derive(self._seed, *self._path))
        return self._made

    def numpy(self) -> np.random.RandomState:
        """Return the generator for the module `numpy.random`."""
        if self._numpy is None:
            self._numpy = np.random.RandomState(derive(self._seed, *self._path, "numpy"))
        return self._numpy


class _Nobody(Stream):
    """The stream while no player that may draw decides."""

    __slots__ = ()

    def python(self) -> random.Random:
        """Refuse to draw."""
        raise RuntimeError("random numbers can be drawn in a decision only")

    def numpy(self) -> np.random.RandomState:
        """Refuse to draw."""
        raise RuntimeError("random numbers can be drawn in a decision only")


NOBODY = _Nobody(0, ())


class Chance:
    """Whose stream is drawn from at the moment; there is one of these in a worker."""

    __slots__ = ("stream",)

    def __init__(self) -> None:
        self.stream: Stream = NOBODY


CHANCE = Chance()


def _method(of: Callable[[Stream], Any], name: str) -> Callable[..., Any]:
    def drawing(*arguments: Any, **options: Any) -> Any:
        return getattr(of(CHANCE.stream), name)(*arguments, **options)

    return drawing


def _random() -> float:
    return CHANCE.stream.python().random()


def _random_class(seed: Any = None) -> random.Random:
    return random.Random(CHANCE.stream.python().getrandbits(64) if seed is None else seed)


def _default_rng(seed: Any = None) -> np.random.Generator:
    return np.random.default_rng(CHANCE.stream.numpy().randint(2**31) if seed is None else seed)


def _random_state(seed: Any = None) -> np.random.RandomState:
    return np.random.RandomState(CHANCE.stream.numpy().randint(2**31) if seed is None else seed)


RANDOM: dict[str, Any] = {
    **{name: _method(lambda stream: stream.python(), name) for name in _DRAWS},
    "random": _random,
    "Random": _random_class,
}
"""What a strategy finds in the module `random`."""

NUMPY_RANDOM: dict[str, Any] = {
    **{name: _method(lambda stream: stream.numpy(), name) for name in _NUMPY_DRAWS},
    "default_rng": _default_rng,
    "RandomState": _random_state,
    "Generator": np.random.Generator,
}
"""What a strategy finds in the module `numpy.random`."""
