"""Predictors of proximity to the optimum: names, order and labels of predictors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from labmates.stats.bayes.covariates import PREFIX

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT: Final = "intercept"
SIZE, THINKING, COT, TOM, GROUP_SIZE, STANDARD = "size", "thinking", "cot", "tom", "group_size", "standard"
REFERENCE_GAME: Final = "collective-risk"
GAME_PREFIX: Final = "game:"
LABELS: Final = {
    INTERCEPT: "Intercept",
    SIZE: "log10(size)",
    THINKING: "Thinking variant",
    COT: "Chain-of-thought",
    TOM: "Theory of mind",
    GROUP_SIZE: "Group size",
    STANDARD: "Standard (vs. alternate)",
}
ABOUT_MODELS: Final = (SIZE, THINKING)


def about_models(names: Iterable[str]) -> list[str]:
    """The predictors that are constant within a model: size, thinking, and covariates of the user."""
    return [name for name in names if name in ABOUT_MODELS or name.startswith(PREFIX)]


def label(name: str) -> str:
    """A predictor's label for readers."""
    return LABELS.get(name, name.removeprefix(GAME_PREFIX).removeprefix(PREFIX))


def game_columns(games: Iterable[str], reference: str) -> list[str]:
    """The predictors that say which game it is, in order of name, without the reference."""
    return [GAME_PREFIX + game for game in sorted(set(games)) if game != reference]


def with_predictors(frame: pd.DataFrame, reference: str) -> pd.DataFrame:
    """A frame of rows or cells with the columns of all predictors.

    Parameters
    ----------
    frame
        Columns ``size`` (billions), ``thinking``, ``reasoning`` (none, cot, tom), ``group_size``, ``framing`` and
        ``game``.
    reference
        The game that others are compared with.
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
