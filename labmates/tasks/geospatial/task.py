"""The geospatial task: covariates of a metal's grade over a survey area, hot spots, and accuracy of predictions.

Source: cooperative-profiles paper, section 4.1 (science tasks). Data, findings and scoring are our own design.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, level_of
from labmates.tasks.choices import Sign
from labmates.tasks.geospatial.analysis import GEOSPATIAL_ANALYSIS
from labmates.tasks.geospatial.data import COVARIATES, LEVELS, Ground, draw_ground
from labmates.tasks.geospatial.findings import Driver, GeospatialFindings, GeospatialTruth, Spot
from labmates.tasks.geospatial.ideal import ideal_findings
from labmates.tasks.geospatial.instruments import GeospatialInstruments
from labmates.tasks.geospatial.soil import BLOCK, FOLDS, NO_DATA, Soil, draw_sites, draw_soil, sample_table
from labmates.tasks.noise import random_for
from labmates.tasks.scoring import (
    NOT_STATED,
    by_error,
    guarded_f1,
    plain_name,
    score_list,
    score_number,
    within,
)
from labmates.tasks.words import says_all, says_name, says_number, says_together

BRIEF = f"""Soil was sampled along the lines of a survey, and more closely where somebody hoped for more, and assayed \
for a metal (column `grade_ppm`). Build models that map the resource, and compare spatial with non-spatial ones by \
spatial cross-validation. Work with the natural logarithm of the grade. How many distinct sites were sampled? Which \
covariates raise or lower the grade, other things equal, and which only look as if they did because they vary \
smoothly over the map, as the grade does? Which rock is the richest, other things equal? What rock and covariates \
leave unexplained is correlated in space: over what distance, in which direction furthest, how much further than \
across it, and which share of its variance is nugget? Where are the hot spots, compact centres of enrichment that \
covariates and the smooth variation around them don't explain, and how large are they? How well is the log grade of \
sites predicted by a spatial model (regression kriging or its like) in random {FOLDS}-fold cross-validation, how well \
when square blocks of {BLOCK:.0f} m are left out as a whole, and how well with rock and covariates alone? The records \
are as people left them: check units, codes, coordinates, repeated rows and slips before you trust any number."""

SITES_FULL, SITES_ZERO = 0.002, 0.01
"""The number of sites earns full credit within 0.2 % of the truth, none from 1 % on."""


class Errors(NamedTuple):
    """Standard errors of an ideal fit: range, ratio and radius relative to the truth, places in metres."""

    range: float
    azimuth: float
    ratio: float
    nugget: float
    fit: float
    place: float
    radius: float


ERRORS: Mapping[Difficulty, Errors] = {
    "easy": Errors(0.13, 3, 0.2, 0.03, 0.025, 40, 0.1),
    "medium": Errors(0.15, 5, 0.2, 0.04, 0.025, 50, 0.15),
    "hard": Errors(0.2, 8, 0.2, 0.05, 0.025, 60, 0.2),
}
"""Spread of the ideal findings (`Dataset.ideal`) around the truth over a dozen data sets."""
NO_SIGN = 0.3
"""Factor for a relevant covariate without its sign."""
NO_RADIUS = 0.85
"""Factor for a hot spot with a radius far off, or without one."""


GUESSED: Mapping[Difficulty, Mapping[str, float]] = {
    "easy": {"range_m": 910, "anisotropy_azimuth": 48, "anisotropy_ratio": 2.54, "nugget_share": 0.23,
             "r2_random_cv": 0.79, "r2_block_cv": 0.64, "r2_covariates_cv": 0.50},
    "medium": {"range_m": 910, "anisotropy_azimuth": 48, "anisotropy_ratio": 2.04, "nugget_share": 0.44,
               "r2_random_cv": 0.42, "r2_block_cv": 0.26, "r2_covariates_cv": 0.14},
    "hard": {"range_m": 910, "anisotropy_azimuth": 48, "anisotropy_ratio": 1.66, "nugget_share": 0.61,
             "r2_random_cv": 0.24, "r2_block_cv": 0.14, "r2_covariates_cv": 0.07},
}  # fmt: skip
"""Numbers of the prior, with the highest mean score (``python -m benchmarks.task_scores --search``)."""


class GeospatialTask(Task[GeospatialTruth, GeospatialFindings]):
    """Grade of a metal in the soil of a survey area: covariance, relevant covariates, hot spots, prediction errors."""

    name = "geospatial"
    title = "Spatial mapping of a resource"
    brief = BRIEF
    version = "5"
    findings = GeospatialFindings
    instruments = GeospatialInstruments()
    analysis = GEOSPATIAL_ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[GeospatialTruth]:
        """The samples of one survey; for difficulties see `labmates.tasks.geospatial.data.LEVELS`."""
        level = level_of(LEVELS, difficulty)
        ground = draw_ground(level, random_for(self.name, seed, difficulty, "ground"))
        places = draw_sites(ground, level, random_for(self.name, seed, difficulty, "sites"))
        soil = draw_soil(ground, level, places, random_for(self.name, seed, difficulty, "soil"))
        frame = sample_table(ground, level, soil, random_for(self.name, seed, difficulty, "table"))
        truth = _truth(ground, soil, difficulty)
        return Dataset(frame, truth, _description(ground), lambda: ideal_findings(frame, truth, ground, soil))

    def oracle(self, truth: GeospatialTruth) -> GeospatialFindings:
        """The truth as findings."""
        return GeospatialFindings(**truth.model_dump(exclude={"difficulty"}))

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> GeospatialFindings:
        """Likely numbers, and three random covariates; places are unknown beforehand."""
        measured = [covariate.column for covariate in COVARIATES if covariate.column in columns]
        drivers = [Driver(name=column, sign="+") for column in measured[:3]]
        return GeospatialFindings(covariates=drivers, **level_of(GUESSED, difficulty))

    def score(self, findings: GeospatialFindings, truth: GeospatialTruth) -> tuple[Credit, ...]:
        """Credits by the tolerances of this module; lists by F1 (`labmates.tasks.scoring.guarded_f1`).

        Hot spots and covariates have three quarters of the weight, since numbers can be guessed approximately.
        """
        errors = ERRORS[truth.difficulty]

        def number(field: str, weight: float, error: float, *, relative: bool = False) -> Credit:
            credit = by_error(error, relative=relative)
            return score_number(field, getattr(findings, field), getattr(truth, field), weight=weight, credit=credit)

        return (
            score_number(
                "n_sites",
                findings.n_sites,
                truth.n_sites,
                weight=0.2,
                credit=within(SITES_FULL, SITES_ZERO, relative=True),
            ),
            _score_covariates(findings.covariates, truth.covariates),
            _score_rock(findings.richest_rock, truth.richest_rock),
            number("range_m", 0.1, errors.range, relative=True),
            score_number(
                "anisotropy_azimuth",
                findings.anisotropy_azimuth,
                truth.anisotropy_azimuth,
                weight=0.5,
                credit=lambda a, b: by_error(errors.azimuth)(_axis_angle(a, b), 0),
            ),
            number("anisotropy_ratio", 0.1, errors.ratio, relative=True),
            number("nugget_share", 0.1, errors.nugget),
            score_list(
                "hot_spots",
                findings.hot_spots,
                truth.hot_spots,
                weight=5,
                similarity=lambda a, b: _spot_similarity(a, b, errors),
            ),
            *(number(name, 0.1, errors.fit) for name in ("r2_random_cv", "r2_block_cv", "r2_covariates_cv")),
        )

    def checks(self, truth: GeospatialTruth) -> tuple[Check, ...]:
        """Covariates and rock named, range and nugget given, hot spots located, kinds of validation compared."""
        spatial = r"\b(?:kriging|variogram|gaussian process|spatial (?:model|correlation|covariance|autocorrelation))"
        grade, way = r"\b(?:grade|concentration)", r"\b(?:rais|lower|ris|fall|increas|decreas|positive|negative)"
        drivers = [spelling for driver in truth.covariates for spelling in _spellings(driver.name)]
        return (
            Check("spatial model named", says_all(spatial)),
            Check(
                "covariates with their direction",
                lambda text: says_name(drivers)(text) and says_together(grade, way)(text),
            ),
            Check("richest rock named", says_name([truth.richest_rock])),
            Check("range told", says_number(r"\brange\b", [truth.range_m], 0.2 * truth.range_m, whole=False)),
            Check("nugget discussed", says_together(r"\bnugget", r"\d")),
            Check("direction discussed", says_together(r"\b(?:anisotrop|azimuth|direction|strike)", r"\d")),
            Check(
                "hot spot located",
                says_number(r"\bhot[ -]?spots?\b", [spot.x for spot in truth.hot_spots], 100, whole=False),
            ),
            Check(
                "kinds of validation compared",
                says_together(r"\brandom", r"\bblock|\bspatial cross-validation|\bspatial folds", r"\d"),
            ),
        )

    def summary(self, truth: GeospatialTruth) -> str:
        """The truth in sentences."""
        spots = [
            f"A hot spot lies at easting {spot.x:.0f}, northing {spot.y:.0f}, with a radius of {spot.radius:.0f} m."
            for spot in truth.hot_spots
        ]
        drivers = [
            f"The grade {'rises' if driver.sign == '+' else 'falls'} with {driver.name}, other things equal."
            for driver in truth.covariates
        ]
        return "\n".join(
            [
                f"Samples come from {truth.n_sites} distinct sites.",
                *drivers,
                "The other covariates only look as if they mattered, since they vary smoothly over the map too.",
                f"The richest rock is {truth.richest_rock}.",
                f"The variogram of what is left has a practical range of {truth.range_m:.0f} m along its longest axis.",
                f"Its direction of longest continuity (anisotropy) is {truth.anisotropy_azimuth:.0f} degrees from "
                f"north, {truth.anisotropy_ratio:.1f} times as far as across it.",
                f"The nugget is {100 * truth.nugget_share:.0f} % of the sill.",
                *spots,
                f"Kriging with covariates reaches an R² of {truth.r2_random_cv:.2f} in random cross-validation, but "
                f"only {truth.r2_block_cv:.2f} when whole blocks are left out.",
                f"Without the spatial part, rock and covariates reach {truth.r2_covariates_cv:.2f} in these blocks.",
            ]
        )


def _spellings(column: str) -> tuple[str, ...]:
    """A column as papers write it: `clay_pct`, clay pct or clay; the soil of `soil_ph` alone says nothing."""
    first = column.partition("_")[0]
    return column, column.replace("_", " "), "soil ph" if first == "soil" else first


def _score_covariates(stated: Sequence[Driver] | None, true: Sequence[Driver]) -> Credit:
    """Credit of the list by column and sign, by guarded F1.

    A wrong sign cancels a right one, so that guessed signs earn nothing; both signs for one column count as wrong.
    """
    if stated is None:
        return Credit("covariates", 0.0, 4, NOT_STATED)
    signs: dict[str, set[Sign | None]] = {}
    for name in stated:
        signs.setdefault(plain_name(name.name), set()).add(name.sign)
    right, wrong = 0.0, 0
    for driver in true:
        if plain_name(driver.name) not in signs:
            continue
        given = signs[plain_name(driver.name)] - {None}
        right += NO_SIGN if not given else float(given == {driver.sign})
        wrong += bool(given) and given != {driver.sign}
    reason = f"{right:g} right and {wrong} with a wrong sign, of {len(stated)} stated and {len(true)} true"
    return Credit("covariates", guarded_f1(max(0.0, right - wrong), len(stated), len(true)), 4, reason)


def _score_rock(stated: str | None, true: str) -> Credit:
    right = stated is not None and plain_name(stated) == plain_name(true)
    return Credit("richest_rock", float(right), 0.5, NOT_STATED if stated is None else f"true {true}")


def _axis_angle(a: float, b: float) -> float:
    """The angle between two axes, in degrees from 0 to 90."""
    return 90.0 - abs(abs(a - b) % 180.0 - 90.0)


def _spot_similarity(stated: Spot, true: Spot, errors: Errors) -> float:
    """Similarity in [0, 1]: nearness of the centres, times a factor for the radius."""
    away = math.hypot(stated.x - true.x, stated.y - true.y)
    if stated.radius is None or true.radius is None:
        size = 0.0
    else:
        size = by_error(errors.radius, relative=True)(stated.radius, true.radius)
    return by_error(errors.place)(away, 0) * (NO_RADIUS + (1 - NO_RADIUS) * size)


def _truth(ground: Ground, soil: Soil, difficulty: Difficulty) -> GeospatialTruth:
    east, north = ground.corner
    return GeospatialTruth(
        difficulty=difficulty,
        n_sites=len(soil.places),
        covariates=[
            Driver(name=covariate.column, sign="+" if effect > 0 else "-")
            for covariate, effect in zip(ground.covariates, ground.effects, strict=True)
            if effect
        ],
        richest_rock=ground.rocks[int(ground.rock_effects.argmax())],
        range_m=ground.continuity.range_m,
        anisotropy_azimuth=ground.continuity.azimuth,
        anisotropy_ratio=ground.continuity.ratio,
        nugget_share=ground.nugget,
        hot_spots=[Spot(x=east + s.east, y=north + s.north, radius=s.radius) for s in ground.hot_spots],
        r2_random_cv=soil.fit["spatial"],
        r2_block_cv=soil.fit["blocked"],
        r2_covariates_cv=soil.fit["plain"],
    )


def _description(ground: Ground) -> str:
    covariates = "\n".join(f"- {covariate.column}: {covariate.about}" for covariate in ground.covariates)
    return f"""One row for each soil sample.

- sample_id: number on the bag
- sampled_on: day of sampling (year-month-day)
- crew: who took the sample
- sample_type: primary, or duplicate for a second sample of the same site, taken a step away; typed by hand
- easting_m: easting in a local metric grid, in metres
- northing_m: northing in the same grid, in metres
- rock: rock below the soil as mapped; typed by hand
- lab: laboratory that analysed the sample
- batch: samples that went to the laboratory together
- grade_ppm: {ground.metal} in the soil, meant to be in parts per million by weight; empty if not analysed
{covariates}

Known habits of the records: a negative grade means that less than so much was found (the detection limit); some \
batches were reported in parts per billion; a decimal point is sometimes in the wrong place; easting and northing were \
sometimes exchanged; {NO_DATA:.0f} stands where the grid of a geophysical survey has no value; some crews may note \
heights in feet; some rows were written twice."""
