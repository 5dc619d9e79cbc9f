"""The conditions of lab runs as columns of a regression."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from labmates.errors import UsageError
from labmates.stats.arrays import Array
from labmates.workflows.games.prediction.data import standardised

_FACTORS: Final[Mapping[str, tuple[str, str]]] = {
    "task": ("task: {}", "anomaly"),
    "difficulty": ("difficulty: {}", "medium"),
    "visibility": ("visibility: {}", "full"),
    "team_size": ("team size = {}", "2"),
}
"""What a column of each value of a factor is called, and the value that others are compared with."""
_NO_PART: Final = frozenset({"budget", "theory_of_mind", *_FACTORS})
_TRUE: Final = ("true", "1", "yes")


def condition_columns(conditions: Sequence[Mapping[str, Any]], notes: list[str]) -> tuple[dict[str, str], Array]:
    """The columns of some observations, each with its factor, and their values, shape (n, columns).

    What they lack is added to notes.

    The logarithm of the budget on the scale of standard deviations, one column for each value of task, difficulty,
    visibility and team size but that which others are compared with, and theory of mind (cooperative-profiles paper,
    section 4.1.2). What is the same for all has no column.

    Raises
    ------
    UsageError
        If a budget is no positive number.
    """
    n = len(conditions)
    names: dict[str, str] = {}
    columns: list[Array] = []
    if all("budget" in one for one in conditions):
        budgets = np.log([_positive(one["budget"]) for one in conditions])
        # Not by the standard deviation: that of equal numbers is a rounding error, and would be blown up to a column.
        if np.ptp(budgets) > 0:
            names, columns = {"log(budget)": "budget"}, [standardised(budgets)[0]]
    elif any("budget" in one for one in conditions):
        notes.append("The budget is not known of all lab runs, so the model does not control for it.")
    for factor, (pattern, usual) in _FACTORS.items():
        values = [str(one.get(factor, "")) for one in conditions]
        there = sorted(set(values))
        if factor == "task" and len(there) == 1 and there[0]:
            notes.append(f"One task only, {there[0]}: results may not hold for other tasks.")
        reference = usual if usual in there else there[0]
        for value in there:
            if value != reference:
                names[pattern.format(value or "not given")] = factor
                columns.append(np.array([one == value for one in values], dtype=float))
    minds = np.array([str(one.get("theory_of_mind", "")).lower() in _TRUE for one in conditions], dtype=float)
    if minds.std() > 0:
        names["theory of mind"] = "theory of mind"
        columns.append(minds)
    others = [name for name in dict.fromkeys(key for one in conditions for key in one) if name not in _NO_PART]
    differ = [name for name in others if len({json.dumps(one.get(name), default=str) for one in conditions}) > 1]
    if differ:
        notes.append(f"Lab runs also differ in {', '.join(differ)}, which the model does not control for.")
    return names, np.column_stack(columns) if columns else np.empty((n, 0))


def _positive(text: object) -> float:
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UsageError(f"the budget of a lab run must be a positive number of dollars, not '{text}'")
    return value
