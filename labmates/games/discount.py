"""Weights of rounds when the future is uncertain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def discount_weights(discount: float, rounds: int) -> NDArray[np.float64]:
    """Weights of rounds when another one follows with probability `discount`; they add up to 1.

    The last round stands for all that would come after it: its weight is ``discount ** (rounds - 1)``.
    """
    weights = (1.0 - discount) * discount ** np.arange(rounds, dtype=float)
    weights[-1] = discount ** (rounds - 1)
    return weights
