"""The protocol of a machine: what executes strategies in another way than Python does, with the same decisions.

A package brings one by an entry point of the group ``labmates_populations.machines``. Python plays where none is
installed, and whatever the machine does not execute.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

GROUP = "labmates_populations.machines"


@dataclass(frozen=True)
class Terms:
    """What a game is to its players.

    Attributes
    ----------
    actions
        Number of named actions; 0 if players cooperate or defect.
    stocked
        Whether players are told a stock.
    parameters
        Numbers of the description of the game, by attribute.
    """

    n_rounds: int
    actions: int
    stocked: bool
    parameters: Mapping[str, Any]


class NativePlayers(Protocol):
    """The players of a batch that the machine executes.

    Attributes
    ----------
    playing
        Mask of their places in the batch.
    payoffs, counts, actions
        The history of all places, ``(places, rounds)``, written by the engine; an action is 1 for cooperation, or the
        number of a named one, and counts are ``(places, rounds, actions)`` then.
    """

    playing: NDArray[np.bool_]
    payoffs: NDArray[np.float64]
    counts: NDArray[np.int64]
    actions: NDArray[np.int64]

    def decide(self, rounds: int, chosen: NDArray[Any], stocks: NDArray[np.float64] | None) -> None:
        """Let these players decide; players that the machine can't continue are left to Python from now on.

        Parameters
        ----------
        rounds
            The number of played rounds.
        chosen
            Output for the decisions, at these players' places.
        stocks
            What each place is told is in the pool; None in a game without one.
        """


class Programs(Protocol):
    """The programs of all strategies of an engine."""

    def learn(self, programs: Sequence[bytes]) -> None:
        """Add the programs of strategies, numbered after those known before; an empty one is left to Python."""

    def players(
        self,
        terms: Terms,
        strategies: NDArray[np.int64],
        able: NDArray[np.bool_],
        seed: int,
        numbers: NDArray[np.int64],
        seats: int,
    ) -> NativePlayers:
        """The players of a batch.

        Parameters
        ----------
        strategies
            The number of each place's strategy.
        able
            Mask of places that the machine may play.
        seed, numbers
            A player's random numbers derive from the seed, the number of its group and its seat, as
            ``random.Random(derive(seed, number, seat))``.
        seats
            Players per group.
        """


class Machine(Protocol):
    """What an entry point of `GROUP` names."""

    def program(self, node: ast.ClassDef, variables: Mapping[ast.FunctionDef, Sequence[str]]) -> bytes:
        """The program of a strategy; empty if the machine can't execute it.

        Parameters
        ----------
        node
            The class, as rewritten into the subset of Python that strategies may share a process in.
        variables
            The variables assigned in each function, excluding comprehensions and nested functions.
        """

    def load(self) -> Programs | None:
        """Load the machine, with no programs; None if it can't be loaded here."""


@cache
def installed_machine() -> str:
    """The place of the installed machine, ``"module:name"``; empty without any."""
    return next((point.value for point in entry_points(group=GROUP)), "")


def load_machine(place: str) -> Machine | None:
    """The machine at a place; None for an empty one."""
    machine: Machine | None = EntryPoint("machine", place, GROUP).load() if place else None
    return machine
