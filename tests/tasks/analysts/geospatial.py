"""A competent analysis of the geospatial task: cleaning, generalised least squares, kriging."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from tests.tasks.analysts.words import names

FEW = 450
"""Samples of the fit of the covariance."""


def analyse(df: pd.DataFrame) -> dict[str, Any]:
    """Findings from the table alone."""
    sites, covariates = cleaned(df)
    n_sites = len(sites)
    sites = sites.dropna(subset=["log"])
    place = sites[["easting_m", "northing_m"]].to_numpy()
    y = sites["log"].to_numpy()
    rocks = pd.get_dummies(sites["rock"]).astype(float)
    labs = pd.get_dummies(sites["lab"], drop_first=True).astype(float).to_numpy()
    x = np.column_stack([sites[covariates], labs, rocks])
    rest = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    spots: list[dict[str, float]] = []
    params = fitted(place, rest)
    for _ in range(2):
        bumps = np.column_stack([bump(place, spot) for spot in spots]) if spots else np.zeros((len(y), 0))
        beta, t, white = gls(place, np.column_stack([x, bumps]), y, params)
        rest = y - np.column_stack([x, bumps]) @ beta
        if not spots:
            spots = hot_spots(place, rest, white)
        else:
            params = fitted(place, rest)
    chosen = [{"name": name, "sign": "+" if t[j] > 0 else "-"} for j, name in enumerate(covariates) if abs(t[j]) > 3]
    rock = beta[len(covariates) + labs.shape[1] :][: rocks.shape[1]]
    azimuth, reach, ratio, nugget = unpacked(params)[:4]
    fold = np.random.default_rng(0).integers(10, size=len(y))
    squares = pd.factorize(pd.Series([f"{a}/{b}" for a, b in (place // 1000).astype(int)]))[0]
    block = np.random.default_rng(0).permutation(squares.max() + 1)[squares] % 10
    return {
        "n_sites": n_sites,
        "covariates": chosen,
        "richest_rock": rocks.columns[int(np.argmax(rock))],
        "range_m": reach,
        "anisotropy_azimuth": azimuth,
        "anisotropy_ratio": ratio,
        "nugget_share": nugget,
        "hot_spots": spots,
        "r2_random_cv": r2(place, x, y, params, fold, kriged=True),
        "r2_block_cv": r2(place, x, y, params, block, kriged=True),
        "r2_covariates_cv": r2(place, x, y, params, block, kriged=False),
    }


def cleaned(df: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """One row for each site with the log grade, one unit and covariates in standard deviations."""
    covariates = list(df.columns[df.columns.get_loc("grade_ppm") + 1 :])
    df = df.assign(rock=names(df["rock"]), lab=names(df["lab"]), crew=names(df["crew"]))
    df = df.drop_duplicates("sample_id").copy()
    east, north = df["easting_m"].median(), df["northing_m"].median()
    swapped = (df["easting_m"] - east).abs() + (df["northing_m"] - north).abs() > (
        (df["northing_m"] - east).abs() + (df["easting_m"] - north).abs()
    )
    df.loc[swapped, ["easting_m", "northing_m"]] = df.loc[swapped, ["northing_m", "easting_m"]].to_numpy()
    grade = df["grade_ppm"].where(df["grade_ppm"] > 0, -df["grade_ppm"] / 2).replace(0, np.nan)
    middle = np.log(grade).groupby(df["batch"]).transform("median")
    log = np.log(grade) + np.where(middle > np.log(grade).median() + 5, -np.log(1_000), 0)
    typed = df["sample_type"].astype(str).str.strip().str.lower().str.startswith("dup")
    df = df.assign(log=log)[~typed]
    df = df.drop_duplicates(["easting_m", "northing_m"])
    near = cdist(df[["easting_m", "northing_m"]], df[["easting_m", "northing_m"]])
    around = np.argsort(near, axis=1)[:, 1:9]
    local = np.nanmedian(df["log"].to_numpy()[around], axis=1)
    for shift in (np.log(10), np.log(100)):
        for sign in (1, -1):
            off = (df["log"] - local - sign * shift).abs() < 0.3
            far = (df["log"] - local).abs() > 2.2
            df["log"] = df["log"].where(~(off & far), df["log"] - sign * shift)
    for name in covariates:
        value = df[name].where(df[name] != -9999)
        if name == "elevation_m":
            local = np.nanmedian(value.to_numpy()[around], axis=1)
            value = value.where((value - local).abs() <= (value * 0.3048 - local).abs(), value * 0.3048)
            crew = value.groupby(df["crew"]).transform("median")
            value = value.where(crew < 2.2 * crew.min(), value * 0.3048) if crew.max() > 2.2 * crew.min() else value
        if value.min() > 0 and value.skew() > 0.7:
            value = np.log(value)
        value = value.fillna(pd.Series(np.nanmedian(value.to_numpy()[around], axis=1), index=df.index))
        value = value.fillna(value.median())
        df[name] = ((value - value.mean()) / value.std()).clip(-4, 4)
    return df.reset_index(drop=True), covariates


def unpacked(params: np.ndarray) -> tuple[float, float, float, float, float]:
    """Azimuth in degrees, practical range in metres, ratio, nugget's share and sill."""
    ratio = 1 + np.exp(params[2])
    share = 1 / (1 + np.exp(-params[3]))
    return float(params[0] % 180), float(np.exp(params[1])), float(ratio), float(share), float(np.exp(params[4]))


def covariance(a: np.ndarray, b: np.ndarray, params: np.ndarray) -> np.ndarray:
    """Exponential covariance without nugget."""
    azimuth, reach, ratio, share, sill = unpacked(params)
    angle = np.deg2rad(azimuth)
    turn = np.array([[np.sin(angle), np.cos(angle)], [np.cos(angle), -np.sin(angle)]])
    scale = np.array([3 / reach, 3 * ratio / reach])[:, None]
    return sill * (1 - share) * np.exp(-cdist(a @ (turn * scale).T, b @ (turn * scale).T))


def noisy(place: np.ndarray, params: np.ndarray) -> np.ndarray:
    """Covariance of the samples, nugget included."""
    share, sill = unpacked(params)[3:]
    return covariance(place, place, params) + share * sill * np.eye(len(place))


def fitted(place: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Parameters of greatest likelihood on a random part of the samples, from two directions."""
    part = np.random.default_rng(0).choice(len(rest), min(FEW, len(rest)), replace=False)
    where, what = place[part], np.clip(rest[part], -3 * rest.std(), 3 * rest.std())

    def loss(params: np.ndarray) -> float:
        if not 3 < params[1] < 10 or abs(params[3]) > 5 or params[2] > 2:
            return 1e9
        try:
            lower = cholesky(noisy(where, params), lower=True)
        except np.linalg.LinAlgError:
            return 1e9
        return float(np.log(np.diag(lower)).sum() + 0.5 * (solve_triangular(lower, what, lower=True) ** 2).sum())

    tries = [
        minimize(
            loss,
            [azimuth, np.log(900), 0.0, 0.0, np.log(what.var())],
            method="Nelder-Mead",
            options={"maxfev": 100, "initial_simplex": None},
        )
        for azimuth in (30.0, 120.0)
    ]
    return np.asarray(min(tries, key=lambda fit: fit.fun).x)


def gls(
    place: np.ndarray, x: np.ndarray, y: np.ndarray, params: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, their t values, and the inverse of the root of the covariance."""
    lower = cholesky(noisy(place, params), lower=True)
    white = solve_triangular(lower, np.eye(len(lower)), lower=True)
    a, b = white @ x, white @ y
    inverse = np.linalg.pinv(a.T @ a)
    beta = inverse @ a.T @ b
    return beta, beta / np.sqrt(np.diag(inverse)), white


def bump(place: np.ndarray, spot: dict[str, float]) -> np.ndarray:
    """Shape of a spot: half is left at its radius."""
    distance = np.hypot(place[:, 0] - spot["x"], place[:, 1] - spot["y"])
    return np.asarray(0.5 ** ((distance / spot["radius"]) ** 2))


def hot_spots(place: np.ndarray, rest: np.ndarray, white: np.ndarray) -> list[dict[str, float]]:
    """Compact bumps, the clearest first, while they stand out from the smooth variation."""
    found: list[dict[str, float]] = []
    left = white @ rest
    centres = place[:: max(1, len(place) // 500)]
    shapes = [{"x": float(x), "y": float(y), "radius": radius} for x, y in centres for radius in (70.0, 130.0, 220.0)]
    columns = white @ np.column_stack([bump(place, shape) for shape in shapes])
    size = np.sqrt((columns**2).sum(axis=0)) + 1e-9
    for _ in range(12):
        t = columns.T @ left / size
        best = int(np.argmax(t))
        if t[best] < 5:
            break
        shape = shapes[best]
        fine = [
            {"x": shape["x"] + dx, "y": shape["y"] + dy, "radius": shape["radius"] * scale}
            for dx in (-60, -20, 20, 60)
            for dy in (-60, -20, 20, 60)
            for scale in (0.6, 0.8, 1.0, 1.25)
        ]
        tried = white @ np.column_stack([bump(place, other) for other in fine])
        sizes = np.sqrt((tried**2).sum(axis=0)) + 1e-9
        at = int(np.argmax(tried.T @ left / sizes))
        left = left - tried[:, at] * (tried[:, at] @ left) / sizes[at] ** 2
        found.append(fine[at])
    return found


def r2(place: np.ndarray, x: np.ndarray, y: np.ndarray, params: np.ndarray, fold: np.ndarray, *, kriged: bool) -> float:
    """R² of predictions of each fold from the others."""
    predicted = np.zeros(len(y))
    for k in np.unique(fold):
        test, train = fold == k, fold != k
        if kriged:
            factor = cho_factor(noisy(place[train], params))
            beta = np.linalg.lstsq(x[train], y[train], rcond=None)[0]
            smooth = covariance(place[test], place[train], params) @ cho_solve(factor, y[train] - x[train] @ beta)
        else:
            beta = np.linalg.lstsq(x[train], y[train], rcond=None)[0]
            smooth = 0
        predicted[test] = x[test] @ beta + smooth
    return float(np.clip(1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum(), 0, 1))
