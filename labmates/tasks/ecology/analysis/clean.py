# ruff: noqa
# mypy: ignore-errors
import difflib


def one_spelling(column):
    tidy = column.astype(str).str.replace("_", " ").str.split().str.join(" ").str.lower()
    times = tidy.value_counts()
    common = [n for n in times.index if times[n] > 0.2 * times.iloc[0]]
    short = {f"{n[0]}. {n.split()[-1]}": n for n in common}
    near = {n: difflib.get_close_matches(n, common, 1, 0.8) for n in times.index if n not in common}
    whole = tidy.map({n: short.get(n) or (near[n] or [n])[0] if n in near else n for n in times.index})
    return whole.map(column.groupby(whole).agg(lambda s: s.value_counts().index[0]))


before = df[ENTITY].nunique()
d = d.assign(place=one_spelling(d[PLACE]), entity=one_spelling(d[ENTITY]))
d = d.drop_duplicates([TIME, "place", "entity"])
names, places = sorted(d["entity"].unique()), sorted(d["place"].unique())
t0, t1 = int(d[TIME].min()), int(d[TIME].max())
wide = d.pivot(index=TIME, columns=["place", "entity"], values=VALUE).reindex(range(t0, t1 + 1))
wide = wide.reindex(columns=pd.MultiIndex.from_product([places, names]))
L = np.log(wide.clip(lower=0) + 0.5)
slips = (L - L.rolling(9, center=True, min_periods=3).median()).abs() > 1.8
L = L.mask(slips)

covariates, converted = {}, 0
for c in [c for c in floats if c not in (VALUE, TIME)]:
    w = d.groupby([TIME, "place"])[c].median().unstack().reindex(range(t0, t1 + 1))
    if "temp" in c.lower():
        usual = w.median(axis=1).rolling(5, center=True, min_periods=1).min()
        other = (w - 32) / 1.8
        wrong = (w.sub(usual, axis=0).abs() > 12) & (other.sub(usual, axis=0).abs() < 12)
        w, converted = w.where(~wrong, other), converted + int(wrong.sum().sum())
    covariates[c] = w.interpolate(limit_direction="both")
gaps = int(wide.isna().sum().sum())
print(f"{ENTITY}: {before} spellings, {len(names)} after repair: {', '.join(names)}")
print(
    f"{len(places)} places, {gaps} of {wide.size} values missing, {int(slips.sum().sum())} decimal slips set aside, "
    f"{converted} readings converted from Fahrenheit"
)
print("RESULT", json.dumps({"n_species": len(names)}))
