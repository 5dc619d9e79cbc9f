"""The coefficients that the cooperative-profiles paper printed (Table 7, appendix H)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from labmates_profiles.prediction.design_matrix import CONTROLS, GAME_ORDER
from labmates_profiles.prediction.fit import INTERCEPT, NOISE

_COLUMNS: Final = (
    "log(budget)",
    "task: biomarker",
    "task: ecology",
    "task: geospatial",
    "visibility: hidden",
    "team size = 3",
    "theory of mind",
)
_PREDICTORS: Final = (INTERCEPT, *GAME_ORDER, *CONTROLS, *_COLUMNS, NOISE)
# fmt: off
_PRINTED: Final = {
    "accuracy": (
        0.290, 0.048, 0.000, -0.008, -0.022, -0.006, -0.041, 0.002, -0.001, 0.015, -0.013,
        0.002, -0.080, -0.042, -0.057, -0.000, 0.004, -0.001, 0.05,
    ),
    "quality": (
        0.662, 0.091, 0.012, -0.146, 0.827, -0.632, 0.321, 0.098, -0.122, 0.057, -0.004,
        0.002, -0.062, -0.041, -0.078, 0.011, 0.001, -0.003, 0.10,
    ),
    "completeness": (
        0.729, 0.150, -0.004, -0.216, 0.748, -0.578, 0.001, 0.122, -0.225, 0.057, 0.021,
        -0.002, 0.029, 0.034, 0.048, 0.023, -0.022, -0.009, 0.24,
    ),
}
# fmt: on
PUBLISHED: Final[Mapping[str, Mapping[str, float]]] = {
    outcome: dict(zip(_PREDICTORS, means, strict=True)) for outcome, means in _PRINTED.items()
}
"""Posterior means by outcome and predictor. The paper gives none for the visibility of the own team only."""
