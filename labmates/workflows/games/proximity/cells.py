"""Rows collapsed to cells: what a linear model needs to know of simulations that share every predictor.

All simulations of a model in a game under one condition have the same predictors. So their number, their mean and their
sum of squares around it say all that their values do: 87,475 rows become 1,365 cells, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labmates.stats.arrays import Array

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Cells:
    """Cells of one outcome, sorted by model and game.

    Attributes
    ----------
    count, mean, squares
        Number of rows, their mean, and their sum of squares around it, shape ``(cells,)`` each.
    predictors
        Without intercept, shape ``(cells, predictors)``.
    names
        Of the predictors.
    model, family, block
        Which model, family and model × game each cell belongs to, as indices, shape ``(cells,)``.
    models, families, games
        What the indices stand for; a block is ``model * len(games) + game``.
    """

    count: Array
    mean: Array
    squares: Array
    predictors: Array
    names: tuple[str, ...]
    model: NDArray[np.intp]
    family: NDArray[np.intp]
    block: NDArray[np.intp]
    models: tuple[str, ...]
    families: tuple[str, ...]
    games: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @property
    def repeats(self) -> bool:
        """Whether simulations of the same cell never differ, but for rounding."""
        return float(self.squares.sum()) <= 1e-18 * self.rows

    @property
    def design(self) -> Array:
        """Intercept and predictors, shape ``(cells, 1 + predictors)``."""
        return np.column_stack([np.ones(len(self.count)), self.predictors])


def collapse(frame: pd.DataFrame, outcome: str, names: Sequence[str]) -> Cells:
    """The cells of a frame of one row per simulation.

    Parameters
    ----------
    frame
        Columns ``model``, ``family``, ``game``, ``condition`` (what tells apart cells with equal predictors), the
        outcome and the predictors; no value may be missing.
    names
        The columns of the predictors, constant within a cell.
    """
    keys = ["model", "game", "condition", *names]
    grouped = frame.groupby(keys, sort=True, observed=True)
    cells = grouped[outcome].agg(count="size", mean="mean").reset_index()
    away = frame[outcome] - grouped[outcome].transform("mean")
    cells["squares"] = (away**2).groupby([frame[key] for key in keys], sort=True, observed=True).sum().to_numpy()
    families = frame.drop_duplicates("model").set_index("model")["family"]
    return cells_of(cells.assign(family=cells["model"].map(families)), names)


def cells_of(frame: pd.DataFrame, names: Sequence[str]) -> Cells:
    """The cells of a frame of one row per cell.

    Parameters
    ----------
    frame
        Columns ``model``, ``family``, ``game``, ``count``, ``mean``, ``squares`` and the predictors.
    """
    frame = frame.sort_values(["model", "game"], kind="stable")
    models, model = _indexed(frame["model"])
    games, game = _indexed(frame["game"])
    families, family = _indexed(frame["family"])
    return Cells(
        count=frame["count"].to_numpy(dtype=float),
        mean=frame["mean"].to_numpy(dtype=float),
        squares=frame["squares"].to_numpy(dtype=float),
        predictors=frame[list(names)].to_numpy(dtype=float),
        names=tuple(names),
        model=model,
        family=family,
        block=model * len(games) + game,
        models=models,
        families=families,
        games=games,
    )


def _indexed(values: pd.Series[str]) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    names, at = np.unique(values.to_numpy(dtype=str), return_inverse=True)
    return tuple(map(str, names)), at.astype(np.intp)
