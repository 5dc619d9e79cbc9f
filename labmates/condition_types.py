"""The parameters of `labmates.run`; type checkers know them by experiment, from a stub that `make lint` generates."""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType, TypeVar

R = TypeVar("R")
Kind = NewType("Kind", str)
"""The name of an experiment whose parameters no type checker knows."""


def by_experiment(function: Callable[..., R]) -> Callable[..., R]:
    """The same function; in the stub, its parameters depend on the experiment."""
    return function
