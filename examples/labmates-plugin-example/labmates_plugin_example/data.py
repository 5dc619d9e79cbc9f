"""The data of the task ``inhibitors``: an enzyme, compounds that may slow it down, and the readings of many wells.

Without a compound the enzyme follows Michaelis and Menten: rate = vmax · s / (km + s). At a concentration i, an
inhibitor with the constant ki multiplies by ``1 + i / ki`` the km (competitive), the s in the sum (uncompetitive), or
both (noncompetitive).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from labmates.tasks.base import Difficulty
from labmates.tasks.data_errors import blank, repeat_rows
from labmates.tasks.noise import Floats, random_for

Mechanism = Literal["competitive", "uncompetitive", "noncompetitive"]
MECHANISMS: tuple[Mechanism, ...] = ("competitive", "uncompetitive", "noncompetitive")

SUBSTRATE = (2, 5, 10, 20, 40, 80, 160, 320, 640, 1280)
INHIBITOR = (0, 5, 20, 80)
REPLICATES = 4


class Level(NamedTuple):
    """What makes a data set easy or hard.

    Attributes
    ----------
    compounds, inactive
        How many compounds are tested, and how many of them do nothing.
    noise
        Relative error of a reading.
    missing, bubbles, repeats
        Shares: of empty readings, of wells with a bubble (they read far too high), and of repeated rows.
    rescaled
        How many plates were read in nanomolar instead of micromolar per minute.
    """

    compounds: int
    inactive: int
    noise: float
    missing: float
    bubbles: float
    repeats: float
    rescaled: int


LEVELS: Mapping[Difficulty, Level] = {
    "easy": Level(8, 2, noise=0.03, missing=0.01, bubbles=0.005, repeats=0.01, rescaled=0),
    "medium": Level(10, 3, noise=0.08, missing=0.03, bubbles=0.02, repeats=0.02, rescaled=2),
    "hard": Level(12, 4, noise=0.15, missing=0.08, bubbles=0.04, repeats=0.03, rescaled=4),
}


class Compound(NamedTuple):
    """One compound; `mechanism` is None and `ki` (micromolar) is infinite if it does nothing."""

    name: str
    mechanism: Mechanism | None
    ki: float


class Assay(NamedTuple):
    """One enzyme with its constants (micromolar per minute, micromolar) and the compounds that it is tested with."""

    vmax: float
    km: float
    compounds: tuple[Compound, ...]


def draw_assay(task: str, seed: int, difficulty: Difficulty, level: Level) -> Assay:
    """Return the enzyme and the compounds of one data set."""
    rng = random_for(task, seed, difficulty, "assay")
    vmax, km = round(float(rng.uniform(2, 40)), 2), round(float(rng.uniform(10, 150)), 1)
    numbers = sorted(rng.choice(np.arange(100, 1000), level.compounds, replace=False).tolist())
    active = rng.permutation(level.compounds) >= level.inactive
    compounds = []
    for number, acts in zip(numbers, active, strict=True):
        mechanism = MECHANISMS[int(rng.integers(len(MECHANISMS)))]
        ki = round(float(10 ** rng.uniform(0.3, 1.8)), 2)
        compounds.append(Compound(f"KX-{number}", mechanism if acts else None, ki if acts else float("inf")))
    return Assay(vmax, km, tuple(compounds))


def rate(assay: Assay, mechanism: Mechanism | None, slowing: Floats, substrate: Floats) -> Floats:
    """Return the rate at a substrate concentration; `slowing` is ``1 + i / ki``."""
    on_km = slowing if mechanism in ("competitive", "noncompetitive") else 1.0
    on_substrate = slowing if mechanism in ("uncompetitive", "noncompetitive") else 1.0
    return assay.vmax * substrate / (assay.km * on_km + substrate * on_substrate)


def assay_frame(assay: Assay, level: Level, rng: np.random.Generator) -> pd.DataFrame:
    """Return the readings as they were written down: one plate for each compound and replicate."""
    shape = (range(REPLICATES), range(len(assay.compounds)), INHIBITOR, SUBSTRATE)
    replicate, compound, inhibitor, substrate = (part.ravel() for part in np.meshgrid(*shape, indexing="ij"))
    true = np.empty(len(substrate))
    for number, one in enumerate(assay.compounds):
        wells = compound == number
        true[wells] = rate(assay, one.mechanism, 1 + inhibitor[wells] / one.ki, substrate[wells].astype(float))
    read = true * np.exp(level.noise * rng.standard_normal(len(true)))
    read = np.where(rng.random(len(read)) < level.bubbles, read * rng.uniform(3, 6, len(read)), read)
    plate = replicate * len(assay.compounds) + compound
    rescaled = rng.choice(plate.max() + 1, level.rescaled, replace=False)
    read = np.where(np.isin(plate, rescaled), read * 1000, read)
    frame = pd.DataFrame(
        {
            "plate": plate + 1,
            "compound": [assay.compounds[number].name for number in compound],
            "compound_um": inhibitor,
            "substrate_um": substrate,
            "rate_um_per_min": blank(np.round(read, 4), level.missing, rng),
        }
    )
    return repeat_rows(frame, level.repeats, rng)
