# ruff: noqa
# mypy: ignore-errors
# One row for each patient, numbers out of text, one unit, no shifts between assay batches, gaps filled from the others.
def tidy(column):
    return column.astype(str).str.replace("_", " ").str.strip().str.lower()


d = d.drop_duplicates(ID).reset_index(drop=True)
levels = list(tidy(d[ARM]).value_counts().index[:2])
control = "placebo"
treatment = next((level for level in levels if level != control), "no second arm")
known = tidy(d[ARM]).isin(levels).to_numpy()
treated = (tidy(d[ARM]) != control).to_numpy(float)
coded = [c for c in d.columns if re.fullmatch(r"[A-Z]{2}\d+", str(c))]
raw = {c: d[c] if c in num else pd.to_numeric(d[c].astype(str).str.lstrip("<> "), errors="coerce") for c in coded}
markers = [c for c in raw if (raw[c] > 0).mean() > 0.3 and raw[c].nunique() > 20]
V = pd.DataFrame({c: raw[c] for c in markers})
low = pd.DataFrame({c: d[c].astype(str).str.startswith("<") for c in markers})
V = V.mask(V <= 0).mask(low, V / 2**0.5)
X = np.log(V)
batch = tidy(d[BATCH])
m = X.groupby(batch).transform("median")
off = (m - X.groupby(batch).median().median()) / np.log(10)
off = off.where(off.abs() > 0.75, 0).round()
rescaled = [c for c in markers if off[c].abs().max() >= 1]
X = X - off * np.log(10)

sd = (X.quantile(0.84) - X.quantile(0.16)) / 2
X = ((X - X.median()) / sd.where(sd > 0, 1)).clip(-3.2, 3.2)
groups, between = batch.nunique(), X.groupby(batch).transform("mean")
F = (between - X.mean()).pow(2).sum() / max(groups - 1, 1) / ((X - between).pow(2).sum() / max(len(X) - groups, 1))
shifted = [c for c in markers if groups > 1 and F[c] > 1 + 4.5 * (2 / (groups - 1)) ** 0.5]
X[shifted] = X[shifted] - between[shifted] + X[shifted].mean()
filled = X.notna().mean(axis=1) > 0.5
Z = X.fillna(X.mean())
for _ in range(3):
    C = Z[filled].cov().to_numpy() + 0.1 * np.eye(len(markers))
    P = np.linalg.inv(C)
    guess = Z - ((Z - Z.mean()) @ P).to_numpy() / np.diag(P)
    Z = X.fillna(guess)
Z = (Z - Z[filled].mean()) / Z[filled].std()

y = pd.to_numeric(d[OUTCOME], errors="coerce")
# Where most got worse by the record, in both arms, its sign is turned.
y = (y * np.where(y.groupby(d[ID].astype(str).str[:2]).transform("median") < 0, -1, 1)).to_numpy(float)
mid, wide = np.nanmedian(y), np.nanpercentile(y, 84) - np.nanpercentile(y, 16)
wild = np.abs(y - mid) > 2.25 * wide
y = np.where(wild, np.nan, y)
ok = filled.to_numpy() & np.isfinite(y) & known
gone = [100 * np.isnan(y)[treated == a].mean() for a in (1, 0)]
print(
    f"{len(d)} patients, {int(treated.sum())} with {treatment} and "
    f"{int((1 - treated).sum())} with {control}; {len(markers)} markers; outcome {OUTCOME}"
)
print(
    f"{100 * X.isna().to_numpy().mean():.1f} % of the marker values missing, {100 * low.to_numpy().mean():.1f} % below the "
    f"detection limit; outcome missing for {gone[0]:.1f} % (treated) and {gone[1]:.1f} % (control)"
)
print(f"another unit in some batches: {', '.join(rescaled) or 'none'}; shifted batches: {', '.join(shifted) or 'none'}")
print("RESULT", json.dumps({"n_patients": len(d), "other_unit_markers": rescaled, "batch_markers": shifted}))
