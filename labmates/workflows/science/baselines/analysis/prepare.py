# ruff: noqa
# mypy: ignore-errors
import json, re, warnings
import numpy as np, pandas as pd

warnings.filterwarnings("ignore")
try:
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
except ImportError:
    pass

d = df.drop_duplicates()
num = [c for c in d.columns if pd.api.types.is_numeric_dtype(d[c])]
txt = [c for c in d.columns if c not in num]
floats = [c for c in num if (d[c].dropna() % 1 != 0).any()]


def dated(c):
    s = d[c].dropna().astype(str).head(50)
    return (
        len(s) > 0 and s.str.contains(r"\d[-/:.]\d").all() and pd.to_datetime(s, errors="coerce").notna().mean() > 0.9
    )


def steady(c):
    v = d[c].dropna()
    return v.nunique() > 40 and (v % 1 == 0).all() and (v.diff().dropna() >= 0).mean() > 0.9


dates = [c for c in txt if dated(c)]
words = [c for c in txt if c not in dates and 1 < d[c].nunique() < 500]


def two_sided(c):
    share = d[c].astype(str).str.strip().str.lower().value_counts(normalize=True).head(2)
    return len(share) == 2 and share.sum() > 0.9 and share.min() > 0.25


# A trial measures much, or has dates of enrolment: the open part of a divided one may hold few measures.
measured = len(floats) > (1 if dates else 7)
arms = [c for c in words if measured and re.search("arm|treat|alloc", str(c).lower()) and two_sided(c)]
ARM = arms[0] if arms else None
axes = [[c for c in num if re.match(p, str(c).lower())] for p in ("east|utm_?e|x(_|$)", "north|utm_?n|y(_|$)")]
XY = [a[0] for a in axes] if all(axes) and len(num) > 6 and len(d) > 300 else None
clocks = [
    c
    for c in num
    if c not in floats and (dates or re.search("time|sample|day|week|step|survey", str(c).lower())) and steady(c)
]
TIME = clocks[0] if clocks else None
if TIME is None and dates and ARM is None:
    TIME = "time_order"
    d = d.assign(**{TIME: pd.to_datetime(d[dates[0]], errors="coerce").rank(method="dense") - 1}).dropna(subset=[TIME])

steps = d[TIME].nunique() if TIME else 0
layout, ENTITY, PLACE, VALUE = "table", None, None, None
if ARM is not None and TIME is None:
    layout, ENTITY = "trial", "patients"
elif XY and len(d.drop_duplicates(XY)) > 0.8 * len(d):
    VALUE = max((c for c in floats if c not in XY), key=lambda c: mentions.get(c, 0), default=None)
    layout = "survey" if VALUE is not None else "table"
elif steps > 60 and len(d) < 1.3 * steps and len(floats) >= 3:
    layout = "sensors"
elif steps > 40 and len(d) > 3 * steps and words:
    ENTITY = max(words, key=lambda c: (mentions.get(c, 0), d[c].nunique()))
    others = [c for c in words if c != ENTITY]
    PLACE = min(others, key=lambda c: d.duplicated([TIME, c, ENTITY]).mean(), default=None)
    key = [TIME] if PLACE is None else [TIME, PLACE]
    spread = {c: (d.groupby(key)[c].nunique() > 1).mean() for c in num if c != TIME}
    VALUE = max(spread, key=spread.get, default=None)
    layout = "panel" if VALUE is not None else "table"
print(
    f"{len(df)} rows, {len(df.columns)} columns, {len(df) - len(df.drop_duplicates())} repeated rows, layout: {layout}"
)
roles = {"arm": ARM, "time": TIME, "unit of observation": ENTITY, "place": PLACE, "value": VALUE}
print(", ".join(f"{k}: {v}" for k, v in roles.items() if v) or "no column tells the time", f"({steps} steps)")
print(
    "RESULT",
    json.dumps(
        {
            "layout": layout,
            "rows": len(df),
            "columns": len(df.columns),
            "repeated": len(df) - len(df.drop_duplicates()),
            "noun": ENTITY,
            "clock": TIME,
        }
    ),
)
