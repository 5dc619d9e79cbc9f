"""The ideal analysis of a biomarker trial: whoever knows its structure estimates its numbers from the written records.

Known are which markers matter and where, the subtypes' profiles, units, batch shifts, detection limits and the course
of missing outcomes; estimated are effects, shares and means.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from labmates.tasks.biomarker.data import Cohort, Trial, TrialLevel
from labmates.tasks.biomarker.findings import BiomarkerFindings, BiomarkerTruth, MarkerEffect, Subtype
from labmates.tasks.biomarker.records import LACK, NOT_DONE, Laboratory
from labmates.tasks.noise import Floats

FARTHEST = 4.0
"""A measured level this many standard deviations off is a slip of the decimal point."""


def ideal_findings(
    frame: pd.DataFrame, truth: BiomarkerTruth, trial: Trial, cohort: Cohort, laboratory: Laboratory, level: TrialLevel
) -> BiomarkerFindings:
    """What the table allows to state at best."""
    table = frame.drop_duplicates("patient").sort_values("patient").reset_index(drop=True)
    marker = _expected_levels(_measured(table, trial, laboratory), level.assay_noise)
    improvement = table["improvement"].replace(NOT_DONE, np.nan)
    y = (improvement * np.sign(improvement.groupby(cohort.site).transform("median"))).to_numpy(dtype=float)
    stayed = np.abs(y - np.nanmean(y)) < 6 * np.nanstd(y)
    treated = cohort.treated.astype(float)
    main, apart = np.flatnonzero(trial.prognostic), np.flatnonzero(trial.predictive)
    others = np.column_stack([cohort.site[:, None] == np.unique(cohort.site), cohort.score, cohort.age, cohort.smoker])
    design = np.column_stack([marker[:, main], treated, treated[:, None] * marker[:, apart], others])
    poor = LACK * (np.nanmean(y) - y[stayed]) / np.nanstd(y)
    # Who stayed stands for those like him who left: the inverse of the chance to stay.
    weight = np.sqrt(1 + np.exp(poor) / (1 / level.dropout - 1))
    beta = np.linalg.lstsq(design[stayed] * weight[:, None], y[stayed] * weight, rcond=None)[0]
    whole = np.where(stayed, y, design @ beta)
    effect = beta[len(main)] + marker[:, apart] @ beta[len(main) + 1 :][: len(apart)]
    profiles = np.stack([cohort.level[cohort.subtype == k].mean(axis=0) for k in range(len(trial.shares))])
    groups = beta[len(main)] + profiles[:, apart] @ beta[len(main) + 1 :][: len(apart)]
    shares = _shares(marker, profiles, cohort)
    return BiomarkerFindings(
        n_patients=truth.n_patients,
        average_treatment_effect=float(whole[cohort.treated].mean() - whole[~cohort.treated].mean()),
        prognostic_markers=_stated(trial, main, beta),
        predictive_markers=_stated(trial, apart, beta[len(main) + 1 :]),
        benefit_share=float((effect > 0).mean()),
        n_subtypes=len(truth.subtypes),
        subtypes=[
            Subtype(share=share, high=kind.high, low=kind.low, treatment_effect=gain)
            for kind, share, gain in zip(truth.subtypes, shares.tolist(), groups.tolist(), strict=True)
        ],
        batch_markers=truth.batch_markers,
        other_unit_markers=truth.other_unit_markers,
    )


def _stated(trial: Trial, members: np.ndarray[tuple[int], np.dtype[np.int64]], beta: Floats) -> list[MarkerEffect]:
    return [
        MarkerEffect(marker=trial.markers[j], sign="+" if points > 0 else "-", size=abs(points))
        for j, points in zip(members.tolist(), beta.tolist(), strict=False)
    ]


def _measured(table: pd.DataFrame, trial: Trial, laboratory: Laboratory) -> Floats:
    """Log levels without units and batches, shape (N, M); a level below the limit has its expectation."""
    batch = table["batch"].str[1:].astype(int).to_numpy() - 1
    columns = []
    for j, name in enumerate(trial.markers):
        text = table[name].astype(str)
        small = text.str.startswith("<").to_numpy()
        amount = pd.to_numeric(text.str.lstrip("<"), errors="coerce").to_numpy(dtype=float)
        amount = np.where(laboratory.other_unit[batch, j], amount / trial.assays[j].factor, amount)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.log(amount / laboratory.median[j]) / laboratory.spread[j] - laboratory.shift[batch, j]
        # The mean of a standard normal variable below z (Mills' ratio, bounded) stands for what is below the limit.
        z = np.where(small, np.minimum(z, 0) - 0.45, z)
        columns.append(np.where(np.abs(z) < FARTHEST, z, np.nan))
    return np.stack(columns, axis=1)


def _expected_levels(measured: Floats, error: float) -> Floats:
    """Expectation of the true levels given what was measured, for normal levels and a known error; shape (N, M)."""
    mean = np.nanmean(measured, axis=0)
    both = pd.DataFrame(measured).cov().to_numpy()
    true = both - error**2 * np.eye(len(both))
    levels = np.tile(mean, (len(measured), 1))
    known = ~np.isnan(measured)
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for at, pattern in enumerate(patterns):
        rows = which.ravel() == at
        if pattern.any():
            weights = np.linalg.solve(both[np.ix_(pattern, pattern)], true[pattern])
            levels[rows] += (measured[np.ix_(rows, pattern)] - mean[pattern]) @ weights
    return levels


def _shares(marker: Floats, profiles: Floats, cohort: Cohort) -> Floats:
    """The shares of largest likelihood of subtypes with known profiles, shape (K,)."""
    within = np.cov((marker - profiles[cohort.subtype]).T) + 1e-3 * np.eye(marker.shape[1])
    weights = np.linalg.solve(within, profiles.T)
    likely = marker @ weights - np.einsum("km,mk->k", profiles, weights) / 2
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    shares = np.full(len(profiles), 1 / len(profiles))
    for _ in range(200):
        chance = likely * shares
        shares = (chance / chance.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.asarray(shares)
