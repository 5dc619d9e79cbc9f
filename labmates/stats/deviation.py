"""Deviation ratings: the gain of always choosing a model, in the strictest equilibrium.

Source: Marris et al. 2025, "Deviation ratings: a general, clone-invariant rating method". Over symmetric joint
distributions of the metagame's profiles, the gain of a model is the gain of a player who always deviates to it,
averaged over seats. The largest gain is minimised; a model with this gain at every optimum has it as its rating; with
these ratings fixed, the largest gain of the rest is minimised, and so on. The result is unique: it depends neither on
the order of models nor on the solver, and copies of a model change nothing.

A symmetric distribution is one over multisets of models, so there is one variable for each multiset and one row for
each model. A row with a positive dual price is tight at every optimum (complementary slackness), and some free row
always has one; so each linear program fixes at least one rating without a further test. Variables are added as needed
(column generation), since few of many thousands are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labmates.errors import LabmatesError
from labmates.stats.metagame import Array, as_metagame

TIE = 1e-6
"""Ratings within this share of the payoffs' range are equal."""

_FEASIBLE = 1e-10  # the strictest tolerance that the solver takes
_ENTERS = 1e-10
_EXCESS_COST, _MOST_EXCESS_COST = 1e4, 1e9
"""Cost of fixed gains above their values: without this slack, rounding can make a program infeasible. The cost rises if
a program uses the slack."""
_NO_EXCESS = 1e-10
_PRICE = 1e-3
"""Minimum positive dual price. The error of a rating is then at most 1e-7 of the range of payoffs, and a later program
decides rows with smaller prices."""


class SolverError(LabmatesError):
    """The linear solver found no optimum."""


def deviation_ratings(payoffs: ArrayLike) -> Array:
    """The deviation rating of each model; higher is better.

    Parameters
    ----------
    payoffs
        A metagame, shape ``(models,) * players``.

    Returns
    -------
    ratings
        In the unit of the payoffs, shape ``(models,)``; at most 0.

    Raises
    ------
    UsageError
        If `payoffs` is no metagame.
    SolverError
        If a linear program could not be solved.
    """
    array = as_metagame(payoffs)
    low, spread = float(array.min()), float(np.ptp(array))
    if spread == 0:
        return np.zeros(len(array))
    ratings = np.asarray(_lexicographic(deviation_gains((array - low) / spread)) * spread)
    return np.where(np.abs(ratings) < 1e-9 * spread, 0.0, ratings)


def ranks(ratings: ArrayLike, *, unit: float = 1.0) -> Array:
    """The rank of each rating, 1 for the highest; ratings within `TIE` share the average rank.

    Parameters
    ----------
    unit
        The range of the payoffs.
    """
    values = np.asarray(ratings, dtype=float)
    order = np.argsort(-values, kind="stable")
    averaged = np.empty(len(values))
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[start]] - values[order[end]] <= TIE * unit:
            end += 1
        averaged[order[start:end]] = (start + 1 + end) / 2
        start = end
    return averaged


def deviation_gains(payoffs: Array) -> Array:
    """Gains from deviating to each model at each multiset of models, averaged over seats.

    Returns
    -------
    gains
        Shape ``(models, multisets)``, multisets in lexicographic order.
    """
    players = payoffs.ndim
    multisets = np.array(list(combinations_with_replacement(range(len(payoffs)), players)), dtype=np.intp)
    gains = np.zeros((len(payoffs), len(multisets)))
    for seat in range(players):
        others = tuple(multisets[:, other] for other in range(players) if other != seat)
        to_any: Array = payoffs[(slice(None), *others)]  # type: ignore[arg-type]
        gains += to_any - to_any[multisets[:, seat], np.arange(len(multisets))]
    return gains / players


def _lexicographic(gains: Array) -> Array:
    """The gains of models at the distribution with the lexicographically smallest sorted gains."""
    ratings = np.full(len(gains), np.nan)
    program = _Program(gains)
    while np.isnan(ratings).any():
        value, prices = program.solve()
        free = np.isnan(ratings)
        tight = free & (prices >= min(_PRICE, prices[free].max()))
        ratings[tight] = value
        program.fix(np.flatnonzero(tight), value)
    return ratings


class _Program:
    """Minimum t over distributions of multisets; free models' gains are at most t, fixed ones' at most their value."""

    def __init__(self, gains: Array) -> None:
        import highspy

        self._gains = gains
        self._models = len(gains)
        self._is_in = np.zeros(gains.shape[1], dtype=bool)
        # Start from the profiles with the smallest largest gains; more of them only slow the solver down.
        best = np.argsort(gains.max(axis=0), kind="stable")[: 2 * self._models]
        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.silent()
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            highs.setOptionValue(option, _FEASIBLE)
        highs.setOptionValue("solver", "simplex")
        highs.setOptionValue("presolve", "off")
        highs.setOptionValue("simplex_scale_strategy", 0)  # gains are scaled already
        highs.setOptionValue("threads", 1)
        infinite = highspy.kHighsInf
        none = np.empty(0, dtype=np.int32)
        for _ in range(self._models):
            highs.addRow(-infinite, 0.0, 0, none, np.empty(0))
        highs.addRow(1.0, 1.0, 0, none, np.empty(0))
        rows = np.arange(self._models, dtype=np.int32)
        highs.addCol(1.0, -infinite, infinite, self._models, rows, np.full(self._models, -1.0))
        highs.addCol(_EXCESS_COST, 0.0, infinite, 0, none, np.empty(0))
        self._excess_cost = _EXCESS_COST
        self._highs = highs
        self._infinite = infinite
        self._add(best)

    def solve(self) -> tuple[float, Array]:
        """The minimum t, and the dual price of each model's row; prices of free rows sum to 1."""
        while True:
            self._run()
            solution = self._highs.getSolution()
            if solution.col_value[1] > _NO_EXCESS and self._excess_cost < _MOST_EXCESS_COST:
                self._excess_cost *= 10
                self._highs.changeColCost(1, self._excess_cost)
                continue
            duals = np.asarray(solution.row_dual)
            prices = -duals[: self._models]
            reduced = prices @ self._gains - duals[self._models]
            reduced[self._is_in] = 0.0
            if reduced.min() >= -_ENTERS:
                return float(solution.col_value[0]), prices
            most = min(max(2 * self._models, 64), int((reduced < -_ENTERS).sum()))
            self._add(np.argpartition(reduced, most - 1)[:most])

    def _run(self) -> None:
        """Find an optimum, from scratch if the warm start fails."""
        from highspy import HighsModelStatus

        self._highs.run()
        if self._highs.getModelStatus() != HighsModelStatus.kOptimal:
            self._highs.clearSolver()
            self._highs.run()
        if (status := self._highs.getModelStatus()) != HighsModelStatus.kOptimal:
            reason = self._highs.modelStatusToString(status)
            raise SolverError(f"a deviation rating could not be computed: {reason}")

    def fix(self, models: NDArray[np.intp], value: float) -> None:
        """Bound the gains of these models by a value."""
        for model in models.tolist():
            self._highs.changeCoeff(model, 0, 0.0)
            self._highs.changeRowBounds(model, -self._infinite, value)
            self._highs.changeCoeff(model, 1, -1.0)

    def _add(self, multisets: NDArray[np.intp] | Sequence[int]) -> None:
        self._is_in[multisets] = True
        number, height = len(multisets), self._models + 1
        values = np.vstack([self._gains[:, multisets], np.ones(number)])
        self._highs.addCols(
            number,
            np.zeros(number),
            np.zeros(number),
            np.full(number, self._infinite),
            number * height,
            np.arange(number, dtype=np.int32) * height,
            np.tile(np.arange(height, dtype=np.int32), number),
            np.ascontiguousarray(values.T).ravel(),
        )
