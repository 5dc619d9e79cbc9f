"""A competent analysis of the ecology task: cleaning, change points, and one regression a species."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.tasks.analysts.words import names

YEAR = 26


def analyse(df: pd.DataFrame) -> dict[str, Any]:
    """Findings from the table alone."""
    df = cleaned(df)
    logs, warmth = series(df)
    shifts = changes(logs)
    edges = [0, *[start + 6 for start in shifts], len(logs)]
    regime = np.zeros(len(logs), dtype=int)
    for at in edges[1:-1]:
        regime[at:] += 1
    counts = df.pivot_table(index="survey", columns="species", values="count").reindex(logs.index)
    before, after = counts.iloc[: shifts[0]].mean(), counts.iloc[edges[-2] :].mean()
    ratio = after / before if shifts else after / after
    links, gains, loses, ahead = dynamics(logs, warmth, regime)
    last = counts.iloc[max(edges[-2], len(logs) - 2 * YEAR) :].mean()
    smear = counts.iloc[edges[-2] :].mean() / np.exp(logs.iloc[edges[-2] :]).mean()
    forecast = 0.5 * last + 0.5 * np.exp(ahead).mean() * smear
    return {
        "n_species": logs.shape[1],
        "shift_surveys": shifts,
        "declining_species": list(ratio.index[ratio < 0.75]),
        "increasing_species": list(ratio.index[ratio > 1.25]),
        "interactions": links,
        "warmth_gains": gains,
        "warmth_loses": loses,
        "forecast": [{"species": name, "abundance": float(value)} for name, value in forecast.items()],
    }


def cleaned(df: pd.DataFrame) -> pd.DataFrame:
    """One row for each survey, site and species; degrees Celsius; slips of the decimal point mended."""
    df = df.assign(species=names(df["species"]), site=names(df["site"]))
    df = df.drop_duplicates(["survey", "site", "species"]).copy()
    other = df.groupby("survey")["temperature"].transform("median")
    celsius = (df["temperature"] - 32) / 1.8
    df["temperature"] = df["temperature"].where(
        (df["temperature"] - other).abs() <= (celsius - other).abs() + 3, celsius
    )
    log = np.log(df["count"] + 0.5)
    usual = log.groupby([df["species"], df["site"]]).transform(
        lambda v: v.rolling(9, center=True, min_periods=3).median()
    )
    for factor in (10, 100, 0.1, 0.01):
        off = (log - usual - np.log(factor)).abs() < 0.35 * abs(np.log(factor))
        df.loc[off, "count"] = df.loc[off, "count"] / factor
    return df.dropna(subset=["count"])


def series(df: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Log abundance by survey and species with the sites' levels taken out, and the temperature."""
    log = np.log(df["count"] + 0.5)
    level = log.groupby([df["species"], df["site"]]).transform("mean") - log.groupby(df["species"]).transform("mean")
    table = (log - level).groupby([df["survey"], df["species"]]).mean().unstack()
    table = table.reindex(range(int(df["survey"].max()) + 1)).interpolate(limit_direction="both")
    place = df.groupby("site")["temperature"].transform("mean") - df["temperature"].mean()
    warmth = (df["temperature"] - place).groupby(df["survey"]).median().reindex(table.index)
    return table, warmth.interpolate(limit_direction="both")


def changes(logs: pd.DataFrame) -> list[int]:
    """Begin of each change: ramps of any length, added while the Bayesian criterion falls."""
    n, time = len(logs), np.arange(len(logs))
    season = np.column_stack([f(2 * np.pi * k * time / YEAR) for k in (1, 2) for f in (np.sin, np.cos)])
    base = np.column_stack([np.ones(n), season])
    found: list[tuple[int, int]] = []

    def loss(ramps: list[tuple[int, int]]) -> float:
        design = np.column_stack([base, *[np.clip((time - start) / length, 0, 1) for start, length in ramps]])
        rest = logs.to_numpy() - design @ np.linalg.lstsq(design, logs.to_numpy(), rcond=None)[0]
        # Neighbouring surveys are alike, so a quarter of them counts.
        return n / 4 * np.log((rest**2).mean(axis=0)).sum()

    price = (logs.shape[1] + 2) * np.log(n / 4) / 2 * 1.5
    now = loss(found)
    while len(found) < 4:
        tries = []
        for start in range(10, n - 12):
            if all(abs(start - other) > 12 for other, _ in found):
                tries += [(loss([*found, (start, length)]), start, length) for length in (1, 6, 10)]
        best, start, length = min(tries)
        if now - best < 2 * price:
            break
        found.append((start, length))
        now = best
    return sorted(start for start, _ in found)


def dynamics(
    logs: pd.DataFrame, warmth: pd.Series, regime: np.ndarray
) -> tuple[list[dict[str, Any]], list[str], list[str], np.ndarray]:
    """Interactions, who gains and loses by warmth, and log abundances a year ahead."""
    species = list(logs.columns)
    dummies = np.column_stack([regime == k for k in np.unique(regime)]).astype(float)
    warm = warmth.to_numpy() - warmth.mean()
    x = np.column_stack([logs.to_numpy() - logs.to_numpy().mean(axis=0), warm, dummies])[:-1]
    change = np.diff(logs.to_numpy(), axis=0)
    beta = np.zeros((x.shape[1], len(species)))
    for j in range(len(species)):
        # Backward elimination; the species itself and the regimes stay.
        kept = list(range(x.shape[1]))
        while True:
            part, y = x[:, kept], change[:, j]
            inverse = np.linalg.pinv(part.T @ part)
            fit = inverse @ part.T @ y
            noise = ((y - part @ fit) ** 2).sum() / (len(y) - len(kept))
            t = np.abs(fit) / np.sqrt(np.diag(inverse) * noise)
            free = [(t[place], at) for place, at in enumerate(kept) if at != j and at <= len(species)]
            if not free or min(free)[0] > 2.5:
                break
            kept.remove(min(free)[1])
        beta[kept, j] = fit
    links = [
        {"source": a, "target": b, "sign": "+" if beta[i, j] > 0 else "-", "strength": abs(float(beta[i, j]))}
        for i, a in enumerate(species)
        for j, b in enumerate(species)
        if i != j and beta[i, j] != 0
    ]
    n = len(species)
    gains = [name for j, name in enumerate(species) if beta[n, j] > 0]
    loses = [name for j, name in enumerate(species) if beta[n, j] < 0]
    state, ahead = logs.to_numpy()[-1] - logs.to_numpy().mean(axis=0), []
    level = logs.to_numpy().mean(axis=0)
    for step in range(YEAR):
        now = np.concatenate([state, [warm[len(warm) - YEAR + step]], dummies[-1]])
        state = state + now @ beta
        ahead.append(np.clip(state + level, level - 4, level + 4))
    return links, gains, loses, np.array(ahead)
