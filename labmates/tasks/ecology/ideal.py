"""The ideal analysis of an ecology data set: one regression for each species, with the true terms.

Known are the terms of the dynamics, the duration of a change and the noise of counts; estimated from the counts are the
coefficients, the begin of each change, and from both the forecast.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labmates.tasks.ecology.data import (
    DEGREES_A_UNIT,
    SURVEYS_A_YEAR,
    Community,
    EcologyLevel,
    History,
    changed,
    expected,
    ramp,
)
from labmates.tasks.ecology.findings import EcologyFindings, EcologyTruth, Forecast, Interaction
from labmates.tasks.noise import Floats

WINDOW = 15
"""Surveys around the true begin of a change among which it is looked for."""


def ideal_findings(
    truth: EcologyTruth, community: Community, history: History, counts: Floats, level: EcologyLevel
) -> EcologyFindings:
    """What the counts allow to state at best; `counts` has the shape (surveys, sites, S), NaN where there is none."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(counts, 0.5)) + level.count_noise**2 / 2
    warmth = history.temperature - history.temperature.mean(axis=0)
    fit = _Fit(community, _filled(logs, community, level), logs, warmth / DEGREES_A_UNIT, level)
    starts = list(community.shifts)
    for k in range(len(starts)):
        tried = range(max(starts[k] - WINDOW, 1), min(starts[k] + WINDOW, len(logs) - level.onset))
        loss = [fit.misfit([*starts[:k], start, *starts[k + 1 :]], k) for start in tried]
        starts[k] = tried[int(np.argmin(loss))]
    down, up, _ = changed(logs, community, level.onset)
    found = fit.community(starts)
    typical, deviation = fit.last(found)
    years = warmth[: len(warmth) // SURVEYS_A_YEAR * SURVEYS_A_YEAR].mean(axis=1).reshape(-1, SURVEYS_A_YEAR)
    future = expected(found, level, typical, deviation, np.roll(years.mean(axis=0), -(len(warmth) % SURVEYS_A_YEAR)))
    place = {name: i for i, name in enumerate(community.species)}
    return EcologyFindings(
        n_species=len(community.species),
        shift_surveys=starts,
        declining_species=down,
        increasing_species=up,
        interactions=[
            Interaction(source=effect.source, target=effect.target, sign="+" if value > 0 else "-", strength=abs(value))
            for effect in truth.interactions
            for value in [float(found.effects[place[effect.target], place[effect.source]])]
        ],
        warmth_gains=truth.warmth_gains,
        warmth_loses=truth.warmth_loses,
        forecast=[
            Forecast(species=name, abundance=value)
            for name, value in zip(community.species, future.tolist(), strict=True)
        ],
    )


def _filled(logs: Floats, community: Community, level: EcologyLevel) -> Floats:
    """Log counts with the expectation given the survey before in place of missing ones."""
    filled, change = logs.copy(), np.eye(len(community.species)) + community.effects
    middle = np.nanmean(logs, axis=0)
    filled[0] = np.where(np.isnan(logs[0]), middle, logs[0])
    del level
    for t in range(1, len(logs)):
        filled[t] = np.where(np.isnan(logs[t]), middle + (filled[t - 1] - middle) @ change.T, logs[t])
    return filled


class _Fit:
    """Regressions of the next log abundance on the true terms, with the noise of counts taken out of the moments."""

    def __init__(self, community: Community, filled: Floats, logs: Floats, warmth: Floats, level: EcologyLevel) -> None:
        self._true, self._filled, self._logs, self._warmth, self._level = community, filled, logs, warmth, level
        self._moved = np.diff(community.typical, axis=0) != 0

    def _solve(self, i: int, starts: list[int], error: float) -> tuple[Floats, float, list[int], int]:
        """Coefficients of species `i`, the mean square of what is left, its sources, and the number of ramps."""
        surveys, sites, _ = self._logs.shape
        sources = np.flatnonzero(self._true.effects[i]).tolist()
        ramps = np.stack([ramp(surveys, start, self._level.onset) for start in starts], axis=1)
        linked = self._moved[:, sources].any(axis=1)
        ramps = ramps[:, linked]
        columns = [self._filled[:-1, :, j].ravel() for j in sources]
        columns += [self._warmth[:-1].ravel()] * bool(self._true.warmth[i])
        columns += [np.repeat(ramps[:-1, k], sites) for k in range(ramps.shape[1])]
        columns += list(np.tile(np.eye(sites), (surveys - 1, 1)).T)
        x, y = np.stack(columns, axis=1), self._logs[1:, :, i].ravel()
        known = ~np.isnan(y)
        x, y = x[known], y[known]
        moments = x.T @ x
        moments[range(len(sources)), range(len(sources))] -= len(x) * error**2
        beta = np.linalg.solve(moments, x.T @ y)
        return np.asarray(beta, float), float(((y - x @ beta) ** 2).mean()), sources, int(linked.sum())

    def misfit(self, starts: list[int], k: int) -> float:
        """How badly the changes at `starts` fit the species that the change number `k` moves."""
        felt = np.flatnonzero(self._true.effects @ self._moved[k])
        return float(sum(np.log(self._solve(i, starts, 0.0)[1]) for i in felt.tolist()))

    def community(self, starts: list[int]) -> Community:
        """The community with the estimated coefficients; `typical` has the levels after the last change by site."""
        n, sites = len(self._true.species), self._logs.shape[1]
        effects, warmth, constant = np.zeros((n, n)), np.zeros(n), np.zeros((sites, n))
        for i in range(n):
            beta, _, sources, ramps = self._solve(i, starts, self._level.count_noise)
            effects[i, sources] = beta[: len(sources)]
            effects[i, i] -= 1
            place = len(sources)
            if self._true.warmth[i]:
                warmth[i] = beta[place]
                place += 1
            constant[:, i] = beta[place + ramps :] + beta[place : place + ramps].sum()
        typical = np.asarray(-np.linalg.solve(effects, constant.T).T, float)
        return replace(self._true, effects=effects, warmth=warmth, typical=typical)

    def last(self, found: Community) -> tuple[Floats, Floats]:
        """Typical log abundances by site, and the expected distance from them after the last survey."""
        change = np.eye(len(found.species)) + found.effects
        away = (self._filled[-1] - found.typical) @ change.T + found.warmth * self._warmth[-1][:, None]
        return found.typical, away
