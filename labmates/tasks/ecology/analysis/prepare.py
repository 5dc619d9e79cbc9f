# ruff: noqa
# mypy: ignore-errors
TIME, PLACE, ENTITY, VALUE = "survey", "site", "species", "count"
# Divided data have other tables below the open one, whose rows lack these columns.
d = df.drop_duplicates().dropna(subset=[TIME, PLACE, ENTITY])
d[TIME] = d[TIME].astype(int)
num = [c for c in d.columns if pd.api.types.is_numeric_dtype(d[c])]
floats = [c for c in num if (d[c].dropna() % 1 != 0).any()]
steps = d[[TIME, PLACE, ENTITY, VALUE]].nunique()[TIME]
print(
    f"{len(df)} rows, {len(df.columns)} columns, {len(df) - len(df.drop_duplicates())} repeated rows; {steps} surveys of {d[PLACE].nunique()} sites"
)
