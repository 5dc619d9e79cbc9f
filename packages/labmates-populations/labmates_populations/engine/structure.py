"""Structured populations: graphs of agents, who interact with and imitate their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError

Shape = Literal["well-mixed", "ring", "lattice", "regular", "small-world", "scale-free"]
_REWIRED = 0.1
"""Share of the edges of a small world that are rewired (Watts and Strogatz)."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A graph of agents.

    Attributes
    ----------
    neighbours
        The neighbours of each agent, shape ``(agents, maximum degree)``, padded with -1.
    degrees
        Number of neighbours, shape ``(agents,)``.
    """

    neighbours: NDArray[np.int64]
    degrees: NDArray[np.int64]

    def groups(self, size: int, chance: np.random.Generator) -> NDArray[np.int64]:
        """A group around each agent, ``(agents, size)``: the agent and neighbours drawn without replacement."""
        keys = chance.random(self.neighbours.shape)
        keys[self.neighbours < 0] = 2.0
        drawn = np.argsort(keys, axis=1)[:, : size - 1]
        return np.column_stack([np.arange(len(keys)), np.take_along_axis(self.neighbours, drawn, axis=1)])

    def neighbour(self, agents: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """A random neighbour of each of these agents."""
        places = (chance.random(len(agents)) * self.degrees[agents]).astype(np.int64)
        return np.asarray(self.neighbours[agents, places])


def make_structure(shape: Shape, agents: int, degree: int, group_size: int, seed: int) -> Structure | None:
    """The graph of a population; None for a well-mixed one.

    Parameters
    ----------
    shape
        ``ring``, ``lattice`` (a torus) and ``regular`` (random edges) are regular graphs; ``small-world`` is a ring
        with rewired edges, ``scale-free`` grows by preferential attachment.
    degree
        Neighbours of an agent; on a ``small-world`` or ``scale-free`` graph their mean number.

    Raises
    ------
    UsageError
        If there is no graph of this shape and size, or an agent has too few neighbours for a group.
    """
    if shape == "well-mixed":
        return None
    check_structure(shape, agents, degree, group_size)
    graph = _graph(shape, agents, degree, seed)
    lists = [sorted(graph[agent]) for agent in range(agents)]
    degrees = np.array([len(own) for own in lists])
    neighbours = np.full((agents, int(degrees.max())), -1, dtype=np.int64)
    for agent, own in enumerate(lists):
        neighbours[agent, : len(own)] = own
    return Structure(neighbours, degrees)


def check_structure(shape: Shape, agents: int, degree: int, group_size: int) -> None:
    """Raise the UsageError of `make_structure`, without constructing the graph."""
    if shape == "lattice":
        if degree not in (4, 8):
            raise UsageError(f"degree must be 4 or 8 on a lattice, not {degree}")
        if _rows(agents) < 3:
            raise UsageError(f"population {agents} can't form a lattice of at least 3 rows (try {isqrt(agents) ** 2})")
    elif degree >= agents or degree % 2:
        raise UsageError(f"degree must be even and below the population ({agents}), not {degree}")
    least = degree // 2 if shape in ("small-world", "scale-free") else degree
    if least < group_size - 1:
        raise UsageError(f"degree must be at least {(group_size - 1) * degree // least} for groups of {group_size}")


def _rows(agents: int) -> int:
    """Rows of the lattice: the largest divisor up to the square root."""
    return next(rows for rows in range(isqrt(agents), 0, -1) if agents % rows == 0)


def _graph(shape: Shape, agents: int, degree: int, seed: int) -> Any:
    import networkx as nx

    if shape == "ring":
        return nx.watts_strogatz_graph(agents, degree, 0.0)
    if shape == "regular":
        return nx.random_regular_graph(degree, agents, seed=seed)
    if shape == "small-world":
        return nx.connected_watts_strogatz_graph(agents, degree, _REWIRED, seed=seed)
    if shape == "scale-free":
        each = degree // 2
        return nx.barabasi_albert_graph(agents, each, seed=seed, initial_graph=nx.complete_graph(each + 1))
    rows = _rows(agents)
    product = nx.cartesian_product if degree == 4 else nx.strong_product
    torus = product(nx.cycle_graph(rows), nx.cycle_graph(agents // rows))
    return nx.convert_node_labels_to_integers(torus, ordering="sorted")
