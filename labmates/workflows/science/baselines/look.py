# ruff: noqa
# mypy: ignore-errors
import pandas as pd

for c in list(df.columns)[:24]:
    s = df[c]
    share = f"{100 * s.isna().mean():.1f} % missing"
    if pd.api.types.is_numeric_dtype(s):
        q = s.quantile([0, 0.5, 1]).round(3).tolist()
        print(f"{c}: {share}, min {q[0]:g}, median {q[1]:g}, max {q[2]:g}")
    else:
        print(
            f"{c}: {share}, {s.nunique()} values, for instance {' '.join(', '.join(map(str, s.dropna().unique()[:3])).split())[:60]}"
        )
