# ruff: noqa
# mypy: ignore-errors
import json

n, k, r = len(df), len(df.columns), int(df.duplicated().sum())
print(f"{n} rows, {k} columns, {r} repeated rows, {int(df.isna().sum().sum())} missing values")
print("RESULT", json.dumps({"rows": n, "columns": k, "repeated": r}))
