"""Predictors of proximity, and cells: the sufficient statistics of simulations with equal predictors.

All simulations of a model in a game under one condition have the same predictors. Their number, mean and sum of squares
around it are sufficient: 87,475 rows become 1,365 cells without loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from labmates_profiles.arrays import Array
from labmates_profiles.bayes.covariates import PREFIX

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

INTERCEPT: Final = "intercept"
REFERENCE_GAME: Final = "collective-risk"
GAME_PREFIX: Final = "game:"


@dataclass(frozen=True)
class Predictor:
    """What readers are told of a predictor.

    Attributes
    ----------
    label
        Its name in tables.
    category
        The part of the table that it belongs to.
    effect
        What its coefficient is the effect of, as the beginning of a sentence.
    reaction
        What models react to, each in its own way; empty for a predictor that is constant within a model.
    """

    label: str
    category: str
    effect: str = ""
    reaction: str = ""


PREDICTORS: Final = {
    INTERCEPT: Predictor("Intercept", "Model"),
    "size": Predictor("log10(size)", "Model", "Ten times the parameters"),
    "thinking": Predictor("Thinking variant", "Model", "A thinking variant"),
    "cot": Predictor("Chain-of-thought", "Strategy", "Asking for a chain of thought", "CoT"),
    "tom": Predictor("Theory of mind", "Strategy", "Asking for theory of mind", "ToM"),
    "group_size": Predictor("Group size", "Condition", "One more player in a group", "group size"),
    "standard": Predictor("Standard (vs. alternate)", "Prompt", "The standard wording", "wording"),
}
"""All predictors but games and the user's covariates."""


def about_models(names: Iterable[str]) -> list[str]:
    """The predictors that are constant within a model: size, thinking, and the user's covariates."""
    return [name for name in names if name in ("size", "thinking") or name.startswith(PREFIX)]


def label(name: str) -> str:
    """A predictor's label for readers."""
    return PREDICTORS[name].label if name in PREDICTORS else name.removeprefix(GAME_PREFIX).removeprefix(PREFIX)


def game_columns(games: Iterable[str], reference: str) -> list[str]:
    """The indicators of games, in order of name, without the reference."""
    return [GAME_PREFIX + game for game in sorted(set(games)) if game != reference]


def with_predictors(frame: pd.DataFrame, reference: str) -> pd.DataFrame:
    """A frame of rows or cells with the columns of all predictors.

    Parameters
    ----------
    frame
        Columns ``size`` (billions), ``thinking``, ``reasoning`` (none, cot, tom), ``group_size``, ``framing`` and
        ``game``.
    reference
        The reference game.
    """
    import numpy as np

    games = {
        column: (frame["game"] == column.removeprefix(GAME_PREFIX)).astype(float)
        for column in game_columns(frame["game"], reference)
    }
    return frame.assign(
        size=np.log10(frame["size"].astype(float)),
        thinking=frame["thinking"].astype(float),
        cot=(frame["reasoning"] == "cot").astype(float),
        tom=(frame["reasoning"] == "tom").astype(float),
        group_size=frame["group_size"].astype(float),
        standard=(frame["framing"] == "standard").astype(float),
        **games,
    )


@dataclass(frozen=True)
class Cells:
    """Cells of one outcome, sorted by model and game.

    Attributes
    ----------
    frame
        One row per cell, as for `cells_of`.
    count, mean, squares
        Number of rows, their mean, and their sum of squares around it; shape ``(cells,)`` each.
    predictors
        Without intercept, shape ``(cells, predictors)``.
    names
        Of the predictors.
    model, family, block
        Indices of each cell's model, family and model × game, shape ``(cells,)``.
    models, families, games
        The names behind the indices; a block is ``model * len(games) + game``.
    """

    frame: pd.DataFrame
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
        """Number of rows."""
        return int(self.count.sum())

    @property
    def repeats(self) -> bool:
        """Whether simulations of the same cell are all equal, but for rounding."""
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
        Columns ``model``, ``family``, ``game``, ``condition`` (which separates cells with equal predictors), the
        outcome and the predictors; without missing values.
    names
        The columns of the predictors, constant within a cell.
    """
    keys = ["model", "game", "condition", *names]
    grouped = frame.groupby(keys, sort=True, observed=True)
    cells = grouped[outcome].agg(count="size", mean="mean").reset_index()
    deviations = frame[outcome] - grouped[outcome].transform("mean")
    squares = (deviations**2).groupby([frame[key] for key in keys], sort=True, observed=True).sum()
    cells["squares"] = squares.to_numpy()
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
        frame=frame,
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
