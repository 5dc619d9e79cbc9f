"""The geospatial task's data: sampling sites, soil, and the records of crews and laboratories.

The samples lie on survey lines, with closer grids in places: one at each hot spot, and one more elsewhere.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from labmates.tasks.data_errors import blank, repeat_rows, respell, slip_decimals, swap_letters
from labmates.tasks.geospatial.data import HEIGHT, INSIDE, SPREAD, WIDTH, Covariate, GeospatialLevel, Ground
from labmates.tasks.geospatial.fields import Continuity, Whole, predicted, random_field
from labmates.tasks.noise import DECIMALS, Floats

SAMPLE_STEP, GRID_STEP, LEAST_STEP = 100.0, 50.0, 25.0
"""Metres between samples on a line, between samples of a closer grid, and at least between any two sites."""
BLOCK: Final = 1_000.0
"""Side of the square blocks of spatial cross-validation, in metres."""
FOLDS: Final = 10
EVERY: Final = 4
"""Predictability is computed at every fourth site."""
NO_DATA: Final = -9999.0
"""The grid's marker for a missing value."""
PPB_A_PPM: Final = 1_000.0
FEET_A_METRE: Final = 3.28084
BATCH: Final = 70
"""Samples per laboratory batch."""
A_DAY: Final = 60
"""Samples per day."""
CREWS: Final = ("north", "south", "harbour", "mill")
LABS: Final = ("Korrin", "Velde")
PRIMARY, DUPLICATE = "primary", "duplicate"


@dataclass(frozen=True)
class Soil:
    """Values at the n sites and their predictability."""

    places: Floats  # shape (n, 2), in whole metres from the corner
    standard: Floats  # the covariates with mean 0 and variance 1, shape (n, J)
    rock: Whole  # index of the rock, shape (n,)
    log_grade: Floats  # shape (n,), in log ppm
    local: Floats  # the local part e of the log grade, different a few metres away; shape (n,)
    # Predictable shares of the variance of `log_grade` at unseen sites: ``spatial`` in random folds, ``blocked`` the
    # same in folds of whole blocks, ``plain`` with rock and covariates only.
    fit: Mapping[str, float]


def draw_sites(ground: Ground, level: GeospatialLevel, rng: np.random.Generator) -> Floats:
    """Places of samples in order of sampling: line by line, then grid by grid; shape (n, 2).

    Places are in whole metres from the corner, none within `LEAST_STEP` of another in both directions. Up to two areas
    (a lake, a town) are inaccessible; lines are not quite straight and run a few degrees off east-west.
    """
    tilt = np.tan(np.deg2rad(rng.uniform(-10, 10)))
    lines: list[Floats] = []
    for north in np.arange(level.line_step / 2, HEIGHT, level.line_step):
        east = np.arange(rng.uniform(0, 3) * SAMPLE_STEP, WIDTH - rng.uniform(0, 3) * SAMPLE_STEP, SAMPLE_STEP)
        along = np.stack([east, north + tilt * (east - WIDTH / 2)], axis=1)
        lines.append(along[:: 1 if len(lines) % 2 else -1])
    sites = _inside(np.concatenate(lines) + rng.normal(0, 8, size=(sum(map(len, lines)), 2)))
    for _ in range(2):
        middle, size = rng.uniform(0.15, 0.85, size=2) * [WIDTH, HEIGHT], rng.uniform(400, 900, size=2)
        open_land = (((sites - middle) / size) ** 2).sum(axis=1) > 1
        # Hot spots need samples.
        if all(np.hypot(*(middle - [spot.east, spot.north])) > 1_400 for spot in ground.hot_spots):
            sites = sites[open_land]
    for grid in map(_inside, _grids(ground, rng)):
        east, north = (grid[:, None, axis] - sites[:, axis] for axis in (0, 1))
        crowded = ((abs(east) < LEAST_STEP) & (abs(north) < LEAST_STEP)).any(axis=1)
        sites = np.concatenate([sites, grid[~crowded]])
    return sites


def _inside(places: Floats) -> Floats:
    """The places inside the area, in whole metres."""
    whole = np.round(places)
    return np.asarray(whole[((whole >= 0) & (whole <= [WIDTH, HEIGHT])).all(axis=1)])


def _grids(ground: Ground, rng: np.random.Generator) -> list[Floats]:
    """Closer grids around the hot spots, and around as many other places plus one, in random order."""
    middles = [np.array([spot.east, spot.north]) + rng.normal(0, 80, size=2) for spot in ground.hot_spots]
    middles += [
        rng.uniform([INSIDE, INSIDE], [WIDTH - INSIDE, HEIGHT - INSIDE]) for _ in range(1 + len(ground.hot_spots))
    ]
    grids = []
    for middle in middles:
        reach = rng.uniform(150, 230)
        steps = np.arange(-reach, reach + 1, GRID_STEP)
        grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
        grids.append(middle + grid + rng.normal(0, 4, size=grid.shape))
    return [grids[k] for k in rng.permutation(len(grids))]


def draw_soil(ground: Ground, level: GeospatialLevel, places: Floats, rng: np.random.Generator) -> Soil:
    """Simulate covariates, rock and grade at the `places`, shape (n, 2), in metres from the corner."""
    rock = _rocks(ground, places, rng)
    standard = _standard_covariates(ground, level, places, rock, rng)
    trend = (standard * ground.effects).sum(axis=1) + ground.rock_effects[rock]
    smooth = _standardised(random_field(places, ground.continuity, 256, rng))
    local = local_part(ground, len(places), rng)
    rest = SPREAD * np.sqrt(1 - ground.nugget) * smooth + local
    for hot_spot in ground.hot_spots:
        away = ((places - [hot_spot.east, hot_spot.north]) ** 2).sum(axis=1) / hot_spot.radius**2
        rest = rest + hot_spot.peak * 0.5**away
    log_grade = np.round(np.log(ground.median) + trend - np.median(trend) + rest, DECIMALS)
    return Soil(places, standard, rock, log_grade, local, predictable(ground, places, log_grade, rest, rng))


def local_part(ground: Ground, n: int, rng: np.random.Generator) -> Floats:
    """The local part e of n spots, shape (n,)."""
    return np.asarray(SPREAD * np.sqrt(ground.nugget) * rng.standard_normal(n))


def _rocks(ground: Ground, places: Floats, rng: np.random.Generator) -> Whole:
    """The rock at each place, shape (n,): bodies elongated along the strike."""
    shape = Continuity(2_600.0, ground.continuity.azimuth, 2.0, 1.5)
    return np.asarray(np.stack([random_field(places, shape, 40, rng) for _ in ground.rocks]).argmax(axis=0))


def _standard_covariates(
    ground: Ground, level: GeospatialLevel, places: Floats, rock: Whole, rng: np.random.Generator
) -> Floats:
    factors = [random_field(places, Continuity(3_000.0, float(rng.uniform(0, 180)), 1.3, 1.5), 48, rng) for _ in "ab"]
    columns = []
    for covariate in ground.covariates:
        shape = Continuity(
            float(rng.uniform(1_200, 3_200)), float(rng.uniform(0, 180)), float(rng.uniform(1, 1.8)), 1.5
        )
        own, sign, which = random_field(places, shape, 48, rng), rng.choice([-1.0, 1.0]), int(rng.integers(2))
        levels = rng.normal(0, 0.7 if covariate.of_rock else 0.0, size=len(ground.rocks))
        fine = rng.normal(0, covariate.fine, size=len(places))
        mixed = np.sqrt(1 - level.shared**2) * own + level.shared * sign * factors[which]
        columns.append(_standardised(mixed + levels[rock] + fine))
    return np.stack(columns, axis=1)


def _standardised(values: Floats) -> Floats:
    return np.asarray(np.round((values - values.mean()) / values.std(), DECIMALS))


def predictable(
    ground: Ground, places: Floats, log_grade: Floats, rest: Floats, rng: np.random.Generator
) -> dict[str, float]:
    """Predictable shares of the variance; `rest` is unexplained by rock and covariates, shape (n,)."""
    _, block = np.unique(places // BLOCK, axis=0, return_inverse=True)
    folds = {
        "spatial": rng.integers(FOLDS, size=len(places)),
        "blocked": rng.integers(FOLDS, size=int(block.max()) + 1)[block.ravel()],
    }
    left, at = rest - rest.mean(), np.arange(0, len(places), EVERY)
    untold = float(left.var() / log_grade.var())
    fit = {"plain": 1 - untold}
    for name, fold in folds.items():
        error = left[at] - predicted(places, left, fold, ground.continuity, ground.nugget, at)
        fit[name] = 1 - untold * float((error**2).mean() / left[at].var())
    return {name: round(share, 3) for name, share in fit.items()}


def sample_table(ground: Ground, level: GeospatialLevel, soil: Soil, rng: np.random.Generator) -> pd.DataFrame:
    """The table of samples: crew, place, laboratory result and covariates, one row per sample."""
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
    """The site of each row, from 1; negative for a site's second sample, right after the first."""
    number = 1 + np.arange(len(soil.places))
    again = number[rng.random(len(number)) < level.duplicates]
    both = np.concatenate([number, -again])
    return np.asarray(both[np.argsort(np.abs(both), kind="stable")])


def _crews(n: int, rng: np.random.Generator) -> Whole:
    """The crew of each of n samples, shape (n,); each works for some consecutive days."""
    stint = np.arange(n) // (4 * A_DAY)
    order = np.concatenate([rng.permutation(len(CREWS)) for _ in range(n // len(CREWS) // A_DAY + 1)])
    return np.asarray(order[stint])


def _grades(
    ground: Ground, level: GeospatialLevel, soil: Soil, rows: Whole, batch: Whole, lab: Whole, rng: np.random.Generator
) -> Floats:
    """The grades reported by the laboratories: a negative one means below that detection limit."""
    site, fresh = np.abs(rows) - 1, local_part(ground, len(rows), rng)
    log_grade = soil.log_grade[site] + np.where(rows < 0, fresh - soil.local[site], 0.0)
    ppm = slip_decimals(np.exp(log_grade), level.slips, rng)
    least = max(1.0, float(np.round(level.detection * ground.median)))
    limit = np.where(lab == 0, least, 2 * least)
    reported = np.where(ppm < limit, -limit, np.round(ppm, 1))
    # Their ordinary grades are above the maxima of all others.
    ppb = np.isin(batch, rng.permutation(int(batch[-1]) + 1)[: level.ppb_batches])
    reported = np.where(ppb, np.round(reported * PPB_A_PPM), reported)
    return blank(reported, level.missing, rng)


def _values(column: Covariate, standard: Floats) -> Floats:
    values = column.centre + column.scale * standard
    return np.exp(values) if column.by_log else values
