"""Repeated games of n players who cooperate or defect: the games of strategies written as code.

Some share names with behavioural games, but they are separate games (`REPEATED`). Everything is computed for any number
of groups at once. This module imports nothing heavy, since worker processes import it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import mul
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError, unknown_name

Actions = NDArray[Any]
"""Shape ``(groups, players)`` in a round, ``(groups, rounds, players)`` in a game. True where a player cooperates; in
games of named actions (`ByAction`) the index of the action."""
Payoffs = NDArray[np.float64]

MOST_PLAYERS, MOST_ROUNDS = 4096, 1000


@dataclass(frozen=True)
class RepeatedGame(ABC):
    """A game that a group of `n_players` plays for `n_rounds` rounds.

    Parameters
    ----------
    noise
        Probability that a move is executed as its opposite; all players see the executed move.
    continuation
        Probability of another round after each round, up to `n_rounds`. Players do not see the end, so all rounds are
        played, each weighted by the probability that the game reaches it: the exact expectation over all ends.
    sources
        Whether strategies read each other's code (program equilibrium).

    Raises
    ------
    UsageError
        If a parameter is out of bounds.
    """

    n_players: int
    n_rounds: int = 20
    noise: float = field(default=0.0, kw_only=True)
    continuation: float = field(default=1.0, kw_only=True)
    sources: bool = field(default=False, kw_only=True)

    name: ClassVar[str]
    is_binary: ClassVar[bool] = True
    """Whether players cooperate or defect."""

    def __post_init__(self) -> None:
        _check("n_players", self.n_players, 2, MOST_PLAYERS)
        _check("n_rounds", self.n_rounds, 1, MOST_ROUNDS)
        if not 0 <= self.noise <= 0.5:
            raise UsageError(f"noise must be from 0 to 0.5, not {self.noise:g}")
        if not 0 < self.continuation <= 1:
            raise UsageError(f"continuation must be more than 0 and at most 1, not {self.continuation:g}")
        if self.sources not in (0, 1):
            raise UsageError(f"sources must be 0 or 1, not {self.sources:g}")
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Check the parameters of this game."""

    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """Minimum and maximum mean payoff of a player per round."""

    @abstractmethod
    def individual_bounds(self) -> tuple[float, float]:
        """Payoffs per round of an exploited player and of an exploiting one.

        The exploited player always cooperates among players who always defect. The exploiting one is among players who
        always cooperate, and defects from its best round on.
        """

    @abstractmethod
    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """The payoffs of a round; shape ``(groups, players)``."""

    def start(self, groups: int) -> Payoffs | None:
        """The stock of each group before the first round; None in a game without stock."""
        return None

    def next_stock(self, stock: Payoffs | None, payoffs: Payoffs) -> Payoffs | None:
        """The stocks after a round with these payoffs."""
        return stock

    @property
    def labels(self) -> Sequence[str]:
        """The name of each action, by index."""
        return ("D", "C")

    def cooperates(self, actions: Actions) -> NDArray[np.bool_]:
        """Where players cooperate; in games of named actions, where they take the first action."""
        return actions

    def others(self, actions: Actions, own: Actions) -> NDArray[np.int64]:
        """The number of cooperating others for each player of `own`, the first players of `actions`; shape of `own`.

        In games of named actions, the number with each action; shape ``(groups, players, actions)``.
        """
        return np.asarray(actions.sum(axis=1)[:, None] - own)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters specific to this game, by name."""
        shared = {field.name for field in fields(RepeatedGame)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in shared}

    def play(self, actions: Actions) -> Payoffs:
        """The payoffs of whole games; shape ``(groups, rounds, players)``, as `actions`."""
        return self.course(actions)[0]

    def course(self, actions: Actions) -> tuple[Payoffs, list[Payoffs | None]]:
        """The same, and the stocks of all groups before each round and after the last."""
        stocks, paid = [self.start(len(actions))], np.empty(actions.shape)
        for t in range(actions.shape[1]):
            paid[:, t] = self.payoffs(actions[:, t], stocks[-1])
            stocks.append(self.next_stock(stocks[-1], paid[:, t]))
        return paid, stocks

    @cached_property
    def _weights(self) -> Payoffs:
        """The weight of each round; the mean is 1."""
        reached = self.continuation ** np.arange(self.n_rounds)
        return np.asarray(reached / reached.mean())

    def counted(self, actions: Actions) -> Payoffs:
        """The payoffs of `play`, weighted so that their mean is the expectation per round."""
        return np.asarray(self.play(actions) * self._weights[:, None])

    def efficiency(self, welfare: float) -> float:
        """The position of a mean payoff per round between the bounds, 0 to 1; 1 if the bounds are equal."""
        low, high = self.bounds()
        return (welfare - low) / (high - low) if low < high else 1.0


@dataclass(frozen=True)
class PublicGoods(RepeatedGame):
    """Each player gets k·c/n, and 1 more for defecting, where c of n players cooperate.

    Parameters
    ----------
    k
        The multiplier of a contribution; more than 1 and less than the number of players.
    """

    k: float = 2

    name: ClassVar[str] = "public-goods"

    def check(self) -> None:
        """Check that the game is a dilemma."""
        if not 1 < self.k < self.n_players:
            raise UsageError(
                f"k must be more than 1 and less than the number of players ({self.n_players}), not {self.k:g}"
            )

    def bounds(self) -> tuple[float, float]:
        """The payoffs when all defect and when all cooperate."""
        return 1.0, float(self.k)

    def individual_bounds(self) -> tuple[float, float]:
        """The payoffs of a lone cooperator and of a lone defector."""
        share = self.k / self.n_players
        return share, 1 + self.k - share

    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """The share of the public good, and a defector's own contribution."""
        share = self.k * cooperate.sum(axis=1) / self.n_players
        return np.asarray(share[:, None] + ~cooperate)


@dataclass(frozen=True)
class CollectiveRisk(RepeatedGame):
    """If enough players cooperate, all get a benefit; defectors get 1 more in any case.

    Parameters
    ----------
    m
        The threshold: cooperators needed; by default half of the players, at least 2.
    k
        The benefit; more than 0.
    """

    m: int | None = None
    k: float = 2

    name: ClassVar[str] = "collective-risk"

    def __post_init__(self) -> None:
        if self.m is None:
            object.__setattr__(self, "m", max(2, self.n_players // 2))
        super().__post_init__()

    @property
    def threshold(self) -> int:
        """Number of cooperators needed."""
        assert self.m is not None
        return self.m

    def check(self) -> None:
        """Check that the threshold can be reached, and needs at least two players."""
        _check("m", self.threshold, 2, self.n_players)
        if not (math.isfinite(self.k) and self.k > 0):
            raise UsageError(f"k must be more than 0, not {self.k:g}")

    def bounds(self) -> tuple[float, float]:
        """The payoffs with one cooperator too few, and with just enough cooperators.

        With a benefit below the cost of cooperation, full cooperation can be worse, and full defection better.
        """
        defectors = self.n_players - self.threshold
        low, high = (defectors + 1) / self.n_players, self.k + defectors / self.n_players
        return min(low, float(self.k)), max(high, 1.0)

    def individual_bounds(self) -> tuple[float, float]:
        """The payoffs of a lone cooperator, and of a lone defector; with all players needed, of the better action."""
        return 0.0, max(self.k, 1.0) if self.threshold == self.n_players else 1 + self.k

    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """The benefit if the threshold is reached, and 1 for defecting."""
        benefit = self.k * (cooperate.sum(axis=1) >= self.threshold).astype(np.float64)
        return np.asarray(benefit[:, None] + ~cooperate)


@dataclass(frozen=True)
class CommonPool(RepeatedGame):
    """Each player takes S/(2n) of the stock S, twice as much by defecting.

    What is left, S', grows by 2S'(1 - S'/K) up to the capacity K.

    Parameters
    ----------
    capacity
        The maximum and initial stock; by default 4 for each player.
    """

    capacity: int | None = None

    name: ClassVar[str] = "common-pool"

    def __post_init__(self) -> None:
        if self.capacity is None:
            object.__setattr__(self, "capacity", 4 * self.n_players)
        super().__post_init__()

    @property
    def most(self) -> int:
        """Maximum stock."""
        assert self.capacity is not None
        return self.capacity

    def check(self) -> None:
        """Check that the stock suffices for one harvest of all players."""
        _check("capacity", self.most, 2 * self.n_players, 10**9)

    def bounds(self) -> tuple[float, float]:
        """The payoffs of full defection from the start, and of full cooperation until the last round.

        These are the published bounds; a group that leaves stock in the last round can get less.
        """
        each, first, last = self.most / self.n_players, float(self._weights[0]), float(self._weights[-1])
        return each * first / self.n_rounds, 0.5 * each * (self.n_rounds + last) / self.n_rounds

    def individual_bounds(self) -> tuple[float, float]:
        """The payoffs of a lone cooperator, and of a lone defector from its best round on."""
        exploited, exploiting = self._harvests(cooperates=True), self._harvests(cooperates=False)
        # While all cooperate the stock stays full, so the payoffs of defection do not depend on its start.
        each = 0.5 * self.most / self.n_players
        weights, rounds = self._weights.tolist(), self.n_rounds
        totals = [
            each * sum(weights[: rounds - n]) + sum(map(mul, weights[rounds - n :], exploiting))
            for n in range(rounds + 1)
        ]
        return sum(map(mul, weights, exploited)) / rounds, max(totals) / rounds

    def _harvests(self, *, cooperates: bool) -> list[float]:
        """The payoffs of one player in each round while all others do the opposite."""
        stock, taken = float(self.most), []
        others = self.n_players - 1
        for _ in range(self.n_rounds):
            share = 0.5 * stock / self.n_players
            taken.append(share if cooperates else 2 * share)
            left = max(0.0, stock - taken[-1] - others * (2 * share if cooperates else share))
            stock = min(left + 2 * left * (1 - left / self.most), float(self.most))
        return taken

    def start(self, groups: int) -> Payoffs:
        """The stock of each group before the first round."""
        return np.full(groups, float(self.most))

    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """Each player's harvest."""
        assert stock is not None
        share = (0.5 * stock / self.n_players)[:, None]
        return np.asarray(share + share * ~cooperate)

    def next_stock(self, stock: Payoffs | None, payoffs: Payoffs) -> Payoffs:
        """The stock after harvest and growth."""
        assert stock is not None
        left = np.maximum(stock - payoffs.sum(axis=1), 0)  # the sum of shares can exceed the stock by rounding
        return np.asarray(np.minimum(left + 2 * left * (1 - left / self.most), self.most))


@dataclass(frozen=True)
class ByCount(RepeatedGame):
    """A user's game: payoffs by the number of cooperators.

    Parameters
    ----------
    cooperate
        Payoffs of a cooperator when 1, 2, … all players cooperate; by default as in public goods with k = 2.
    defect
        Payoffs of a defector when 0, 1, … all others cooperate.
    """

    cooperate: tuple[float, ...] = ()
    defect: tuple[float, ...] = ()

    name: ClassVar[str] = "by-count"

    def __post_init__(self) -> None:
        shares = [2 * count / self.n_players for count in range(self.n_players + 1)]
        object.__setattr__(self, "cooperate", tuple(map(float, self.cooperate or shares[1:])))
        object.__setattr__(self, "defect", tuple(map(float, self.defect or (1 + share for share in shares[:-1]))))
        super().__post_init__()

    def check(self) -> None:
        """Check that there is a payoff for each count, and that payoffs are finite and not all equal."""
        for name in ("cooperate", "defect"):
            if len(getattr(self, name)) != self.n_players:
                count = len(getattr(self, name))
                raise UsageError(f"n_players must be {count}, the number of payoffs in '{name}', not {self.n_players}")
        payoffs = {*self.cooperate, *self.defect}
        if len(payoffs) == 1 or not all(map(math.isfinite, payoffs)):
            raise UsageError("payoffs must be finite numbers that differ")

    def bounds(self) -> tuple[float, float]:
        """Minimum and maximum welfare over all counts."""
        n = self.n_players
        sums = [
            (count and count * self.cooperate[count - 1]) + (n - count and (n - count) * self.defect[count])
            for count in range(n + 1)
        ]
        return min(sums) / n, max(sums) / n

    def individual_bounds(self) -> tuple[float, float]:
        """The payoffs of a lone cooperator and a lone defector; the bounds of the table if defection does not pay."""
        low, high = self.cooperate[0], self.defect[-1]
        return (low, high) if low < high else (min(*self.cooperate, *self.defect), max(*self.cooperate, *self.defect))

    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """The payoffs in the table."""
        counts = cooperate.sum(axis=1)[:, None]
        # There is no cooperator at count 0, and no defector at full cooperation.
        cooperators, defectors = np.array((0.0, *self.cooperate)), np.array((*self.defect, 0.0))
        return np.asarray(np.where(cooperate, cooperators[counts], defectors[counts]))


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All divisions of `total` into `parts`, in descending order of the first part."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        yield from ((first, *rest) for rest in compositions(total - first, parts - 1))


MOST_ACTIONS, MOST_COMPOSITIONS = 32, 20_000


@dataclass(frozen=True)
class ByAction(RepeatedGame):
    """A user's game with two or more named actions: payoffs by the number of others with each action.

    Parameters
    ----------
    actions
        Their names; the first counts as cooperation.
    table
        For each action, the payoff for each composition of the others (see `compositions`). For two players it is a
        matrix: the player's actions in rows, the other's in columns.
    """

    actions: tuple[str, ...] = ()
    table: tuple[tuple[float, ...], ...] = ()

    name: ClassVar[str] = "by-action"
    is_binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", tuple(self.actions))
        object.__setattr__(self, "table", tuple(tuple(map(float, row)) for row in self.table))
        super().__post_init__()

    def check(self) -> None:
        """Check that there is a payoff for each action and composition, and that payoffs are finite and differ."""
        _check("actions", len(self.actions), 2, MOST_ACTIONS)
        rows = math.comb(self.n_players - 2 + len(self.actions), len(self.actions) - 1)
        _check("the number of compositions of the others", rows, 2, MOST_COMPOSITIONS)  # so that codes fit 64 bits
        if len(self.table) != len(self.actions) or any(len(row) != rows for row in self.table):
            given = len(self.table[0]) if self.table else 0
            raise UsageError(f"n_players must fit the payoffs: {self.n_players} players need {rows} a row, not {given}")
        payoffs = {payoff for row in self.table for payoff in row}
        if len(payoffs) == 1 or not all(map(math.isfinite, payoffs)):
            raise UsageError("payoffs must be finite numbers, and not all the same")

    @property
    def labels(self) -> Sequence[str]:
        """Names of the actions."""
        return self.actions

    def cooperates(self, actions: Actions) -> NDArray[np.bool_]:
        """Where players take the first action."""
        return np.asarray(actions == 0)

    def others(self, actions: Actions, own: Actions) -> NDArray[np.int64]:
        """The number of others with each action, for each player of `own`; shape ``(groups, players, actions)``."""
        numbers = np.arange(len(self.actions))
        taken = (actions[..., None] == numbers).sum(axis=1)
        return np.asarray(taken[:, None] - (own[..., None] == numbers))

    def bounds(self) -> tuple[float, float]:
        """Minimum and maximum welfare over all compositions."""
        place = {others: at for at, others in enumerate(compositions(self.n_players - 1, len(self.actions)))}
        welfare = []
        for counts in compositions(self.n_players, len(self.actions)):
            each = (
                count * self.table[action][place[(*counts[:action], count - 1, *counts[action + 1 :])]]
                for action, count in enumerate(counts)
                if count
            )
            welfare.append(sum(each) / self.n_players)
        return min(welfare), max(welfare)

    def individual_bounds(self) -> tuple[float, float]:
        """Minimum and maximum payoff in the table."""
        payoffs = [payoff for row in self.table for payoff in row]
        return min(payoffs), max(payoffs)

    @cached_property
    def _lookup(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The weight of each action in the code of a composition, the sorted codes, and their places in the table."""
        # The number with the last action follows from the others.
        weights = [*(self.n_players**place for place in range(len(self.actions) - 1)), 0]
        codes = np.array(list(compositions(self.n_players - 1, len(self.actions)))) @ np.array(weights)
        return np.array(weights), np.sort(codes), np.argsort(codes)

    def payoffs(self, cooperate: Actions, stock: Payoffs | None) -> Payoffs:
        """The payoffs in the table."""
        weights, codes, places = self._lookup
        composition = places[np.searchsorted(codes, self.others(cooperate, cooperate) @ weights)]
        return np.asarray(np.array(self.table)[cooperate, composition])


REPEATED: dict[str, type[RepeatedGame]] = {
    game.name: game for game in (PublicGoods, CollectiveRisk, CommonPool, ByCount, ByAction)
}
"""All repeated games by name."""


def make_repeated(
    name: str, n_players: int, n_rounds: int = 20, rules: Mapping[str, Any] | None = None
) -> RepeatedGame:
    """The repeated game called `name`; a `UsageError` if it or a parameter is unknown, or a parameter is invalid."""
    if name not in REPEATED:
        raise unknown_name("repeated game", name, REPEATED)
    kind = REPEATED[name]
    rules = {key: value for key, value in (rules or {}).items() if value is not None}
    known = {field.name for field in fields(kind)} - {"n_players", "n_rounds"}
    unknown = sorted(rules.keys() - known)
    if unknown:
        raise UsageError(f"{name} has no parameter '{unknown[0]}'; it has {', '.join(sorted(known))}")
    return kind(n_players, n_rounds, **rules)


def _check(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UsageError(f"{name} must be a whole number from {low} to {high}, not {value}")
