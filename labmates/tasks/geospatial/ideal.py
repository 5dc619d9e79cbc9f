"""The ideal analysis of a geospatial survey: the true model, fitted to the grades of the sites.

Known are the form of the covariance, the number of hot spots, and how the records went wrong; estimated are the
covariance (one Newton step of the likelihood from the truth, which is as good as its maximum), effects and hot spots.
The likelihood is the product of each site's density given the nearest sites before it (Vecchia, J. Royal Statistical
Society B 50, 1988).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from labmates.tasks.geospatial.data import HEIGHT, INSIDE, WIDTH, Ground
from labmates.tasks.geospatial.fields import Continuity, Whole
from labmates.tasks.geospatial.findings import Driver, GeospatialFindings, GeospatialTruth, Spot
from labmates.tasks.geospatial.soil import PPB_A_PPM, Soil, predictable
from labmates.tasks.noise import Floats

NEAR = 12
CLEAR = 3.0
"""Least t of a covariate that is stated."""
STEPS = np.array([0.1, 0.1, 0.1, 0.2])
"""Differences for the derivatives by log range, azimuth in radians, log ratio, and logit of the nugget."""
LATTICE = 200.0
TRIED = 40
RADII = (240.0, 300.0, 370.0)


@dataclass(frozen=True)
class _Field:
    """Sites in random order, each with the nearest of those before it."""

    places: Floats
    near: Whole

    def whitening(self, theta: Floats) -> _Whitening:
        """What removes the covariance with these parameters."""
        shape, nugget = _shape(theta)
        around, here = self.places[self.near], self.places[NEAR:, None]
        between = (1 - nugget) * shape.correlation(around[:, :, None] - around[:, None]) + nugget * np.eye(NEAR)
        towards = (1 - nugget) * shape.correlation(around - here)
        weights = np.asarray(np.linalg.solve(between, towards[..., None])[..., 0], float)
        return _Whitening(self, weights, np.asarray(np.sqrt(1 - (weights * towards).sum(axis=1)), float))

    @cached_property
    def lattice(self) -> tuple[list[Spot], Floats]:
        """Places for a first search of hot spots, and the bump of each at the sites, shape (L, n)."""
        spots = [
            Spot(x=x, y=y, radius=RADII[1])
            for x in np.arange(INSIDE, WIDTH - INSIDE + 1, LATTICE).tolist()
            for y in np.arange(INSIDE, HEIGHT - INSIDE + 1, LATTICE).tolist()
        ]
        return spots, np.stack(_bumps(self.places, spots))


@dataclass(frozen=True)
class _Whitening:
    """The weights of the nearest sites, shape (n - NEAR, NEAR), and the scale of what they leave, shape (n - NEAR,)."""

    field: _Field
    weights: Floats
    scale: Floats

    def of(self, columns: Floats) -> Floats:
        """Columns of shape (n, C) with the covariance removed."""
        around = np.einsum("nm,nmc->nc", self.weights, columns[self.field.near])
        return np.asarray((columns[NEAR:] - around) / self.scale[:, None])

    def twice(self, white: Floats) -> Floats:
        """The inverse covariance times the column that was whitened to `white`, shape (n,)."""
        column = np.zeros(len(self.field.places))
        column[NEAR:] = white / self.scale
        np.add.at(column, self.field.near, -self.weights * (white / self.scale)[:, None])
        return column


def ideal_findings(frame: pd.DataFrame, truth: GeospatialTruth, ground: Ground, soil: Soil) -> GeospatialFindings:
    """What the table allows to state at best."""
    at, y = _grades(frame, soil)
    order = np.random.default_rng(0).permutation(len(at))
    at, y = at[order], y[order]
    true = ground.continuity
    field = _neighbours(soil.places[at], true)
    rocks = soil.rock[at][:, None] == np.arange(len(ground.rocks))
    design = np.column_stack([soil.standard[at], rocks[:, rocks.any(axis=0)]])
    azimuth, share = np.deg2rad(true.azimuth), np.log(ground.nugget / (1 - ground.nugget))
    theta = np.array([np.log(true.range_m), azimuth, np.log(true.ratio), share])
    spots, whitening = list[Spot](), field.whitening(theta)
    for _ in ground.hot_spots:
        spots.append(_next_spot(whitening, np.column_stack([design, *_bumps(field.places, spots)]), y))
    design = np.column_stack([design, *_bumps(field.places, spots)])
    theta = _one_step(field, design, y, theta)
    white = field.whitening(theta).of(np.column_stack([design, y]))
    x, z = white[:, :-1], white[:, -1]
    beta = np.linalg.lstsq(x, z, rcond=None)[0]
    t = beta / np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * ((z - x @ beta) ** 2).mean())
    shape, nugget = _shape(theta)
    many = len(ground.covariates)
    names = np.array(ground.rocks)[rocks.any(axis=0)]
    fitted = beta[many : many + len(names)]
    rest = y - design[:, : many + len(names)] @ beta[: many + len(names)]
    fit = predictable(replace(ground, continuity=shape, nugget=nugget), field.places, y, rest, np.random.default_rng(1))
    east, north = ground.corner
    return GeospatialFindings(
        n_sites=truth.n_sites,
        covariates=[
            Driver(name=covariate.column, sign="+" if value > 0 else "-")
            for covariate, value in zip(ground.covariates, t[:many].tolist(), strict=True)
            if abs(value) > CLEAR
        ],
        richest_rock=str(names[int(fitted.argmax())]),
        range_m=shape.range_m,
        anisotropy_azimuth=shape.azimuth,
        anisotropy_ratio=shape.ratio,
        nugget_share=nugget,
        hot_spots=[Spot(x=spot.x + east, y=spot.y + north, radius=spot.radius) for spot in spots],
        r2_random_cv=fit["spatial"],
        r2_block_cv=fit["blocked"],
        r2_covariates_cv=fit["plain"],
    )


def _grades(frame: pd.DataFrame, soil: Soil) -> tuple[Whole, Floats]:
    """The sites with a grade, and its logarithm; below the detection limit two thirds of the limit stand for it."""
    table = frame.drop_duplicates("sample_id").sort_values("sample_id")
    first = ~table["sample_type"].str.strip().str.lower().str.startswith("d")
    reported = table.loc[first, "grade_ppm"].to_numpy(dtype=float)
    small = reported < 0
    limit = np.where(-reported > 500, -reported / PPB_A_PPM, -reported)
    y = np.where(small, np.log(np.where(small, limit, 1.0) * 2 / 3), soil.log_grade)
    at = np.flatnonzero(~np.isnan(reported))
    return at, y[at]


def _neighbours(places: Floats, true: Continuity) -> _Field:
    scaled = true.scaled(places)
    near = [
        np.argpartition(((scaled[:i] - scaled[i]) ** 2).sum(axis=1), NEAR - 1)[:NEAR] for i in range(NEAR, len(places))
    ]
    return _Field(places, np.stack(near))


def _shape(theta: Floats) -> tuple[Continuity, float]:
    reach, azimuth, ratio = np.exp(theta[0]), np.rad2deg(theta[1]) % 180, np.exp(theta[2])
    return Continuity(float(reach), float(azimuth), float(max(ratio, 1.0)), 0.5), float(1 / (1 + np.exp(-theta[3])))


def _one_step(field: _Field, design: Floats, y: Floats, theta: Floats) -> Floats:
    """One Newton step of the likelihood, with effects and variance at their best values."""
    columns = np.column_stack([design, y])

    def value(step: Floats) -> float:
        whitening = field.whitening(theta + step)
        white = whitening.of(columns)
        rest = np.linalg.lstsq(white[:, :-1], white[:, -1], rcond=None)[1]
        return float(-len(white) / 2 * np.log(rest[0]) - np.log(whitening.scale).sum())

    ways = np.diag(STEPS)
    middle, up, down = value(ways[0] * 0), [value(way) for way in ways], [value(-way) for way in ways]
    slope = (np.array(up) - down) / 2
    bend = np.diag(np.array(up) + down - 2 * middle)
    for i in range(len(ways)):
        for j in range(i):
            bend[i, j] = bend[j, i] = value(ways[i] + ways[j]) - up[i] - up[j] + middle
    # A flat or rising direction takes no step.
    sizes, turns = np.linalg.eigh(-bend)
    step = turns @ (turns.T @ slope / np.maximum(sizes, 0.3))
    return np.asarray(theta + np.clip(step, -4, 4) * STEPS)


def _bumps(places: Floats, spots: list[Spot]) -> list[Floats]:
    return [_bump(places, spot) for spot in spots]


def _bump(places: Floats, spot: Spot) -> Floats:
    away = ((places[:, 0] - spot.x) ** 2 + (places[:, 1] - spot.y) ** 2) / (spot.radius or 1) ** 2
    return np.asarray(0.5 ** np.minimum(away, 50))


def _next_spot(whitening: _Whitening, design: Floats, y: Floats) -> Spot:
    """The clearest hot spot beside those in the design: by lattice, then closer."""
    white = whitening.of(np.column_stack([design, y]))
    beta = np.linalg.lstsq(white[:, :-1], white[:, -1], rcond=None)[0]
    left = white[:, -1] - white[:, :-1] @ beta

    def clearest(tried: list[Spot]) -> Spot:
        bumps = whitening.of(np.stack(_bumps(whitening.field.places, tried), axis=1))
        inside = bumps - white[:, :-1] @ np.linalg.lstsq(white[:, :-1], bumps, rcond=None)[0]
        t = left @ inside / np.sqrt((inside**2).sum(axis=0))
        return tried[int(t.argmax())]

    lattice, bumps = whitening.field.lattice
    rough = bumps @ whitening.twice(left) / np.sqrt(bumps.sum(axis=1) + 3)
    best = clearest([lattice[k] for k in np.argsort(rough)[-TRIED:]])
    for reach in (100.0, 50.0, 25.0):
        offsets = [(east, north) for east in (-reach, 0, reach) for north in (-reach, 0, reach)]
        best = clearest(
            [Spot(x=best.x + e, y=best.y + n, radius=radius) for e, n in offsets for radius in (*RADII, best.radius)]
        )
    return best
