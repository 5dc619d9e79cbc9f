"""A small roster for simulated studies: families, sizes and thinking vary as in the paper's."""

from __future__ import annotations

from functools import partial

import pandas as pd

from labmates.models.roster import KnownModel
from labmates_profiles.proximity.mixed import CELL, FAMILY, GAME, MODEL
from tests.profiles.simulated_proximity import proximity_design

ROBUST = (FAMILY, MODEL, "cot", "tom", "group_size", GAME, CELL)
"""All components of the robust specification, when the question is of strategies."""


SIZES = (0.6, 1.0, 3.0, 4.0, 8.0, 14.0, 21.0, 32.0, 70.0)
Known = partial(KnownModel, mmlu_pro=None, ifeval=None, source="")
SMALL = [Known(f"model-{at}", f"family-{at % 4}", SIZES[at % len(SIZES)], at % 3 == 0) for at in range(12)]


def small_design(models: int = 12, rows: int = 4000) -> pd.DataFrame:
    return proximity_design(SMALL[:models], rows=rows)
