"""The geospatial task's data: the ground below a survey area, and the difficulty levels.

With s a place, the natural logarithm of the metal's grade is ``y(s) = level + Σ effect · covariate(s) + rock(s) + S(s)
+ Σ peak · 2 ** −(distance / radius)² + e(s)``: S is an anisotropic random field with exponential covariance; the second
sum is over the hot spots; e has no spatial correlation (the nugget: variation within a few metres, and assay error).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from labmates.tasks.base import Difficulty
from labmates.tasks.geospatial.fields import Continuity
from labmates.tasks.noise import Floats

WIDTH, HEIGHT = 10_000.0, 8_000.0
"""Size of the survey area in metres, east-west and north-south."""
SPREAD: Final = 0.6
"""Standard deviation of S + e, in log units."""
APART, INSIDE = 1_500.0, 700.0
"""Least distance in metres between hot spots, and from a hot spot to the edge of the area."""

METALS: Final = (("copper", 22, 40), ("zinc", 45, 80), ("nickel", 18, 35), ("lead", 14, 28), ("lithium", 20, 38))
"""Metals with the range of their median grade in ppm."""
ROCKS: Final = (
    *("granite", "granodiorite", "basalt", "andesite", "dacite", "greywacke", "siltstone", "schist", "gneiss"),
    *("gabbro", "dolomite", "quartzite"),
)


class Covariate(NamedTuple):
    """A quantity measured at every sample beside the grade."""

    # Its column, and its description with the unit.
    column: str
    about: str
    # Mean and standard deviation of its values, or of their natural logarithms.
    centre: float
    scale: float
    by_log: bool  # whether its logarithms, rather than its values, are normal
    decimals: int  # decimals of the values
    # Standard deviation of the part without spatial correlation (measurement error), in units of the smooth part.
    fine: float
    of_rock: bool  # whether its level differs between rocks
    gridded: bool  # whether it comes from a geophysical survey grid with holes, rather than from the site


COVARIATES: Final = (
    Covariate("elevation_m", "height above sea level, meant to be in metres", 430, 65, False, 1, 0.05, False, False),
    Covariate("magnetic_nt", "total magnetic intensity, in nanotesla", 48_200, 130, False, 1, 0.08, True, True),
    Covariate("gravity_mgal", "Bouguer gravity, in milligal", -31, 4.2, False, 2, 0.08, False, True),
    Covariate("resistivity_ohmm", "apparent resistivity, in ohm metres", 5.4, 0.6, True, 0, 0.08, False, True),
    Covariate(
        "chargeability_mvv", "induced polarisation, in millivolts per volt", 1.95, 0.4, True, 1, 0.08, False, True
    ),
    Covariate("potassium_pct", "potassium by gamma rays, in percent", 0.4, 0.32, True, 2, 0.08, True, True),
    Covariate("thorium_eppm", "thorium by gamma rays, in ppm equivalent", 2.2, 0.35, True, 1, 0.08, True, True),
    Covariate("iron_pct", "iron in the soil, in percent", 1.15, 0.33, True, 2, 0.3, True, False),
    Covariate(
        "manganese_mgkg", "manganese in the soil, in milligrams per kilogram", 6.2, 0.5, True, 0, 0.3, False, False
    ),
    Covariate("arsenic_mgkg", "arsenic in the soil, in milligrams per kilogram", 1.8, 0.55, True, 1, 0.3, False, False),
    Covariate("clay_pct", "clay in the soil, in percent by weight", 3.0, 0.3, True, 1, 0.3, False, False),
    Covariate("soil_ph", "acidity of the soil, as pH", 6.1, 0.5, False, 1, 0.3, False, False),
    Covariate("regolith_m", "depth of weathered ground, in metres", 1.5, 0.55, True, 1, 0.3, False, False),
    Covariate("ndvi", "greenness of the plants (NDVI), without unit", 0.47, 0.1, False, 3, 0.08, False, True),
)


@dataclass(frozen=True)
class GeospatialLevel:
    """Difficulty parameters of a geospatial data set; pairs are ranges."""

    line_step: float  # metres between survey lines
    nugget: tuple[float, float]  # share of e in the variance of S + e
    ratio: tuple[float, float]  # longest over shortest range of S
    effect: tuple[float, float]  # change of log grade per standard deviation of a relevant covariate
    rock: tuple[float, float]  # difference of the richest rock from the others, in log units
    peak: tuple[float, float]  # enrichment in the centre of a hot spot, in log units (1.1 is threefold)
    shared: float  # correlation of each covariate with one of two shared factors
    # Detection limit of the better laboratory as a share of the median grade; the other's is twice as high.
    detection: float
    # Shares: of empty values, of holes in grids (−9999), of repeated rows, of sites sampled twice, of exchanged
    # coordinates, of decimal slips in the grade, of respelled words.
    missing: float
    holes: float
    repeats: float
    duplicates: float
    swaps: float
    slips: float
    respelled: float
    reread: float  # standard deviation of the coordinates of a second sample around those of the first, in metres
    # Number of batches with grades in parts per billion, and of crews with heights in feet.
    ppb_batches: int
    feet_crews: int


LEVELS: Final[Mapping[Difficulty, GeospatialLevel]] = {
    "easy": GeospatialLevel(
        line_step=280, nugget=(0.10, 0.35), ratio=(2.2, 3.0), effect=(0.32, 0.42), rock=(0.6, 0.8), peak=(2.2, 2.8),
        shared=0.3, detection=0.06, missing=0.01, holes=0.005, repeats=0.005, duplicates=0.03, swaps=0.002,
        slips=0.002, respelled=0.02, reread=0.0, ppb_batches=1, feet_crews=0,
    ),
    "medium": GeospatialLevel(
        line_step=330, nugget=(0.30, 0.55), ratio=(1.8, 2.3), effect=(0.14, 0.18), rock=(0.20, 0.30), peak=(1.85, 2.15),
        shared=0.7, detection=0.10, missing=0.03, holes=0.015, repeats=0.015, duplicates=0.04, swaps=0.005,
        slips=0.005, respelled=0.06, reread=2.0, ppb_batches=2, feet_crews=1,
    ),
    "hard": GeospatialLevel(
        line_step=420, nugget=(0.45, 0.75), ratio=(1.4, 2.0), effect=(0.10, 0.13), rock=(0.13, 0.19), peak=(1.35, 1.65),
        shared=0.8, detection=0.15, missing=0.06, holes=0.03, repeats=0.03, duplicates=0.05, swaps=0.01, slips=0.01,
        respelled=0.12, reread=3.0, ppb_batches=4, feet_crews=2,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class HotSpot:
    """A centre of enrichment: metres from the south-west corner of the area, half-distance in metres, height."""

    east: float
    north: float
    radius: float
    peak: float


@dataclass(frozen=True)
class Ground:
    """The true ground of one survey area, with J covariates and K rocks."""

    # The metal of interest, and its median grade in ppm.
    metal: str
    median: float
    # Covariance of S, and the share of e in the variance of S + e.
    continuity: Continuity
    nugget: float
    # Measured covariates, and their effect on the log grade per standard deviation, shape (J,); 0 for most.
    covariates: tuple[Covariate, ...]
    effects: Floats
    # Names of the rocks, and their log grade relative to the poorest, shape (K,).
    rocks: tuple[str, ...]
    rock_effects: Floats
    hot_spots: tuple[HotSpot, ...]  # from west to east
    corner: tuple[float, float]  # easting and northing of the south-west corner, in metres


def draw_ground(level: GeospatialLevel, rng: np.random.Generator) -> Ground:
    """Draw metal, covariance, 10 to 12 covariates (3 or 4 relevant), 4 rocks and 3 to 5 hot spots."""
    name, low, high = METALS[int(rng.integers(len(METALS)))]
    count = int(rng.integers(10, 13))
    chosen = [0, *np.sort(1 + rng.permutation(len(COVARIATES) - 1)[: count - 1])]
    matter = rng.permutation(count)[: int(rng.integers(3, 5))]
    effects = np.zeros(count)
    effects[matter] = rng.uniform(*level.effect, size=len(matter)) * rng.choice([-1.0, 1.0], size=len(matter))
    rock_effects = rng.uniform(0.0, 0.08, size=4)
    rock_effects[int(rng.integers(4))] = 0.08 + rng.uniform(*level.rock)
    # Between the compass points, so that the directions of a map's edges are never right by accident.
    azimuth = float(np.round(rng.uniform(20, 70) + 90 * rng.integers(2), 1))
    return Ground(
        metal=name,
        median=float(rng.integers(low, high + 1)),
        continuity=Continuity(
            range_m=float(np.round(rng.uniform(600, 1400), -1)),
            azimuth=azimuth,
            ratio=float(np.round(rng.uniform(*level.ratio), 2)),
            smoothness=0.5,
        ),
        nugget=float(np.round(rng.uniform(*level.nugget), 3)),
        covariates=tuple(COVARIATES[j] for j in chosen),
        effects=effects,
        rocks=tuple(ROCKS[k] for k in rng.permutation(len(ROCKS))[:4]),
        rock_effects=rock_effects,
        hot_spots=_draw_hot_spots(level, rng),
        corner=(1000.0 * int(rng.integers(310, 680)), 1000.0 * int(rng.integers(5_900, 7_800))),
    )


def _draw_hot_spots(level: GeospatialLevel, rng: np.random.Generator) -> tuple[HotSpot, ...]:
    wanted = int(rng.integers(3, 6))
    spots: list[HotSpot] = []
    while len(spots) < wanted:
        east = float(np.round(rng.uniform(INSIDE, WIDTH - INSIDE), -1))
        north = float(np.round(rng.uniform(INSIDE, HEIGHT - INSIDE), -1))
        radius, peak = float(np.round(rng.uniform(220, 380), -1)), float(rng.uniform(*level.peak))
        if all((east - spot.east) ** 2 + (north - spot.north) ** 2 >= APART**2 for spot in spots):
            spots.append(HotSpot(east, north, radius, peak))
    return tuple(sorted(spots, key=lambda spot: spot.east))
