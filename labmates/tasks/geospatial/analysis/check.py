# ruff: noqa
# mypy: ignore-errors
# Do claimed covariates have the same sign in both halves of the map, and claimed hot spots stand out from their rings?
from math import erfc, sqrt

P, Y = at[use], y[use]
Z = sites.loc[use, covs].apply(lambda s: np.log(s) if s.min() > 0 and s.skew() > 0.8 else s)
X = np.column_stack([np.ones(len(Y)), (Z - Z.mean()) / Z.std(), pd.get_dummies(sites.loc[use, "kind"]).to_numpy(float)])
west = P[:, 0] < np.median(P[:, 0])
halves = [np.linalg.lstsq(X[h], Y[h], rcond=None)[0] for h in (west, ~west)]
kept, lost = [], []
for c in claims.get("covariates", []):
    if c["name"] in covs:
        same = all((b[covs.index(c["name"]) + 1] > 0) == (c["sign"] != "-") for b in halves)
        (kept if same else lost).append(c)
left = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
firm, weak, chance = [], [], []
for spot in claims.get("hot_spots", []):
    x, n, r = (spot[k] for k in ("x", "y", "radius"))
    away = np.hypot(P[:, 0] - x, P[:, 1] - n)
    near, ring = left[away < max(r, 150)], left[(away > 2.5 * r) & (away < 2.5 * r + 600)]
    if len(near) < 3 or len(ring) < 10:
        continue
    gain = near.mean() - ring.mean()
    # Neighbours say much the same: no more than six of the samples count as independent.
    chance.append(erfc(gain / sqrt(ring.var() / min(6, len(near)) + ring.var() / 30) / sqrt(2)) / 2)
    (firm if chance[-1] < 0.02 else weak).append(spot)
print(f"claimed covariates: {len(kept) + len(lost)}; the same sign in both halves: {len(kept)}")
print(
    f"claimed hot spots: {len(chance)}; above their rings with p < 0.02: {len(firm)}; median p = {np.median(chance or [1]):.2g}"
)
if lost or weak:
    print(
        "not confirmed: "
        + "; ".join([c["name"] for c in lost] + [f"hot spot at {s['x']:.0f}, {s['y']:.0f}" for s in weak])
    )
found = {"covariates": kept} if kept else {}
found |= {"hot_spots": firm} if firm else {}
print("RESULT", json.dumps(found))
