"""A competent analysis of the anomaly task: mend the log, take out what is normal, and look at what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

DAY = 144
HOURS = 6


def analyse(df: pd.DataFrame) -> dict[str, Any]:
    """Findings from the table alone."""
    sensors = list(df.columns[3:])
    table = df.drop_duplicates("sample").set_index("sample")[sensors].sort_index()
    table = table.reindex(range(int(table.index.max()) + 1)).mask(lambda t: t <= -999)
    rest, drifting = {}, []
    for name in sensors:
        value = one_unit(without_freezing(table[name]))
        rest[name], drifts = residual(value)
        if drifts:
            drifting.append(name)
    left = pd.DataFrame(rest)
    left = left - swings(left)
    z = left / (1.4826 * left.abs().median())
    events = grouped(z)
    kinds = [event["kind"] for event in events]
    abnormal = np.zeros(len(table), dtype=bool)
    for event in events:
        abnormal[event["start"] : event["end"] + 1] = True
    involved = pd.Series([name for event in events for name in event["sensors"]], dtype=str).value_counts()
    return {
        "n_sensors": len(sensors),
        "events": events[:60],
        "n_point": kinds.count("point"),
        "n_contextual": kinds.count("contextual"),
        "n_collective": kinds.count("collective"),
        "anomalous_share": float(abnormal.mean()),
        "most_affected_sensor": involved.index[0] if len(involved) else sensors[0],
        "drifting_sensors": drifting,
    }


def without_freezing(value: pd.Series) -> pd.Series:
    """Readings without the stretches in which the logger repeats its last value."""
    block = (value != value.shift()).cumsum()
    return value.mask(value.groupby(block).transform("size") >= 5)


def one_unit(value: pd.Series) -> pd.Series:
    """Readings of which a part in another unit is brought to the level and spread of the longer part."""
    n = len(value)
    smooth = value.rolling(DAY, min_periods=20).median()
    scale = (value - value.rolling(DAY, center=True, min_periods=20).median()).abs().median()
    jump = (smooth.shift(-DAY) - smooth).abs()
    ratio = (smooth.shift(-DAY) / smooth).abs()
    if not ((jump > 15 * scale) & ((ratio > 1.4) | (ratio < 0.7))).any():
        return value
    losses = [
        (part.dropna() - part.median()).abs().sum() + (rest.dropna() - rest.median()).abs().sum()
        for part, rest in ((value.iloc[:at], value.iloc[at:]) for at in range(HOURS, n - HOURS, 3))
    ]
    near = HOURS + 3 * int(np.argmin(losses))
    step = value.iloc[max(near - 12, 0) : near + 12]
    at = int((step.diff().abs()).idxmax())
    before, after = value.iloc[:at], value.iloc[at:]

    def spread(part: pd.Series) -> float:
        return float((part - part.rolling(DAY, center=True, min_periods=20).median()).abs().median())

    mended = (after - after.median()) / spread(after) * spread(before) + before.median()
    return pd.concat([before, mended])


def residual(value: pd.Series) -> tuple[pd.Series, bool]:
    """What cycles and a slow drift don't explain, and whether there is a drift."""
    clock = value.index.to_numpy() % DAY
    time = (value.index.to_numpy() - len(value) / 2) / len(value)
    waves = [f(2 * np.pi * k * clock / DAY) for k in (1, 2, 3) for f in (np.sin, np.cos)]
    shifts = [(clock // 48 == k).astype(float) for k in (1, 2)]
    design = np.column_stack([np.ones(len(value)), time, *waves, *shifts])
    y, known = value.to_numpy(dtype=float), value.notna().to_numpy()
    weight = known.astype(float)
    for _ in range(10):
        root = np.sqrt(weight)[:, None]
        beta = np.linalg.lstsq(design * root, np.nan_to_num(y) * root[:, 0], rcond=None)[0]
        rest = y - design @ beta
        scale = 1.4826 * np.nanmedian(np.abs(rest))
        weight = np.where(known, np.clip(2.5 * scale / np.maximum(np.abs(np.nan_to_num(rest)), 1e-9), 0, 1), 0)
    daily = pd.Series(rest).groupby(np.arange(len(rest)) // DAY).median()
    # Days are the unit: their medians swing together for more than one reason.
    noise = 1.4826 * (daily.diff().abs().median() / 1.41) * np.sqrt(12 / len(daily))
    return pd.Series(rest, index=value.index), bool(abs(beta[1]) > max(8 * noise, 0.8 * scale))


def swings(left: pd.DataFrame) -> pd.DataFrame:
    """What related sensors share, as the robust prediction of each from the two most alike others."""
    z = (left / (1.4826 * left.abs().median())).clip(-3, 3)
    alike = z.corr(min_periods=200).abs()
    shared = {}
    for name in left:
        near = [other for other in alike[name].drop(name).nlargest(2).index if alike.loc[name, other] > 0.25]
        x = z[near].fillna(0).to_numpy()
        y = z[name].fillna(0).to_numpy()
        beta = np.linalg.lstsq(x, y, rcond=None)[0] if near else np.zeros(0)
        shared[name] = (x @ beta) * 1.4826 * left[name].abs().median()
    return pd.DataFrame(shared, index=left.index)


def grouped(z: pd.DataFrame) -> list[dict[str, Any]]:
    """Events: single far samples, stretches of one sensor, stretches of several."""
    level = z.rolling(9, center=True, min_periods=5).median().abs()
    restless = z.diff().abs().rolling(15, center=True, min_periods=8).median()
    restless = restless / restless.median()
    long = (level > 2.5) | (restless > 2.2)
    point = (z.abs() > 5) & ~long
    stretches = []
    for name in z:
        for start, end in runs(long[name].to_numpy(), gap=8, least=4):
            stretches.append((start, end, name))
    events, used = [], set()
    for i, (start, end, name) in enumerate(sorted(stretches)):
        if i in used:
            continue
        members = {name}
        for j, (other_start, other_end, other) in enumerate(sorted(stretches)):
            overlap = min(end, other_end) - max(start, other_start)
            if j > i and j not in used and overlap > 0.4 * min(end - start, other_end - other_start):
                members.add(other)
                used.add(j)
                end = max(end, other_end)
        kind = "collective" if len(members) > 1 else "contextual"
        events.append({"start": start, "end": end, "sensors": sorted(members), "kind": kind})
    for at in np.flatnonzero(point.any(axis=1)):
        if not any(event["start"] - 3 <= at <= event["end"] + 3 for event in events):
            far = list(z.columns[point.iloc[at]])
            events.append({"start": int(at), "end": int(at), "sensors": far, "kind": "point"})
    return sorted(events, key=lambda event: event["start"])


def runs(flag: np.ndarray, gap: int, least: int) -> list[tuple[int, int]]:
    """First and last sample of each stretch of flags, over gaps of at most `gap`."""
    at = np.flatnonzero(flag)
    parts = np.split(at, np.flatnonzero(np.diff(at) > gap) + 1) if len(at) else []
    return [(int(part[0]), int(part[-1])) for part in parts if len(part) >= least]
