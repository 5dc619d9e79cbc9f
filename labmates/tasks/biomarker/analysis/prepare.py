# ruff: noqa
# mypy: ignore-errors
ID, ARM, OUTCOME, BATCH = "patient", "arm", "improvement", "batch"
# Divided data have other tables below the open one, whose rows lack these columns.
d = df.drop_duplicates().dropna(subset=[ID, ARM])
num = [c for c in d.columns if pd.api.types.is_numeric_dtype(d[c])]
words = [c for c in d.columns if c not in (*num, ID, "enrolled") and 1 < d[c].nunique() < 500]
people = d[[ID, ARM, OUTCOME, BATCH]].nunique()[ID]
print(
    f"{len(df)} rows, {len(df.columns)} columns, {len(df) - len(df.drop_duplicates())} repeated rows; {people} patients"
)
