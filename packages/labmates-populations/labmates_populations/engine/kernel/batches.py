"""Batches of games to be played, their results, and the errors of strategies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.repeated import RepeatedGame

_MOST_SEATS = 64


@dataclass(frozen=True)
class Batch:
    """Games to be played, one in each group.

    Attributes
    ----------
    groups
        Indices of strategies, ``(groups, players)``; ``(groups, 1)`` with `opponents`.
    seed, numbers
        Players' random numbers derive from the seed, the number of the group and the seat. By default groups are
        numbered from 0.
    cooperate
        The strategies that fall back to cooperation.
    broken
        Strategies that are not run: they fall back in each round.
    opponents
        Fixed moves of the others, ``(groups, rounds, players - 1)``, or fewer rows, which are repeated for the groups
        after them; None if the others are strategies.
    anew
        Do not use cached moves, and use new processes for this batch.
    given
        Executed moves of the first rounds, which replace the players' decisions, ``(groups, rounds, seats)``; one more
        round is played. Failures in these rounds are not counted.
    texts
        The code of each strategy by index, if strategies read each other's.
    """

    game: RepeatedGame
    groups: NDArray[np.int64]
    seed: int
    numbers: NDArray[np.int64] | None = None
    cooperate: frozenset[int] = frozenset()
    broken: frozenset[int] = frozenset()
    opponents: NDArray[Any] | None = None
    anew: bool = False
    given: NDArray[Any] | None = None
    texts: Mapping[int, str] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """The number of played rounds."""
        return self.game.n_rounds if self.given is None else min(self.given.shape[1] + 1, self.game.n_rounds)

    @property
    def group_numbers(self) -> NDArray[np.int64]:
        """The number of each group."""
        return np.arange(len(self.groups)) if self.numbers is None else self.numbers


@dataclass
class Errors:
    """Errors of a strategy in a batch.

    Attributes
    ----------
    round, what
        Of the first error; round -1 is the player's creation.
    count
        Failed decisions, including omitted ones.
    spent
        Players that exceeded a limit of time or memory.
    fatal
        Whether its code ended a process, or could not be interrupted.
    seats
        The same for each seat, as ``{"group seat": {"round", "what", "count"}}``; empty if there are too many.
    """

    round: int
    what: str
    count: int = 0
    spent: int = 0
    fatal: bool = False
    seats: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, seat: str, t: int, what: str, cost: int) -> None:
        """Count `cost` failed decisions of a player."""
        self.count += cost
        self.seats.setdefault(seat, {"round": t, "what": what, "count": 0})["count"] += cost

    def joined(self, later: Errors) -> Errors:
        """The errors of a strategy in two batches."""
        counts = self.count + later.count, self.spent + later.spent, self.fatal or later.fatal
        seats = {**self.seats, **later.seats} if self.seats and later.seats else {}
        return Errors(self.round, self.what, *counts, seats).trimmed()

    def trimmed(self) -> Errors:
        """The same errors, without those of each seat if there are too many."""
        return self if len(self.seats) <= _MOST_SEATS else replace(self, seats={})

    @property
    def stopped(self) -> bool:
        """Whether the strategy exceeded a limit or killed a process, and should not be run again."""
        return self.fatal or self.spent > 0


@dataclass(frozen=True)
class Cost:
    """The number of decisions, without those known from before, and the processor time that players took for them."""

    decisions: int = 0
    seconds: float = 0.0

    @property
    def microseconds(self) -> float:
        """Per decision."""
        return 1e6 * self.seconds / self.decisions if self.decisions else 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.decisions + other.decisions, self.seconds + other.seconds)


def total_costs(results: Iterable[Result]) -> dict[str, Cost]:
    """The costs of several batches."""
    found: dict[str, Cost] = {}
    for result in results:
        found |= {way: found.get(way, Cost()) + cost for way, cost in result.costs.items()}
    return found


@dataclass(frozen=True)
class Result:
    """The result of a batch.

    Attributes
    ----------
    actions
        Of the strategies, ``(groups, rounds, seats)``; True for cooperation, or indices of named actions.
    errors
        By the strategy's index.
    costs
        Of the decisions by each way to play (see `ways`).
    engine_seconds
        Processor time outside of players' processes.
    """

    actions: NDArray[Any]
    errors: Mapping[int, Errors]
    costs: Mapping[str, Cost]
    engine_seconds: float

    @property
    def own_seconds(self) -> float:
        """Processor time of players' processes."""
        return sum(cost.seconds for cost in self.costs.values())

    @property
    def seconds(self) -> float:
        """Processor time in total."""
        return self.engine_seconds + self.own_seconds


def merged(results: Sequence[Result]) -> dict[int, Errors]:
    """The errors of strategies in several batches: the total number, and the first one."""
    found: dict[int, Errors] = {}
    for result in results:
        for index, error in result.errors.items():
            before = found.get(index)
            found[index] = error if before is None else before.joined(error)
    return found


def chunks(batch: Batch, seats: int = 1024) -> Iterator[Batch]:
    """Split a batch into batches of about `seats` players, independent of the number of processes."""
    step, opponents = max(1, seats // batch.groups.shape[1]), batch.opponents
    repeated = 1 if opponents is None or len(opponents) >= len(batch.groups) else len(opponents)
    step = max(step // repeated, 1) * repeated
    for start in range(0, len(batch.groups), step):
        if batch.opponents is not None and repeated == 1:
            opponents = batch.opponents[start : start + step]
        given = None if batch.given is None else batch.given[start : start + step]
        groups, numbers = batch.groups[start : start + step], batch.group_numbers[start : start + step]
        yield replace(batch, groups=groups, opponents=opponents, given=given, numbers=numbers)
