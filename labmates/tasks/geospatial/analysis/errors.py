# ruff: noqa
# mypy: ignore-errors
# Where the map fails: residuals of trend and hot spots by rock, by laboratory, by quarter and by how alone a site is.
r = pd.Series(e - bumps, index=sites.index[use])
tidy = {c: sites.loc[use, c].astype(str).str.strip().str.lower() for c in ("kind", *few) if c != ROCK}
told = {c: r.groupby(s).agg(["mean", "std"]) for c, s in tidy.items()}
for c, v in list(told.items())[:3]:
    name = ROCK if c == "kind" else c
    print(f"residual by {name}: " + ", ".join(f"{k} {m:+.2f} (sd {s:.2f})" for k, m, s in v.head(5).itertuples()))
alone = cKDTree(P).query(P, 2)[0][:, 1]
dense = alone < 70
print(f"residual sd where the next site is nearer than 70 m: {r[dense].std():.2f}, elsewhere {r[~dense].std():.2f}")
quarter = np.where(P[:, 1] > np.median(P[:, 1]), "north", "south") + np.where(
    P[:, 0] > np.median(P[:, 0]), "east", "west"
).astype(object)
print("mean residual by quarter: " + ", ".join(f"{k} {v:+.2f}" for k, v in r.groupby(quarter).mean().items()))
print(f"beyond three sd: {100 * (r.abs() > 3 * r.std()).mean():.2f} % (normal: 0.27 %)")
