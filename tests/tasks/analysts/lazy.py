"""A first look without cleaning: counts of rows, raw means, correlations and thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

Found = dict[str, Any]


def ecology(df: pd.DataFrame) -> Found:
    """Rolling means, first year against last year, and correlated counts."""
    table = df.pivot_table(index="survey", columns="species", values="count", aggfunc="mean")
    table = table[table.columns[table.notna().mean() > 0.5]]
    total = table.sum(axis=1).rolling(13).mean()
    jump = (total.shift(-13) - total).abs()
    first, last = table.iloc[:26].mean(), table.iloc[-26:].mean()
    linked = table.corr()
    warm = table.corrwith(df.groupby("survey")["temperature"].mean())
    return {
        "n_species": df["species"].nunique(),
        "shift_surveys": [int(jump.idxmax())],
        "declining_species": list(table.columns[last < 0.75 * first]),
        "increasing_species": list(table.columns[last > 1.25 * first]),
        "interactions": [
            {"source": a, "target": b, "sign": "+" if linked.loc[a, b] > 0 else "-", "strength": abs(linked.loc[a, b])}
            for a in linked
            for b in linked
            if a != b and abs(linked.loc[a, b]) > 0.3
        ],
        "warmth_gains": list(warm.index[warm > 0.2]),
        "warmth_loses": list(warm.index[warm < -0.2]),
        "forecast": [{"species": name, "abundance": value} for name, value in last.items()],
    }


def biomarker(df: pd.DataFrame) -> Found:
    """Difference of means, marginal correlations and k-means on raw levels."""
    from scipy.cluster.vq import kmeans2

    first = list(df.columns).index("score_baseline") + 1
    markers = df.iloc[:, first:-1].apply(pd.to_numeric, errors="coerce")
    outcome, active = df["improvement"], df["arm"] == "active"
    effect = outcome[active].mean() - outcome[~active].mean()
    both = markers.corrwith(outcome)
    apart = markers[active].corrwith(outcome[active]) - markers[~active].corrwith(outcome[~active])

    def sized(values: pd.Series, least: float) -> list[Found]:
        chosen = values[values.abs() > least]
        return [
            {"marker": name, "sign": "+" if r > 0 else "-", "size": abs(r) * outcome.std()}
            for name, r in chosen.items()
        ]

    level = (markers - markers.mean()) / markers.std()
    kind = kmeans2(level.fillna(0).to_numpy(), 3, minit="++", rng=0)[1]
    groups = []
    for k in range(3):
        mean = level[kind == k].mean()
        inside = outcome[active & (kind == k)].mean() - outcome[~active & (kind == k)].mean()
        high, low = list(mean.index[mean > 0.5]), list(mean.index[mean < -0.5])
        groups.append({"share": (kind == k).mean(), "high": high, "low": low, "treatment_effect": inside})
    spread = markers.groupby(df["batch"]).mean()
    ratio = spread.max() / spread.median()
    return {
        "n_patients": len(df),
        "average_treatment_effect": effect,
        "prognostic_markers": sized(both, 0.1),
        "predictive_markers": sized(apart, 0.1),
        "benefit_share": float((outcome[active] > outcome[~active].mean()).mean()),
        "n_subtypes": 3,
        "subtypes": groups,
        "batch_markers": list(ratio.index[ratio > 1.5]),
        "other_unit_markers": list(ratio.index[ratio > 5]),
    }


def anomaly(df: pd.DataFrame) -> Found:
    """Everything more than three standard deviations from the mean of its column."""
    sensors = list(df.columns[3:])
    z = (df[sensors] - df[sensors].mean()) / df[sensors].std()
    events = []
    for name in sensors:
        far = np.flatnonzero(z[name].abs() > 3)
        for run in np.split(far, np.flatnonzero(np.diff(far) > 1) + 1):
            if len(run):
                at = df["sample"].iloc[run]
                kind = "point" if len(run) == 1 else "collective"
                events.append({"start": int(at.min()), "end": int(at.max()), "sensors": [name], "kind": kind})
    trend = df[sensors].corrwith(df["sample"]).abs()
    involved = pd.Series([event["sensors"][0] for event in events], dtype=str).value_counts()
    kinds = [event["kind"] for event in events]
    return {
        "n_sensors": len(sensors),
        "events": events[:200],
        "n_point": kinds.count("point"),
        "n_contextual": 0,
        "n_collective": kinds.count("collective"),
        "anomalous_share": float((z.abs() > 3).any(axis=1).mean()),
        "most_affected_sensor": involved.index[0] if len(involved) else sensors[0],
        "drifting_sensors": list(trend.index[trend > 0.3]),
    }


def geospatial(df: pd.DataFrame) -> Found:
    """Correlations, the richest samples, and a random forest on every column."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score

    df = df[df["grade_ppm"] > 0]
    grade = np.log(df["grade_ppm"])
    covariates = list(df.columns[df.columns.get_loc("grade_ppm") + 1 :])
    r = df[covariates].corrwith(grade)
    inputs = df[[*covariates, "easting_m", "northing_m"]].fillna(0)
    forest = RandomForestRegressor(30, n_jobs=1, random_state=0)
    top = df.nlargest(6, "grade_ppm")
    return {
        "n_sites": len(df),
        "covariates": [{"name": name, "sign": "+" if v > 0 else "-"} for name, v in r.items() if abs(v) > 0.1],
        "richest_rock": df.groupby("rock")["grade_ppm"].mean().idxmax(),
        "range_m": 1000.0,
        "anisotropy_azimuth": 90.0,
        "anisotropy_ratio": 1.0,
        "nugget_share": 0.5,
        "hot_spots": [
            {"x": x, "y": y, "radius": 100.0} for x, y in zip(top["easting_m"], top["northing_m"], strict=True)
        ],
        "r2_random_cv": float(np.clip(cross_val_score(forest, inputs, grade, cv=10).mean(), 0, 1)),
        "r2_block_cv": float(np.clip(cross_val_score(forest, inputs, grade, cv=5).mean(), 0, 1)),
        "r2_covariates_cv": float(
            np.clip(cross_val_score(LinearRegression(), inputs[covariates], grade, cv=10).mean(), 0, 1)
        ),
    }
