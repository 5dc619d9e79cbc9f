# ruff: noqa
# mypy: ignore-errors
XY, VALUE, ROCK = ["easting_m", "northing_m"], "grade_ppm", "rock"
# Divided data have other tables below the open one, whose rows lack these columns.
d = df.drop_duplicates().dropna(subset=[*XY, ROCK])
num = [c for c in d.columns if pd.api.types.is_numeric_dtype(d[c])]
words = [c for c in d.columns if c not in (*num, "sampled_on") and 1 < d[c].nunique() < 500]
samples = len(d[[*XY, VALUE, ROCK]])
print(
    f"{len(df)} rows, {len(df.columns)} columns, {len(df) - len(df.drop_duplicates())} repeated rows; {samples} samples"
)
