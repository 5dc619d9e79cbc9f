"""Randomness of a strategy with its own process, derived from the player's seed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from labmates.util.seeds import derive


def player_random(seed: int, group: int, seat: int) -> random.Random:
    """A player's generator for the module ``random``."""
    return random.Random(derive(seed, group, seat))


class _Random(random.Random):
    """A generator that is never seeded by the operating system."""

    def __new__(cls, *_: Any) -> _Random:
        return super().__new__(cls, 0)  # type: ignore[call-arg]

    def seed(self, a: Any = None, version: int = 2) -> None:
        super().seed(random.getrandbits(64) if a is None else a, version)


def seed_all(seed: int, group: int, seat: int) -> None:
    """Seed ``random`` and ``numpy.random`` for one player, and all later generators without a seed."""
    random.setstate(player_random(seed, group, seat).getstate())
    python_seed = random.seed
    random.seed = lambda a=None, version=2: python_seed(random.getrandbits(64) if a is None else a, version)
    random.Random = _Random  # type: ignore[misc, assignment]
    np.random.seed(derive(seed, group, seat, "numpy"))
    made = {name: getattr(np.random, name) for name in ("default_rng", "seed")}

    def with_seed(name: str) -> Any:
        return lambda given=None: made[name](np.random.randint(2**31) if given is None else given)

    class State(np.random.RandomState):
        def __init__(self, seed: Any = None) -> None:
            super().__init__(np.random.MT19937(0))  # without one, it takes its first seed from the system
            self.seed(np.random.randint(2**31) if seed is None else seed)

    vars(np.random).update({"RandomState": State, **{name: with_seed(name) for name in made}})
