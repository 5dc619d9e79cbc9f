"""Lin's concordance, of which kappa with quadratic weights is a case."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""Variances below this count as zero: scores lie in [0, 1]."""


def concordance(a: Floats, b: Floats) -> float:
    """Lin's concordance: like r, but lowered by a shift or a different scale.

    On integer levels it is Cohen's kappa with quadratic weights: both are one minus the mean squared difference over
    the expected one under independence (Fleiss and Cohen 1973; Lin 1989, with moments over n). NaN if nothing varies.
    """
    expected = a.var() + b.var() + (a.mean() - b.mean()) ** 2 if len(a) else 0.0
    return float(2 * np.cov(a, b, bias=True)[0, 1] / expected) if expected > TINY else float("nan")
