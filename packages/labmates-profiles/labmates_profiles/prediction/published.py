"""The coefficients that the cooperative-profiles paper printed (Table 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from labmates_profiles.prediction.design_matrix import CONTROLS, GAME_ORDER
from labmates_profiles.prediction.fit import INTERCEPT, NOISE

COLUMNS: Final = (
    "log(budget)",
    "task: biomarker",
    "task: ecology",
    "task: geospatial",
    "visibility: team",
    "visibility: hidden",
    "team size = 3",
    "theory of mind",
)


@dataclass(frozen=True)
class Coefficients:
    """True coefficients of one outcome, in the order of `GAME_ORDER`, `CONTROLS` and `COLUMNS`."""

    intercept: float
    games: tuple[float, ...]
    controls: tuple[float, ...]
    columns: tuple[float, ...]
    noise: float


PUBLISHED: Final[Mapping[str, Coefficients]] = {
    "accuracy": Coefficients(
        0.290,
        (0.048, 0.000, -0.008, -0.022, -0.006, -0.041),
        (0.002, -0.001, 0.015, -0.013),
        (0.002, -0.080, -0.042, -0.057, 0.0, -0.000, 0.004, -0.001),
        0.05,
    ),
    "quality": Coefficients(
        0.662,
        (0.091, 0.012, -0.146, 0.827, -0.632, 0.321),
        (0.098, -0.122, 0.057, -0.004),
        (0.002, -0.062, -0.041, -0.078, 0.0, 0.011, 0.001, -0.003),
        0.10,
    ),
    "completeness": Coefficients(
        0.729,
        (0.150, -0.004, -0.216, 0.748, -0.578, 0.001),
        (0.122, -0.225, 0.057, 0.021),
        (-0.002, 0.029, 0.034, 0.048, 0.0, 0.023, -0.022, -0.009),
        0.24,
    ),
}
"""Posterior means of the cooperative-profiles paper (Table 7, appendix H). It gives no coefficient for the visibility
of the own team only; 0 is a placeholder."""


def printed(outcome: str) -> dict[str, float]:
    """The paper's coefficients of an outcome by predictor, without visibility of the own team; empty if unpublished."""
    if outcome not in PUBLISHED:
        return {}
    published = PUBLISHED[outcome]
    games, controls = zip(GAME_ORDER, published.games, strict=True), zip(CONTROLS, published.controls, strict=True)
    columns = [pair for pair in zip(COLUMNS, published.columns, strict=True) if pair[0] != "visibility: team"]
    return {INTERCEPT: published.intercept, **dict(games), **dict(controls), **dict(columns), NOISE: published.noise}
