"""Findings and truth of the geospatial task."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from labmates.tasks.base import Difficulty, Share, finding
from labmates.tasks.choices import AnySign
from labmates.tasks.geospatial.soil import BLOCK, FOLDS

Name = Annotated[str, Field(max_length=200)]


class Driver(BaseModel):
    """A relevant covariate."""

    name: Name = Field(description="column of the covariate")
    sign: AnySign | None = Field(None, description="'+' if the grade rises with it, '-' if it falls")


class Spot(BaseModel):
    """A compact centre of enrichment."""

    x: float = Field(description="easting of its centre in metres, as in the column `easting_m`")
    y: float = Field(description="northing of its centre in metres, as in the column `northing_m`")
    radius: float | None = Field(
        None, description="distance from the centre in metres at which half of the enrichment of the log grade is left"
    )


class GeospatialFindings(BaseModel):
    """The findings of a report on the geospatial task."""

    n_sites: int | None = finding(
        "number of distinct sites in the data: repeated rows and second samples of the same site don't "
        "count, nor does a site twice because its coordinates were exchanged",
        5,
    )
    covariates: list[Driver] | None = finding(
        "covariates on which the grade depends, other things equal, without those that only seem to matter",
        [{"name": "some_column", "sign": "+"}],
        most=100,
    )
    richest_rock: Name | None = finding("rock with the highest grade, other things equal", "some rock")
    range_m: float | None = finding(
        "practical range in metres along the longest axis: the distance at which the correlation of what "
        "rock and covariates leave of the log grade, nugget and hot spots apart, has fallen to 5 percent",
        1.0,
    )
    anisotropy_azimuth: float | None = finding(
        "direction in which the correlation reaches furthest, in degrees clockwise from north, from 0 to 180", 0.0
    )
    anisotropy_ratio: float | None = finding("longest over shortest practical range, without unit, at least 1", 9.0)
    nugget_share: Share | None = finding(
        "nugget as a share of the sill (nugget included) of what rock and covariates leave of the log "
        "grade, hot spots apart, between 0 and 1",
        1.0,
    )
    hot_spots: list[Spot] | None = finding(
        "all hot spots, one entry for each", [{"x": 1.0, "y": 2.0, "radius": 3.0}], most=200
    )
    r2_random_cv: float | None = finding(
        f"R² of the log grade (hot spots left in) in random {FOLDS}-fold cross-validation of the spatial model", 0.0
    )
    r2_block_cv: float | None = finding(
        f"R² of the log grade of the same model when whole blocks of {BLOCK:.0f} m are left out ({FOLDS} folds)", 0.0
    )
    r2_covariates_cv: float | None = finding(
        "R² of the log grade in the same blocks for the non-spatial model, with rock and covariates alone", 0.0
    )


class GeospatialTruth(BaseModel):
    """The truth of one geospatial data set; fields as in `GeospatialFindings`."""

    difficulty: Difficulty
    n_sites: int
    covariates: list[Driver]
    richest_rock: str
    range_m: float
    anisotropy_azimuth: float
    anisotropy_ratio: float
    nugget_share: float
    hot_spots: list[Spot]
    r2_random_cv: float
    r2_block_cv: float
    r2_covariates_cv: float
