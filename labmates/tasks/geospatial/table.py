"""The geospatial task's table: what field crews and laboratories wrote down, with the dirt of real data."""

from __future__ import annotations

import datetime
from typing import Final

import numpy as np
import pandas as pd

from labmates.tasks.data_errors import blank, repeat_rows, respell, slip_decimals, swap_letters
from labmates.tasks.geospatial.data import Covariate, GeospatialLevel, Ground
from labmates.tasks.geospatial.fields import Whole
from labmates.tasks.geospatial.soil import Soil, local_part
from labmates.tasks.noise import Floats

NO_DATA: Final = -9999.0
"""The grid's marker for a missing value."""
PPM_A_PERCENT: Final = 10_000.0
FEET_A_METRE: Final = 3.28084
BATCH: Final = 70
"""Samples that go to a laboratory together."""
A_DAY: Final = 60
"""Samples that the crews take in a day."""
CREWS: Final = ("north", "south", "harbour", "mill")
LABS: Final = ("Korrin", "Velde")
PRIMARY, DUPLICATE = "primary", "duplicate"


def sample_table(ground: Ground, level: GeospatialLevel, soil: Soil, rng: np.random.Generator) -> pd.DataFrame:
    """One row for each sample: who took it, where, what the laboratory found, and what else was measured."""
    rows = _rows(soil, level, rng)
    n, site = len(rows), np.abs(rows) - 1
    batch, crew = np.arange(n) // BATCH, _crews(n, rng)
    again = np.round(level.reread * rng.standard_normal((n, 2)))
    places = soil.places[site] + np.where(rows[:, None] < 0, again, 0.0) + np.array(ground.corner)
    swapped = rng.random(n) < level.swaps
    easting, northing = np.where(swapped[:, None], places[:, ::-1], places).T
    first = datetime.date(2008 + int(rng.integers(14)), 1 + int(rng.integers(4)), 2 + int(rng.integers(20)))
    days = [(first + datetime.timedelta(days=day)).isoformat() for day in range(n // A_DAY + 1)]
    bags = 100_000 + int(rng.integers(9_000)) + np.arange(n)
    names = [ground.rocks[k].title() for k in soil.rock[site]]
    spellings = [str.upper, str.lower, lambda name: f"{name} ", swap_letters]
    kinds = [PRIMARY if row > 0 else DUPLICATE for row in rows]
    labs = rng.integers(len(LABS), size=n // BATCH + 1)
    table: dict[str, object] = {
        "sample_id": [f"{ground.metal[:2].upper()}{number}" for number in bags.tolist()],
        "sampled_on": [days[row // A_DAY] for row in range(n)],
        "crew": [CREWS[k] for k in crew],
        "sample_type": respell(kinds, level.respelled, [str.upper, str.title, lambda kind: kind[:3]], rng),
        "easting_m": easting.astype(np.int64),
        "northing_m": northing.astype(np.int64),
        "rock": respell(names, level.respelled, spellings, rng),
        "lab": [LABS[k] for k in labs[batch]],
        "batch": [f"B{number + 1:03d}" for number in batch],
        "grade_ppm": _grades(ground, level, soil, rows, batch, labs[batch], rng),
    }
    feet = np.isin(crew, rng.permutation(len(CREWS))[: level.feet_crews])
    for j, column in enumerate(ground.covariates):
        values = _values(column, soil.standard[site, j])
        values = values * np.where(feet, FEET_A_METRE, 1.0) if column.column == "elevation_m" else values
        written = blank(np.round(values, column.decimals), level.missing, rng)
        table[column.column] = blank(written, level.holes if column.gridded else 0.0, rng, mark=NO_DATA)
    return repeat_rows(pd.DataFrame(table), level.repeats, rng)


def _rows(soil: Soil, level: GeospatialLevel, rng: np.random.Generator) -> Whole:
    """The site of each row, from 1; negative for the second sample of a site, right after the first."""
    number = 1 + np.arange(len(soil.places))
    again = number[rng.random(len(number)) < level.duplicates]
    both = np.concatenate([number, -again])
    return np.asarray(both[np.argsort(np.abs(both), kind="stable")])


def _crews(n: int, rng: np.random.Generator) -> Whole:
    """The crew of each of n samples, shape (n,): each works for some days in a row."""
    stint = np.arange(n) // (4 * A_DAY)
    order = np.concatenate([rng.permutation(len(CREWS)) for _ in range(n // len(CREWS) // A_DAY + 1)])
    return np.asarray(order[stint])


def _grades(
    ground: Ground, level: GeospatialLevel, soil: Soil, rows: Whole, batch: Whole, lab: Whole, rng: np.random.Generator
) -> Floats:
    """The grades as the laboratories reported them: a negative one means below that detection limit."""
    site, fresh = np.abs(rows) - 1, local_part(ground, len(rows), rng)
    log_grade = soil.log_grade[site] + np.where(rows < 0, fresh - soil.local[site], 0.0)
    ppm = slip_decimals(np.exp(log_grade), level.slips, rng)
    least = max(1.0, float(np.round(level.detection * ground.median)))
    limit = np.where(lab == 0, least, 2 * least)
    told = np.where(ppm < limit, -limit, np.round(ppm, 1))
    percent = np.isin(batch, rng.permutation(int(batch[-1]) + 1)[: level.percent_batches])
    told = np.where(percent, np.round(told / PPM_A_PERCENT, 5), told)
    return blank(told, level.missing, rng)


def _values(column: Covariate, standard: Floats) -> Floats:
    values = column.centre + column.scale * standard
    return np.exp(values) if column.by_log else values
