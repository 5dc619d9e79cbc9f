"""A second analysis without cleaning, by another hand: top lists, tests at a level, and guesses for what is hard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Found = dict[str, Any]


def ecology(df: pd.DataFrame) -> Found:
    """Best cut of the total, means before and after it, and correlated counts."""
    table = df.pivot_table(index="survey", columns="species", values="count", aggfunc="mean")
    table = table[df["species"].value_counts().loc[lambda times: times > 50].index]
    total = table.sum(axis=1)
    cut = max(range(10, len(total) - 10), key=lambda at: abs(total[:at].mean() - total[at:].mean()))
    before, after = table[:cut].mean(), table[cut:].mean()
    linked = table.corr()
    warm = table.corrwith(df.groupby("survey")["temperature"].mean())
    return {
        "n_species": df["species"].nunique(),
        "shift_surveys": [int(total.index[cut])],
        "declining_species": list(table.columns[after < 0.8 * before]),
        "increasing_species": list(table.columns[after > 1.25 * before]),
        "interactions": [
            {"source": a, "target": b, "sign": sign(linked.loc[a, b]), "strength": abs(linked.loc[a, b])}
            for a in linked
            for b in linked
            if a != b and abs(linked.loc[a, b]) > 0.4
        ],
        "warmth_gains": list(warm.index[warm > 0.2]),
        "warmth_loses": list(warm.index[warm < -0.2]),
        "forecast": [{"species": name, "abundance": table[name][-26:].mean()} for name in table],
    }


def biomarker(df: pd.DataFrame) -> Found:
    """The five and the three strongest correlations, k-means, and an analysis of variance by batch."""
    from scipy.stats import f_oneway
    from sklearn.cluster import KMeans

    first = list(df.columns).index("score_baseline") + 1
    markers = df.iloc[:, first:-1].apply(pd.to_numeric, errors="coerce")
    outcome, arms = df["improvement"], [df["arm"] == arm for arm in ("active", "placebo")]

    def effect(rows: Any) -> float:
        active, placebo = (outcome[rows & arm].mean() for arm in arms)
        return float(active - placebo)

    def strongest(r: pd.Series, count: int) -> list[Found]:
        top = r[r.abs().nlargest(count).index]
        return [{"marker": name, "sign": sign(v), "size": abs(v) * outcome.std()} for name, v in top.items()]

    active, placebo = (markers[arm].corrwith(outcome[arm]) for arm in arms)
    z = ((markers - markers.mean()) / markers.std()).fillna(0)
    kind = KMeans(3, n_init=5, random_state=0).fit_predict(z)
    batches = df["batch"].unique()
    far = [f_oneway(*[markers.loc[df["batch"] == b, m].dropna() for b in batches]).pvalue < 0.001 for m in markers]
    return {
        "n_patients": len(df),
        "average_treatment_effect": effect(True),
        "prognostic_markers": strongest(markers.corrwith(outcome), 5),
        "predictive_markers": strongest(active - placebo, 3),
        "benefit_share": (outcome[arms[0]] > 0).mean(),
        "n_subtypes": 3,
        "subtypes": [
            {
                "share": (kind == k).mean(),
                "high": list(markers.columns[z[kind == k].mean() > 0.5]),
                "low": list(markers.columns[z[kind == k].mean() < -0.5]),
                "treatment_effect": effect(kind == k),
            }
            for k in range(3)
        ],
        "batch_markers": list(markers.columns[far]),
        "other_unit_markers": list(markers.columns[markers.max() > 50 * markers.median()]),
    }


def anomaly(df: pd.DataFrame) -> Found:
    """Whatever is far from a running median."""
    sensors = list(df.columns[3:])
    level = df[sensors].interpolate().bfill()
    rest = level - level.rolling(25, center=True, min_periods=1).median()
    far = (rest.abs() > 5 * rest.std()).to_numpy()
    at = np.flatnonzero(far.any(axis=1))
    events = []
    for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
        kind = "point" if len(run) == 1 else "contextual" if len(run) < 6 else "collective"
        inside = [name for name, hit in zip(sensors, far[run].any(axis=0), strict=True) if hit]
        events.append({"start": run[0], "end": run[-1], "sensors": inside, "kind": kind})
    kinds = [event["kind"] for event in events]
    moved = (level[-1008:].mean() - level[:1008].mean()).abs() / level.std()
    return {
        "n_sensors": len(sensors),
        "events": events[:200],
        **{f"n_{kind}": kinds.count(kind) for kind in ("point", "contextual", "collective")},
        "anomalous_share": far.any(axis=1).mean(),
        "most_affected_sensor": sensors[int(far.sum(axis=0).argmax())],
        "drifting_sensors": list(moved.index[moved > 1]),
    }


def geospatial(df: pd.DataFrame) -> Found:
    """Rank correlations, clusters of the highest grades, nearest neighbours, and round numbers for the variogram."""
    from scipy.stats import spearmanr
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import GroupKFold, cross_val_score
    from sklearn.neighbors import KNeighborsRegressor

    count = df["sample_id"].nunique()
    df = df[df["grade_ppm"] > 0]
    place, covariates = df[["easting_m", "northing_m"]], df[list(df.columns[df.columns.get_loc("grade_ppm") + 1 :])]
    grade, top = np.log(df["grade_ppm"]), place[df["grade_ppm"] > df["grade_ppm"].quantile(0.97)]
    top = top[(top["easting_m"] - top["easting_m"].median()).abs() < 50_000]
    related = {name: spearmanr(covariates[name], grade, nan_policy="omit") for name in covariates}
    by_rock = df["grade_ppm"].groupby(df["rock"].str.strip().str.lower()).median()
    block, near = (place // 1000) @ [1, 100_003], KNeighborsRegressor(8)
    x = covariates.fillna(-1)
    both = x.join(place)
    fits = {
        "r2_random_cv": cross_val_score(near, both, grade, cv=10),
        "r2_block_cv": cross_val_score(near, both, grade, cv=GroupKFold(10), groups=block),
        "r2_covariates_cv": cross_val_score(LinearRegression(), x, grade, cv=GroupKFold(10), groups=block),
    }
    return {
        "n_sites": count,
        "covariates": [{"name": n, "sign": sign(r.statistic)} for n, r in related.items() if r.pvalue < 1e-6],
        "richest_rock": by_rock.idxmax(),
        "range_m": 800.0,
        "anisotropy_azimuth": 45.0,
        "anisotropy_ratio": 2.0,
        "nugget_share": 0.4,
        "hot_spots": [
            {"x": x, "y": y, "radius": 300.0}
            for x, y in KMeans(4, n_init=5, random_state=0).fit(top.to_numpy()).cluster_centers_
        ],
        **{name: r2.mean() for name, r2 in fits.items()},
    }


def sign(value: float) -> str:
    """The sign of a number, in words of the findings."""
    return "+" if value > 0 else "-"
