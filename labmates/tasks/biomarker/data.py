"""The biomarker task's data: a randomised trial, its patients with hidden subtypes, and their outcomes.

The log level of marker j in patient i, in within-subtype standard deviations, is ``shift[subtype_i, j] + loading_j ·
pathway_i + covariates + residual``, standardised over all patients to z. With T = 1 under treatment and 0 under
placebo, a patient's improvement is ``course + site + covariates + z·prognostic + T · (effect + z·predictive) + noise``,
in points of a symptom score from 0 to 100. `labmates.tasks.biomarker.records` makes the written records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from labmates.tasks.base import Difficulty
from labmates.tasks.noise import DECIMALS, Floats

Integers = npt.NDArray[np.int64]

MARKERS: Final = 24
PATHWAYS: Final = 5
SIGNATURE: Final = 4
"""Number of markers that distinguish a subtype; no marker distinguishes two."""
COURSE: Final = 8.0
"""Improvement of an average patient under placebo, in points."""
SCORE: Final = 58.0
"""Mean symptom score at the start, in points from 0 (none) to 100."""
AGE: Final = 54.0
BY_SCORE, BY_AGE, BY_SMOKING = 0.3, -0.08, -1.5
"""Improvement in points: per point of the score at the start, per year of age, and for smokers."""
SITES: Final = (10, 14)
BLOCK: Final = 4
"""Block size of the randomisation within a site, half per arm."""
DAYS: Final = 390
"""Working days of enrolment, five a week."""


class Assay(NamedTuple):
    """A way to measure markers."""

    letters: str  # prefix of its markers' names
    method: str
    unit: str
    # Ranges of the median concentration in its unit, and of the standard deviation of its natural logarithm.
    median: tuple[float, float]
    spread: tuple[float, float]
    factor: float  # conversion factor to another usual unit


ASSAYS: Final = (
    Assay("EL", "immunoassay", "pg/mL", (6, 400), (0.55, 0.95), 1e-3),
    Assay("LX", "bead array", "ng/mL", (3, 90), (0.50, 0.90), 1e3),
    Assay("MS", "mass spectrometry", "nmol/L", (15, 400), (0.35, 0.60), 1e-3),
    Assay("CC", "clinical chemistry", "mg/L", (2, 60), (0.40, 0.90), 1e-1),
)


@dataclass(frozen=True)
class TrialLevel:
    """Difficulty parameters of a biomarker data set.

    Pairs are inclusive ranges. "sd" is the standard deviation of a marker's log level over the patients.
    """

    # Size of the trial, and number of hidden subtypes.
    patients: tuple[int, int]
    subtypes: tuple[int, int]
    # Distance of a subtype's mean from the overall mean, for each marker of its signature, in within-subtype standard
    # deviations.
    separation: tuple[float, float]
    # Points per sd of a marker: of improvement in both arms; of treatment effect.
    prognostic: tuple[float, float]
    predictive: tuple[float, float]
    noise: float  # residual standard deviation of a patient's improvement, in points
    assay_noise: float  # standard deviation of the measurement error, in sd
    # Number of markers whose level differs between assay batches, and the standard deviation of the shifts, in sd.
    batch_markers: int
    batch_shift: float
    # Number of markers with a detection limit, and the share of their values below it.
    limited: int
    below: tuple[float, float]
    # Shares: of single measurements not done (on average over the markers), of patients without any marker, of patients
    # without outcome. High levels, sick patients and poor outcomes are missing more often.
    missing: float
    lost_tubes: float
    dropout: float
    # Number of markers that some batches report in another unit, of sites that weigh in pounds, and of sites that write
    # the improvement with the opposite sign.
    other_units: int
    pound_sites: int
    turned_sites: int
    # Shares of decimal slips, repeated rows and respelled words.
    slips: float
    repeats: float
    respelled: float


LEVELS: Final[Mapping[Difficulty, TrialLevel]] = {
    "easy": TrialLevel(
        patients=(2700, 3000), subtypes=(3, 5), separation=(1.25, 1.55), prognostic=(2.4, 3.6), predictive=(3.4, 4.8),
        noise=9.0, assay_noise=0.10, batch_markers=2, batch_shift=0.3, limited=2, below=(0.03, 0.06), missing=0.01,
        lost_tubes=0.01, dropout=0.06, other_units=1, pound_sites=1, turned_sites=1, slips=0.001, repeats=0.005,
        respelled=0.02,
    ),
    "medium": TrialLevel(
        patients=(2500, 2800), subtypes=(3, 5), separation=(0.63, 0.77), prognostic=(1.2, 1.7), predictive=(1.8, 2.5),
        noise=11.0, assay_noise=0.20, batch_markers=4, batch_shift=0.45, limited=4, below=(0.06, 0.15), missing=0.03,
        lost_tubes=0.03, dropout=0.11, other_units=3, pound_sites=2, turned_sites=3, slips=0.003, repeats=0.012,
        respelled=0.05,
    ),
    "hard": TrialLevel(
        patients=(2300, 2600), subtypes=(3, 5), separation=(0.58, 0.72), prognostic=(1.0, 1.4), predictive=(1.5, 2.1),
        noise=12.0, assay_noise=0.30, batch_markers=6, batch_shift=0.6, limited=6, below=(0.12, 0.28), missing=0.05,
        lost_tubes=0.06, dropout=0.16, other_units=5, pound_sites=3, turned_sites=4, slips=0.006, repeats=0.02,
        respelled=0.10,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """The truth of a trial with M markers and K subtypes."""

    # Name (column) and assay of each marker.
    markers: tuple[str, ...]
    assays: tuple[Assay, ...]
    # Shape (M,): a marker's pathway, and its correlation with it within a subtype.
    pathway: Integers
    loading: Floats
    # Shape (M,): change of a marker for 12 years of age, and difference of women from men, in within-subtype standard
    # deviations.
    by_age: Floats
    by_sex: Floats
    # Shapes (K,) and (K, M): share of a subtype, and its shifts in within-subtype standard deviations.
    shares: Floats
    shift: Floats
    # Shape (M,): points of improvement, and of treatment effect, per sd; 0 for most.
    prognostic: Floats
    predictive: Floats
    effect: float  # treatment effect at average marker levels, in points


@dataclass(frozen=True)
class Cohort:
    """N patients, ordered by site and day of enrolment."""

    # Shape (N,): index of the site, working days since the trial began, whether treated, index of the hidden subtype.
    site: Integers
    day: Integers
    treated: npt.NDArray[np.bool_]
    subtype: Integers
    # Shape (N,): in years, as booleans, in cm and kg.
    age: Floats
    female: npt.NDArray[np.bool_]
    smoker: npt.NDArray[np.bool_]
    height: Floats
    weight: Floats
    score: Floats  # shape (N,): symptom score at the start, in points
    level: Floats  # shape (N, M): true log levels z of the markers
    # Shape (N,): expected effect of the treatment, and improvement under the arm at hand, in points.
    benefit: Floats
    improvement: Floats


def draw_trial(level: TrialLevel, rng: np.random.Generator) -> Trial:
    """Draw markers, subtypes and effects; the treatment effect is largest in one subtype, smallest in another."""
    kinds = np.sort(np.concatenate([np.arange(MARKERS // 2) % len(ASSAYS), rng.integers(len(ASSAYS), size=12)]))
    numbers = 101 + rng.permutation(899)[:MARKERS]
    count = int(rng.integers(level.subtypes[0], level.subtypes[1] + 1))
    weights = rng.uniform(1.0, 2.2, size=count)
    shares = np.round(weights / weights.sum(), DECIMALS)
    signature = rng.permutation(MARKERS)[: count * SIGNATURE].reshape(count, SIGNATURE)
    shift = _draw_shifts(level, shares, signature, rng)
    prognostic, predictive = _draw_effects(level, shift, rng)
    return Trial(
        markers=tuple(f"{ASSAYS[k].letters}{number}" for k, number in zip(kinds, numbers, strict=True)),
        assays=tuple(ASSAYS[k] for k in kinds),
        pathway=rng.permutation(MARKERS) % PATHWAYS,
        loading=np.where(rng.random(MARKERS) < 0.8, rng.uniform(0.4, 0.8, size=MARKERS), 0.0),
        by_age=np.where(rng.random(MARKERS) < 0.3, rng.uniform(-0.25, 0.25, size=MARKERS), 0.0),
        by_sex=np.where(rng.random(MARKERS) < 0.3, rng.uniform(-0.4, 0.4, size=MARKERS), 0.0),
        shares=shares,
        shift=shift,
        prognostic=prognostic,
        predictive=predictive,
        effect=round(float(rng.uniform(2.0, 7.0)), 2),
    )


def _draw_shifts(level: TrialLevel, shares: Floats, signature: Integers, rng: np.random.Generator) -> Floats:
    shift = np.zeros((len(shares), MARKERS))
    for k, members in enumerate(signature):
        sign = np.array([1.0, -1.0, *rng.choice([-1.0, 1.0], size=SIGNATURE - 2)])
        # A shift also moves the overall mean, by the subtype's share.
        shift[k, members] = sign * rng.uniform(*level.separation, size=SIGNATURE) / (1 - shares[k])
    return shift


def _draw_effects(level: TrialLevel, shift: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw 4 to 6 prognostic and 3 or 4 predictive markers; one of the predictive ones is prognostic too."""
    # Two markers of the first subtype raise its treatment effect, one marker of the second lowers that one's.
    more, less = (np.flatnonzero(row)[rng.permutation(SIGNATURE)] for row in shift[:2])
    others = np.setdiff1d(np.arange(MARKERS), [*more[:2], less[0]])[rng.permutation(MARKERS - 3)]
    extra, own = int(rng.integers(2)), int(rng.integers(3, 6))
    chosen = np.array([*more[:2], less[0], *others[:extra]])
    signs = np.array([*np.sign(shift[0, more[:2]]), -np.sign(shift[1, less[0]]), *rng.choice([-1.0, 1.0], size=extra)])
    prognostic, predictive = np.zeros(MARKERS), np.zeros(MARKERS)
    predictive[chosen] = np.round(rng.uniform(*level.predictive, size=len(chosen)) * signs, 2)
    chosen = np.array([chosen[-1], *others[extra : extra + own]])
    prognostic[chosen] = np.round(rng.uniform(*level.prognostic, size=len(chosen)) * _signs(len(chosen), rng), 2)
    return prognostic, predictive


def _signs(count: int, rng: np.random.Generator) -> Floats:
    """Signs in random order, at least one of each."""
    return rng.permutation(np.array([1.0, -1.0, *rng.choice([-1.0, 1.0], size=count - 2)]))


def draw_cohort(trial: Trial, level: TrialLevel, rng: np.random.Generator) -> Cohort:
    """Draw and randomise the patients, and simulate the trial."""
    n = int(rng.integers(level.patients[0], level.patients[1] + 1))
    sites = int(rng.integers(SITES[0], SITES[1] + 1))
    weights = rng.gamma(4.0, 1.0, size=sites) + 1.0
    site = np.sort(np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(n)))
    day = np.floor(DAYS * np.sqrt(rng.random(n))).astype(np.int64)  # enrolment gathers speed
    day = day[np.lexsort((day, site))]
    subtype = np.searchsorted(np.cumsum(trial.shares)[:-1], rng.random(n))
    female, smoker = rng.random(n) < 0.56, rng.random(n) < 0.21
    age = np.clip(AGE + rng.normal(0, 2.5, size=sites)[site] + 12 * rng.standard_normal(n), 18, 85)
    height = np.where(female, 163.5, 176.5) + 6.8 * rng.standard_normal(n)
    weight = np.maximum(27.2 * (height / 100) ** 2 * np.exp(0.17 * rng.standard_normal(n)), 38)
    pathways = rng.standard_normal((n, PATHWAYS))
    score = np.clip(SCORE + 4 * pathways[:, 0] + 10 * rng.standard_normal(n), 30, 96)
    marker = _levels(trial, subtype, (age - AGE) / 12, female, pathways, rng)
    treated = _randomise(site, rng)
    benefit = np.round(trial.effect + marker @ trial.predictive, DECIMALS)
    expected = COURSE + rng.normal(0, 1.8, size=sites)[site] + marker @ trial.prognostic + treated * benefit
    expected = expected + BY_SCORE * (score - SCORE) + BY_AGE * (age - AGE) + BY_SMOKING * smoker
    change = np.clip(expected + level.noise * rng.standard_normal(n), score - 100, score)
    return Cohort(
        site, day, treated, subtype, age, female, smoker, height, weight, score, marker, benefit,
        np.round(change, DECIMALS),
    )  # fmt: skip


def _levels(
    trial: Trial,
    subtype: Integers,
    age: Floats,
    female: npt.NDArray[np.bool_],
    pathways: Floats,
    rng: np.random.Generator,
) -> Floats:
    own = np.sqrt(1 - trial.loading**2) * rng.standard_normal((len(subtype), MARKERS))
    level = trial.shift[subtype] + trial.loading * pathways[:, trial.pathway] + own
    level = np.round(level + age[:, None] * trial.by_age + female[:, None] * trial.by_sex, DECIMALS)
    standard: Floats = np.round((level - level.mean(axis=0)) / level.std(axis=0), DECIMALS)
    return standard


def _randomise(site: Integers, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """The treatment arm: half of each block of successive patients of a site."""
    count = np.bincount(site)
    place = np.arange(len(site)) - np.repeat(np.cumsum(count) - count, count)
    blocks = rng.random((len(count), int(count.max()) // BLOCK + 1, BLOCK)).argsort(axis=2) < BLOCK // 2
    return np.asarray(blocks[site, place // BLOCK, place % BLOCK])
