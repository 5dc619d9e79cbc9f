"""Records of the biomarker trial's sites and laboratory, with the errors of real records."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from labmates.tasks.biomarker.data import DAYS, MARKERS, Cohort, Integers, Trial, TrialLevel
from labmates.tasks.data_errors import blank, repeat_rows, respell, slip_decimals, swap_letters
from labmates.tasks.noise import DECIMALS, Floats

SITES: Final = (
    *("Ashgrove", "Bellmere", "Carrow Park", "Dunhaven", "Eastlea", "Fernhill", "Glenmoor"),
    *("Harrowby", "Inverdale", "Kingsbridge", "Larkfield", "Millbrook", "Northcote", "Oakhurst"),
)
BATCHES: Final = 15
NOT_DONE: Final = -99.0
KILOS_A_POUND: Final = 0.45359237
LACK: Final = 0.5
"""Change of the log odds (or log probability) of a missing value per standard deviation of its cause."""

_CASES: Final[tuple[Callable[[str], str], ...]] = (str.upper, str.title, lambda word: f"{word} ")
_PLACES: Final[tuple[Callable[[str], str], ...]] = (*_CASES, str.lower, swap_letters)
_WORDS: Final = {"F": "female", "M": "male"}


@dataclass(frozen=True)
class Laboratory:
    """The laboratory's measurements of M markers in B batches."""

    # Shape (M,): median concentration in the assay's unit, and standard deviation of its natural logarithm.
    median: Floats
    spread: Floats
    limit: Floats  # shape (M,): detection limit in the assay's unit; 0 for markers without one
    shift: Floats  # shape (B, M): shift of the log level in each batch, in standard deviations; 0 for most markers
    other_unit: npt.NDArray[np.bool_]  # shape (B, M): whether the batch reports the marker in the assay's other unit


def draw_laboratory(trial: Trial, level: TrialLevel, rng: np.random.Generator) -> Laboratory:
    """Draw scales, detection limits, batch effects and mixed-up units of the markers."""
    spread = np.array([rng.uniform(*assay.spread) for assay in trial.assays])
    median = np.array([_rounded(math.exp(rng.uniform(*np.log(assay.median)))) for assay in trial.assays])
    limit = np.zeros(MARKERS)
    for j in rng.permutation(MARKERS)[: level.limited]:
        lowest = NormalDist().inv_cdf(rng.uniform(*level.below))
        limit[j] = _rounded(float(median[j]) * math.exp(spread[j] * lowest))
    shift = np.zeros((BATCHES, MARKERS))
    shifted = rng.permutation(MARKERS)[: level.batch_markers]
    draws = rng.standard_normal((BATCHES, level.batch_markers))
    shift[:, shifted] = level.batch_shift * (draws - draws.mean(axis=0)) / draws.std(axis=0)
    other = np.zeros((BATCHES, MARKERS), dtype=bool)
    for j in rng.permutation(MARKERS)[: level.other_units]:
        other[rng.permutation(BATCHES)[: int(rng.integers(1, 4))], j] = True
    return Laboratory(median, spread, limit, np.round(shift, DECIMALS), other)


def _rounded(value: float) -> float:
    """Round to two significant digits."""
    return round(value, 1 - math.floor(math.log10(value)))


def trial_frame(
    trial: Trial, cohort: Cohort, laboratory: Laboratory, level: TrialLevel, rng: np.random.Generator
) -> pd.DataFrame:
    """The trial's table: one row per patient, some repeated."""
    batch = _batches(cohort)
    sick = LACK * (cohort.score - cohort.score.mean()) / cohort.score.std()
    lost = rng.random(len(batch)) < level.lost_tubes * np.exp(sick)
    columns = _patients(cohort, level, rng)
    columns["batch"] = [f"B{b + 1:02d}" for b in batch]
    columns["score_baseline"] = _noted(np.round(cohort.score), level.missing / 3, level, rng)
    columns |= _measurements(trial, cohort, laboratory, level, batch, lost, rng)
    columns["improvement"] = _outcome(cohort, level, rng)
    frame = repeat_rows(pd.DataFrame(columns), level.repeats, rng)
    # Repeated rows have their words typed again.
    frame["site"] = respell(frame["site"].tolist(), level.respelled / 2, _PLACES, rng)
    frame["sex"] = respell(frame["sex"].tolist(), level.respelled, (str.lower, _WORDS.__getitem__), rng)
    frame["arm"] = respell(frame["arm"].tolist(), level.respelled, _CASES, rng)
    return frame


def _batches(cohort: Cohort) -> Integers:
    """The assay batch of each patient: samples were measured in the order of enrolment."""
    order = np.argsort(cohort.day, kind="stable").argsort(kind="stable")
    return order * BATCHES // len(order)


def _patients(cohort: Cohort, level: TrialLevel, rng: np.random.Generator) -> dict[str, Sequence[object] | Floats]:
    n = len(cohort.site)
    count = np.bincount(cohort.site)
    number = np.arange(n) - np.repeat(np.cumsum(count) - count, count) + 1
    first = datetime.date(2008 + int(rng.integers(11)), int(rng.integers(1, 13)), 1)
    first -= datetime.timedelta(days=first.weekday())
    days = [first + datetime.timedelta(days=d % 5 + d // 5 * 7) for d in range(DAYS)]
    names = [SITES[k] for k in np.sort(rng.permutation(len(SITES))[: len(count)])]
    pounds = np.isin(cohort.site, rng.permutation(len(count))[: level.pound_sites])
    weight = np.where(pounds, cohort.weight / KILOS_A_POUND, cohort.weight)
    return {
        "patient": [f"{s + 1:02d}-{k:04d}" for s, k in zip(cohort.site, number, strict=True)],
        "site": [names[s] for s in cohort.site],
        "enrolled": [days[d].isoformat() for d in cohort.day],
        "age": np.floor(cohort.age).astype(np.int64).tolist(),
        "sex": ["F" if female else "M" for female in cohort.female],
        "smoker": ["yes" if smoker else "no" for smoker in cohort.smoker],
        "height_cm": _noted(np.round(cohort.height), level.missing / 2, level, rng),
        "weight": _noted(weight.round(1), level.missing / 2, level, rng),
        "arm": ["active" if treated else "placebo" for treated in cohort.treated],
    }


def _noted(values: Floats, share: float, level: TrialLevel, rng: np.random.Generator) -> Floats:
    """A site's records: some values empty, some marked as not done."""
    return blank(blank(values, share, rng), level.missing / 10, rng, mark=NOT_DONE)


def _outcome(cohort: Cohort, level: TrialLevel, rng: np.random.Generator) -> Floats:
    """The improvement of patients who stayed, turned at some sites; a poor one makes dropout more likely."""
    poor = LACK * (cohort.improvement.mean() - cohort.improvement) / cohort.improvement.std()
    chance, drawn = 1 / (1 + (1 / level.dropout - 1) * np.exp(-poor)), rng.random(len(poor))
    written = slip_decimals(np.round(cohort.improvement, 1), level.slips, rng)
    turned = np.isin(cohort.site, rng.permutation(int(cohort.site.max()) + 1)[: level.turned_sites])
    written = np.where(turned, -written, written)
    # Raw means and correlations survive neither the turned sites nor the number that marks half of the leavers.
    return np.where(drawn < chance / 2, NOT_DONE, np.where(drawn < chance, np.nan, np.round(written, 1)))


def _measurements(
    trial: Trial,
    cohort: Cohort,
    laboratory: Laboratory,
    level: TrialLevel,
    batch: Integers,
    lost: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> dict[str, Sequence[object] | Floats]:
    error = level.assay_noise * rng.standard_normal(cohort.level.shape)
    measured = cohort.level + laboratory.shift[batch] + error
    amount = slip_decimals(laboratory.median * np.exp(laboratory.spread * measured), level.slips, rng)
    # Samples above an assay's range are often not remeasured; some assays fail more often than others.
    chance = 2 * level.missing * rng.uniform(0.3, 1.7, size=MARKERS) / (1 + np.exp(-LACK * cohort.level))
    undone = (rng.random(amount.shape) < chance) | lost[:, None]
    columns: dict[str, Sequence[object] | Floats] = {}
    for j, marker in enumerate(trial.markers):
        other = laboratory.other_unit[batch, j]
        decimals = max(0, 2 - math.floor(math.log10(laboratory.median[j])))
        columns[marker] = _written(
            amount[:, j], float(laboratory.limit[j]), other, trial.assays[j].factor, decimals, undone[:, j]
        )
    return columns


def _written(
    amount: Floats,
    limit: float,
    other: npt.NDArray[np.bool_],
    factor: float,
    decimals: int,
    undone: npt.NDArray[np.bool_],
) -> Sequence[object] | Floats:
    """The written values of one marker; text if some are below the detection limit."""
    shown = np.round(amount, decimals)
    more = max(0, decimals - round(math.log10(factor)))
    shown = np.where(other, np.round(shown * factor, more), shown)
    if not (limit and (amount < limit).any()):
        return np.where(undone, np.nan, shown)
    ways = {False: (decimals, f"<{limit:g}"), True: (more, f"<{limit * factor:g}")}
    return [
        None if lacks else ways[turned][1] if small else f"{value:.{ways[turned][0]}f}"
        for value, small, turned, lacks in zip(
            shown.tolist(), (amount < limit).tolist(), other.tolist(), undone.tolist(), strict=True
        )
    ]
