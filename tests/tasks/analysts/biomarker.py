"""A competent analysis of the biomarker task: cleaning, imputation, one regression with interactions, a mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tests.tasks.analysts.words import names


def analyse(df: pd.DataFrame) -> dict[str, Any]:
    """Findings from the table alone."""
    first = list(df.columns).index("score_baseline") + 1
    markers = list(df.columns[first:-1])
    df = patients(df)
    level, shifted, other_unit = levels(df, markers)
    z = imputed(level)
    outcome = df["improvement"].replace(-99, np.nan)
    turned = outcome.groupby(df["patient"].str[:2]).transform("median") < 0
    y = outcome.mask(turned, -outcome).to_numpy(dtype=float)
    arm = (df["arm"] == "active").to_numpy(dtype=float)
    known = ~np.isnan(y) & level.notna().any(axis=1).to_numpy()
    people = others(df)
    main, apart, base = selected(z[known], y[known], arm[known], people[known], len(markers))
    effect = base + z @ apart
    kind, high_low = subtypes(z, markers)
    groups = [
        {
            "share": float((kind == k).mean()),
            "high": high,
            "low": low,
            "treatment_effect": float(effect[kind == k].mean()),
        }
        for k, (high, low) in enumerate(high_low)
    ]

    def sized(beta: np.ndarray) -> list[dict[str, Any]]:
        return [
            {"marker": name, "sign": "+" if b > 0 else "-", "size": abs(float(b))}
            for name, b in zip(markers, beta, strict=True)
            if b
        ]

    return {
        "n_patients": len(df),
        "average_treatment_effect": float(effect.mean()),
        "prognostic_markers": sized(main),
        "predictive_markers": sized(apart),
        "benefit_share": float((effect > 0).mean()),
        "n_subtypes": len(groups),
        "subtypes": groups,
        "batch_markers": shifted,
        "other_unit_markers": other_unit,
    }


def patients(df: pd.DataFrame) -> pd.DataFrame:
    """One row for each patient, with plain words."""
    df = df.assign(arm=names(df["arm"]).str.lower().str.strip(), site=names(df["site"]))
    df = df.drop_duplicates("patient")
    same = ["site", "enrolled", "age", "sex", "smoker", "height_cm", "score_baseline", "arm"]
    return df.drop_duplicates(same).reset_index(drop=True)


def levels(df: pd.DataFrame, markers: list[str]) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Standardised log levels without units and batches, and the markers that had those."""
    from scipy.stats import f_oneway

    table, shifted, other_unit = {}, [], []
    for name in markers:
        text = df[name].astype(str).str.strip()
        value = pd.to_numeric(text.str.lstrip("<"), errors="coerce")
        value = value.where(value > 0) * np.where(text.str.startswith("<"), 0.6, 1.0)
        log = np.log(value)
        middle = log.groupby(df["batch"]).median()
        usual = middle.median()
        far = middle - usual
        if (far.abs() > 1.2).any():
            other_unit.append(name)
            factor = far[far.abs() > 1.2].median()
            log = log - df["batch"].map(far.where(far.abs() > 1.2).notna()).to_numpy(dtype=float) * factor
        slip = (log - log.median()).abs() > 4 * (log.quantile(0.84) - log.quantile(0.16)) / 2
        log = log.mask(slip)
        groups = [part.dropna() for _, part in log.groupby(df["batch"])]
        if f_oneway(*[part for part in groups if len(part) > 1]).pvalue < 1e-5:
            shifted.append(name)
            log = log - log.groupby(df["batch"]).transform("mean")
        table[name] = (log - log.mean()) / log.std()
    return pd.DataFrame(table), shifted, other_unit


def others(df: pd.DataFrame) -> np.ndarray:
    """The patient's other data as a design without constant."""
    weight = df["weight"].where(df["weight"] > 0)
    height = df["height_cm"].where(df["height_cm"] > 100)
    index = weight / (height / 100) ** 2
    heavy = index.groupby(df["site"]).transform("median") > 38
    index = index.where(~heavy, index * 0.4536)
    numbers = pd.DataFrame(
        {
            "age": df["age"].where(df["age"] > 0),
            "index": index.clip(12, 70),
            "score": df["score_baseline"].where(df["score_baseline"] >= 0),
        }
    )
    numbers = (numbers - numbers.mean()) / numbers.std()
    words = pd.get_dummies(df[["sex", "smoker", "site"]], drop_first=True).astype(float)
    return np.column_stack([numbers.fillna(0), words])


def imputed(level: pd.DataFrame) -> np.ndarray:
    """Missing levels replaced by their expectation given the other markers (multivariate normal, EM)."""
    z = level.fillna(0).to_numpy(copy=True)
    gap = level.isna().to_numpy()
    for _ in range(8):
        cov, mean = np.cov(z.T) + 0.02 * np.eye(z.shape[1]), z.mean(axis=0)
        for pattern in np.unique(gap, axis=0):
            if pattern.any() and not pattern.all():
                rows = (gap == pattern).all(axis=1)
                known = ~pattern
                part = np.linalg.solve(cov[np.ix_(known, known)], cov[np.ix_(known, pattern)])
                z[np.ix_(rows, pattern)] = mean[pattern] + (z[np.ix_(rows, known)] - mean[known]) @ part
    return z


def selected(
    z: np.ndarray, y: np.ndarray, arm: np.ndarray, people: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Effects in both arms, effects on the treatment's effect, and the effect at mean levels: backward elimination."""
    full = np.column_stack([z, z * arm[:, None], arm, np.ones(len(y)), people])
    kept = list(range(full.shape[1]))
    while True:
        part = full[:, kept]
        inverse = np.linalg.pinv(part.T @ part)
        fit = inverse @ part.T @ y
        noise = ((y - part @ fit) ** 2).sum() / (len(y) - len(kept))
        t = np.abs(fit) / np.sqrt(np.diag(inverse) * noise)
        weakest = min(((t[place], at) for place, at in enumerate(kept) if at < 2 * n), default=(9.0, -1))
        if weakest[0] > 2.8:
            break
        kept.remove(weakest[1])
    beta = np.zeros(full.shape[1])
    beta[kept] = fit
    return beta[:n], beta[n : 2 * n], float(beta[2 * n])


def subtypes(z: np.ndarray, markers: list[str]) -> tuple[np.ndarray, list[tuple[list[str], list[str]]]]:
    """Subtype of each patient, and the markers raised and lowered in each: a normal mixture, chosen by BIC."""
    from sklearn.mixture import GaussianMixture

    fits = [
        GaussianMixture(k, covariance_type="tied", n_init=4, init_params="k-means++", random_state=0).fit(z)
        for k in range(2, 7)
    ]
    best = min(fits, key=lambda fit: fit.bic(z))
    kind = best.predict(z)
    marks = []
    for k in range(best.n_components):
        apart = best.means_[k] - z[kind != k].mean(axis=0) if (kind != k).any() else best.means_[k]
        marks.append(
            (
                [m for m, v in zip(markers, apart, strict=True) if v > 0.7],
                [m for m, v in zip(markers, apart, strict=True) if v < -0.7],
            )
        )
    return kind, marks
