"""The ecology task's data: a community of species, its true dynamics, and its surveys.

On the log scale the community follows a stochastic Gompertz model: with x the log abundances at one site and m the
typical log abundances of the current regime, ``x' = x + A (x − m) + b·w + noise``, where w is the temperature anomaly
in units of 6 °C. Row i of A holds the effects of every species on the growth of species i.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from labmates.tasks.base import Difficulty
from labmates.tasks.data_errors import (
    blank,
    celsius_to_fahrenheit,
    repeat_rows,
    respell,
    slip_decimals,
    swap_letters,
)
from labmates.tasks.noise import DECIMALS, Floats, red_noise

SURVEYS_A_YEAR: Final = 26
HORIZON: Final = 26
"""Surveys after the last one averaged in the forecast: one year, so that the season cancels."""
BURN_IN: Final = 40
LEAST_CHANGE: Final = float(np.log(1.25))
"""A species is rarer or more common if its geometric mean changed by this factor: below 4/5, above 5/4."""
CLOSE: Final = 0.08
"""Within this distance of the bound, on the log scale, a species may be stated or not."""
DEGREES_A_UNIT: Final = 6.0
SEASON_DEGREES: Final = 8.0

# Invented names that sound real, but reveal no diet.
GENERA: Final = (
    *("Alvena", "Brusca", "Calvora", "Dentria", "Elomis", "Farquia", "Gelasta", "Hyberna", "Isolda", "Juncora"),
    *("Kalmeta", "Lothria", "Mirvana", "Nepora", "Ostrela", "Pravina", "Quillaea", "Rostema", "Selvina", "Tarquea"),
    *("Ulmora", "Varnella", "Wistria", "Xelora", "Ypresia", "Zantea"),
)
EPITHETS: Final = (
    *("acuta", "borealis", "cinerea", "decora", "elata", "fulva", "gracilis", "hirta", "ignota", "juncea", "lenta"),
    *("maculata", "nitida", "obscura", "pallida", "quieta", "rugosa", "sericea", "tenuis", "umbrosa", "varia"),
)
SITES: Final = (
    *("Alder Bend", "Birch Flat", "Cold Spring", "Dry Creek", "East Fen"),
    *("Fox Hollow", "Grey Bank", "High Meadow", "Long Reach", "Mill Pond"),
)
OBSERVERS: Final = ("AK", "BN", "JR", "MT", "SV")

SPELLINGS: Final[tuple[Callable[[str], str], ...]] = (
    str.upper,
    str.lower,
    lambda name: f" {name}  ",
    lambda name: name.replace(" ", "_"),
    lambda name: f"{name[0]}. {name.partition(' ')[2]}",
    swap_letters,
)


@dataclass(frozen=True)
class EcologyLevel:
    """Difficulty parameters of an ecology data set; pairs are inclusive ranges."""

    # Size of the data.
    species: tuple[int, int]
    sites: int
    surveys: int
    shifts: tuple[int, int]  # number of regime shifts
    # Strength of an interaction: change of the target's log growth per unit of the source's log abundance.
    effect: tuple[float, float]
    change: tuple[float, float]  # size of a regime shift's effect on a species, in log units (0.7 doubles or halves)
    onset: int  # duration of a shift, in surveys
    warmth: tuple[float, float]  # effect of 6 °C on the log growth of a responding species
    # Standard deviation of the noise in log growth, and the share of its variance common to all sites.
    process_noise: float
    shared_noise: float
    count_noise: float  # standard deviation of the log of the multiplicative error of a count
    # Shares: of empty counts, temperatures and visits; of decimal slips; of repeated rows; of respelled names.
    missing: float
    slips: float
    repeats: float
    respelled: float
    # Number of kinds of respelling (upper case, lower case, blanks, underscore, abbreviated genus, typing error).
    spellings: int
    fahrenheit_sites: int  # number of sites with a thermometer in °F for part of the time


LEVELS: Final[Mapping[Difficulty, EcologyLevel]] = {
    "easy": EcologyLevel(
        species=(5, 6), sites=6, surveys=156, shifts=(1, 1), effect=(0.20, 0.26), change=(0.9, 1.2), onset=1,
        warmth=(0.12, 0.16), process_noise=0.30, shared_noise=0.0, count_noise=0.05, missing=0.01, slips=0.002,
        repeats=0.005, respelled=0.02, spellings=3, fahrenheit_sites=1,
    ),
    "medium": EcologyLevel(
        species=(5, 7), sites=4, surveys=156, shifts=(1, 2), effect=(0.20, 0.26), change=(0.7, 0.9), onset=4,
        warmth=(0.05, 0.08), process_noise=0.40, shared_noise=0.15, count_noise=0.15, missing=0.05, slips=0.008,
        repeats=0.015, respelled=0.05, spellings=5, fahrenheit_sites=2,
    ),
    "hard": EcologyLevel(
        species=(6, 8), sites=4, surveys=156, shifts=(2, 2), effect=(0.18, 0.24), change=(0.65, 0.85), onset=5,
        warmth=(0.04, 0.06), process_noise=0.45, shared_noise=0.3, count_noise=0.20, missing=0.08, slips=0.015,
        repeats=0.03, respelled=0.10, spellings=6, fahrenheit_sites=3,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Community:
    """The true dynamics of S species."""

    species: tuple[str, ...]  # their names, sorted
    effects: Floats  # A, shape (S, S): row = target, column = source, without unit
    warmth: Floats  # b, shape (S,)
    shifts: tuple[int, ...]  # first survey of each shift, ascending
    typical: Floats  # typical log abundances m by regime, shape (len(shifts) + 1, S)


@dataclass(frozen=True)
class History:
    """The history of the sites."""

    log_abundance: Floats  # shape (surveys, sites, S)
    temperature: Floats  # shape (surveys, sites), in °C
    future: Floats  # expected mean abundance over the `HORIZON`, shape (S,), in individuals


def draw_community(level: EcologyLevel, rng: np.random.Generator) -> Community:
    """Draw species, interactions, responses to temperature and regime shifts."""
    n = int(rng.integers(level.species[0], level.species[1] + 1))
    genera = rng.permutation(len(GENERA))[:n]
    epithets = rng.permutation(len(EPITHETS))[:n]
    species = sorted(f"{GENERA[g]} {EPITHETS[e]}" for g, e in zip(genera, epithets, strict=True))
    shifts, typical = _draw_shifts(level, n, rng)
    warmth = np.zeros(n)
    responding = rng.permutation(n)[:3]
    warmth[responding] = np.round(rng.uniform(*level.warmth, size=3), 3) * np.array([1, -1, rng.choice([-1, 1])])
    return Community(tuple(species), _draw_effects(level, n, rng), warmth, shifts, typical)


def _draw_effects(level: EcologyLevel, n: int, rng: np.random.Generator) -> Floats:
    # Pairs lie on a ring, so that a species has at most two partners. With a self-effect near −0.6 the row sums of
    # |I + A| then stay below 1, so every community is stable.
    ring = rng.permutation(n)
    chosen = rng.permutation(n)[: n - 2]
    effects = np.diag(np.round(rng.uniform(-0.65, -0.55, size=n), 3))
    # Effect of the first on the second, and back: predation on the first; competition; help by the first.
    signs = ((1, -1), (-1, -1), (1, 0))
    for place, at in enumerate(chosen):
        first, second = ring[at], ring[(at + 1) % n]
        kind = place if place < 2 else int(rng.integers(3))
        size = np.round(rng.uniform(*level.effect, size=2), 3)
        effects[second, first] = signs[kind][0] * size[0]
        effects[first, second] = signs[kind][1] * size[1]
    return effects


def _draw_shifts(level: EcologyLevel, n: int, rng: np.random.Generator) -> tuple[tuple[int, ...], Floats]:
    count = int(rng.integers(level.shifts[0], level.shifts[1] + 1))
    spans = [(0.3, 0.7)] if count == 1 else [(0.22, 0.38), (0.6, 0.76)]
    shifts = tuple(int(level.surveys * rng.uniform(*span)) for span in spans)
    typical = np.tile(np.round(rng.uniform(4.0, 5.4, size=n), 3), (count + 1, 1))
    order = rng.permutation(n)
    affected = 4 // count  # two lose and two gain with one shift; one and one with each of two
    for k in range(count):
        for place, who in enumerate(order[k * affected : (k + 1) * affected]):
            change = round(float(rng.uniform(*level.change)), 3)
            typical[k + 1 :, who] += -change if place % 2 == 0 else change
    return shifts, typical


def simulate(community: Community, level: EcologyLevel, rng: np.random.Generator) -> History:
    """Simulate the surveyed time, and the expected abundances of the `HORIZON` after it."""
    n, total = len(community.species), level.surveys + BURN_IN
    common = np.sqrt(level.shared_noise) * rng.standard_normal((total, 1, n))
    local = np.sqrt(1 - level.shared_noise) * rng.standard_normal((total, level.sites, n))
    noise = level.process_noise * (common + local)
    site_means = rng.uniform(8.0, 14.0, size=level.sites)
    phase = rng.uniform(0, 2 * np.pi)
    season = SEASON_DEGREES * np.sin(2 * np.pi * np.arange(total + HORIZON) / SURVEYS_A_YEAR + phase)
    weather = 1.5 * red_noise(rng.standard_normal((total, 1)), 0.6)
    anomaly = season[:total, None] + weather + 0.7 * red_noise(rng.standard_normal((total, level.sites)), 0.6)
    typical = _typical_path(community, level) + rng.normal(0, 0.3, size=(1, level.sites, n))

    change = np.eye(n) + community.effects
    x = typical[0].copy()
    deviation = np.zeros_like(x)
    path = np.empty((total, level.sites, n))
    for t in range(total):
        path[t] = x
        deviation = (x - typical[t]) @ change.T + community.warmth * (anomaly[t, :, None] / DEGREES_A_UNIT)
        x = np.round(typical[t] + deviation + noise[t], DECIMALS)
    future = expected(community, level, typical[-1], deviation, season[total:])
    return History(path[BURN_IN:], site_means + anomaly[BURN_IN:], future)


def expected(community: Community, level: EcologyLevel, typical: Floats, deviation: Floats, season: Floats) -> Floats:
    """Expected mean abundance of each species over the horizon and the sites, shape (S,).

    `typical` and `deviation`, shape (sites, S), are the typical log abundances and the expected distance from them
    right after the last survey; `season` is the expected temperature anomaly in °C, shape (HORIZON,).
    """
    n = len(community.species)
    change, fresh = np.eye(n) + community.effects, level.process_noise**2 * np.eye(n)
    spread, means = fresh, []
    for degrees in season:
        # The mean of a log-normal variable is exp(mean + variance / 2) of its logarithm.
        means.append(np.exp(typical + deviation + np.diag(spread) / 2))
        deviation = deviation @ change.T + community.warmth * (degrees / DEGREES_A_UNIT)
        spread = change @ spread @ change.T + fresh
    mean: Floats = np.stack(means).mean(axis=(0, 1))
    return np.round(mean, 1)


def _typical_path(community: Community, level: EcologyLevel) -> Floats:
    """Typical log abundances, shape (BURN_IN + surveys, 1, S); a shift is linear over its onset."""
    path = np.tile(community.typical[0], (BURN_IN + level.surveys, 1))
    for k, start in enumerate(community.shifts):
        done = ramp(level.surveys, start, level.onset, BURN_IN)
        path = path + done[:, None] * (community.typical[k + 1] - community.typical[k])
    return path[:, None, :]


def ramp(surveys: int, start: int, onset: int, before: int = 0) -> Floats:
    """The part of a change that is done at each survey from -before on, shape (before + surveys,)."""
    return np.clip((np.arange(-before, surveys) - start + 1) / onset, 0, 1)


def changed(logs: Floats, community: Community, onset: int) -> tuple[list[str], list[str], list[str]]:
    """Species rarer and more common after the last change than before the first, and those too near the bounds to tell.

    Parameters
    ----------
    logs
        Log abundances or log counts, shape (surveys, sites, S).
    """
    first, last = community.shifts[0], community.shifts[-1] + onset
    change = (np.nanmean(logs[last:], axis=0) - np.nanmean(logs[:first], axis=0)).mean(axis=0)
    return (
        [name for name, value in zip(community.species, change, strict=True) if value < -LEAST_CHANGE],
        [name for name, value in zip(community.species, change, strict=True) if value > LEAST_CHANGE],
        [name for name, value in zip(community.species, change, strict=True) if abs(abs(value) - LEAST_CHANGE) < CLOSE],
    )


def survey_frame(
    community: Community, history: History, level: EcologyLevel, rng: np.random.Generator
) -> tuple[pd.DataFrame, Floats]:
    """The observers' table: one row per survey, site and species, with the errors of real data.

    Also the counts before slips and repeats, shape (surveys, sites, S), NaN where there is none.
    """
    shape = history.log_abundance.shape
    error = np.exp(rng.normal(0, level.count_noise, size=shape) - level.count_noise**2 / 2)
    counts = np.round(blank(np.exp(history.log_abundance) * error, level.missing, rng))
    written = np.round(slip_decimals(counts, level.slips, rng))
    temperature = blank(_thermometers(history.temperature, level, rng), level.missing, rng)
    rain = np.round(rng.gamma(2.0, 9.0, size=shape[:2]), 1)
    survey, site, who = (index.ravel() for index in np.indices(shape))
    places = [SITES[i] for i in np.sort(rng.permutation(len(SITES))[: level.sites])]
    observer = rng.integers(len(OBSERVERS), size=shape[:2])
    first = datetime.date(2001 + int(rng.integers(15)), 1, 8)
    dates = [(first + datetime.timedelta(days=14 * t)).isoformat() for t in range(shape[0])]
    names = [community.species[i] for i in who]
    frame = pd.DataFrame(
        {
            "survey": survey,
            "date": [dates[t] for t in survey],
            "site": respell([places[i] for i in site], level.respelled / 2, SPELLINGS[:3], rng),
            "observer": [OBSERVERS[i] for i in observer[survey, site]],
            "species": respell(names, level.respelled, SPELLINGS[: level.spellings], rng),
            "count": written.ravel(),
            "temperature": np.round(temperature, 1)[survey, site],
            "rainfall_mm": rain[survey, site],
        }
    )
    visited = rng.random(shape[:2]) >= level.missing
    counts[~visited] = np.nan
    return repeat_rows(frame[visited[survey, site]].reset_index(drop=True), level.repeats, rng), counts


def _thermometers(celsius: Floats, level: EcologyLevel, rng: np.random.Generator) -> Floats:
    given = celsius.copy()
    for site in rng.permutation(celsius.shape[1])[: level.fahrenheit_sites]:
        start = int(rng.integers(10, celsius.shape[0] - 50))
        span = slice(start, start + int(rng.integers(25, 50)))
        given[span, site] = celsius_to_fahrenheit(celsius[span, site])
    return given
