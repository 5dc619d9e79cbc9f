# ruff: noqa
# mypy: ignore-errors
# Regression on covariates and rock, hot spots in what it leaves, a variogram of the rest, then generalised least squares.
from math import erfc, sqrt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import least_squares

LEAST = 3.0
P, Y, rng = at[use], y[use], np.random.default_rng(0)
Z = sites.loc[use, covs].apply(lambda s: np.log(s) if s.min() > 0 and s.skew() > 0.8 else s)
kinds = sorted(sites["kind"].value_counts().loc[lambda s: s > 0.02 * len(sites)].index)
D = np.stack([(sites.loc[use, "kind"] == k).to_numpy(float) for k in kinds[1:]], 1) if len(kinds) > 1 else Z.iloc[:, :0]
X = np.column_stack([np.ones(len(Y)), (Z - Z.mean()) / Z.std(), D])
e = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
pairs = cKDTree(P).sparse_distance_matrix(cKDTree(P), 1200, output_type="coo_matrix").tocsr()


def bump(q, places):
    return q[0] * 0.5 ** (((places - q[1:3]) ** 2).sum(1) / q[3] ** 2)


W, R = pairs.copy(), pairs.copy()
W.data = np.where(pairs.data < 500, 0.5 ** (pairs.data / 250) ** 2, 0)
R.data = ((pairs.data > 600) & (pairs.data < 1200)).astype(float)
own, ring = 1 + W.sum(1).A1, np.maximum(R.sum(1).A1, 1)
thin = own < 1.5 * np.median(own)


def search(e, least):
    # Contrast of each site's surroundings with a ring around them, against its spread where sampling was even.
    T = ((e + W @ e) / own - (R @ e) / ring) / np.sqrt(0.1 + 1 / own)
    T = (T - np.median(T[thin])) / (1.4826 * np.median(np.abs(T - np.median(T[thin]))[thin]))
    spots, free = [], T > least
    while free.any() and len(spots) < 12:
        top = np.flatnonzero(free)[T[free].argmax()]
        close = np.hypot(*(P - P[top]).T) < 800
        free &= ~close
        fit = least_squares(
            lambda q: bump(q, P[close]) + q[4] - e[close],
            [1.0, *P[top], 250.0, 0.0],
            x_scale=[1, 50, 50, 50, 1],
            bounds=([0, *(P[top] - 400), 100, -3], [6, *(P[top] + 400), 600, 3]),
            max_nfev=40,
        )
        if fit.x[0] > 0.6:
            spots.append((*fit.x[:4], T[top]))
    return spots


near = cKDTree(P).query_pairs(2000, output_type="ndarray")
near = near[rng.permutation(len(near))[:400_000]]
step = P[near[:, 0]] - P[near[:, 1]]
lag, way = np.hypot(*step.T), np.degrees(np.arctan2(step[:, 0], step[:, 1])) % 180
edges = np.array([0, 60, 110, 160, 220, 300, 380, 480, 600, 750, 900, 1100, 1300, 1600])
cell = np.digitize(lag, edges) * 6 + (way // 30).astype(int)
count = np.bincount(cell, minlength=6 * len(edges) + 6)
ok = count > 150
weight = np.sqrt(np.minimum(count[ok], 2000))
# What second samples tell of the nugget counts as much as a full bin.
known, nugget = (weight.max(), nugget) if nugget == nugget else (0.0, 1.0)
mid = np.stack([np.bincount(cell, s, len(count)) / np.maximum(count, 1) for s in np.abs(step).T], 1)
mid[:, 1] *= np.where(np.arange(len(count)) % 6 < 3, 1, -1)


def scaled(h, q):
    a = q[4]
    return np.hypot(
        h[..., 0] * np.sin(a) + h[..., 1] * np.cos(a), np.exp(q[3]) * (h[..., 0] * np.cos(a) - h[..., 1] * np.sin(a))
    )


def gamma(h, q):
    return np.exp(q[0]) * (q[1] + (1 - q[1]) * (1 - np.exp(-3 * scaled(h, q) / np.exp(q[2]))))


def variogram(e):
    g = np.bincount(cell, (e[near[:, 0]] - e[near[:, 1]]) ** 2 / 2, len(count)) / np.maximum(count, 1)
    fits = [
        least_squares(
            lambda q: np.append(weight * (g[ok] / gamma(mid[ok], q) - 1), known * (nugget / np.exp(q[0]) / q[1] - 1)),
            [np.log(e.var()), 0.3, np.log(1000), 0.4, a],
            bounds=([-6, 0.01, np.log(150), 0, -4], [4, 0.95, np.log(5000), np.log(5), 8]),
            max_nfev=60,
        )
        for a in np.radians([0, 45, 90, 135])
    ]
    return min(fits, key=lambda f: f.cost).x


some = np.sort(rng.permutation(len(Y))[:1200])
for turn in range(2):
    spots = search(e, LEAST)
    bumps = sum((bump(s, P) for s in spots), np.zeros(len(Y)))
    q = variogram(e - bumps)
    C = np.exp(q[0]) * np.eye(len(some)) * q[1] + np.exp(q[0]) * (1 - q[1]) * np.exp(
        -3 * scaled(P[some][:, None] - P[some], q) / np.exp(q[2])
    )
    F = cho_factor(C)
    A = X[some].T @ cho_solve(F, X[some])
    b = np.linalg.solve(A, X[some].T @ cho_solve(F, (Y - bumps)[some]))
    t = b / np.sqrt(np.diag(np.linalg.inv(A)))
    e = Y - X @ b
p = [erfc(abs(v) / sqrt(2)) for v in t]
limit = 0.05 / len(covs)
drivers = [[c, round(float(b[i]), 3)] for i, c in enumerate(covs, 1) if p[i] < limit]
rock = dict(zip(kinds, [0.0, *b[1 + len(covs) :]]))
reach, ratio, azimuth = float(np.exp(q[2])), float(np.exp(q[3])), float(np.degrees(q[4]) % 180)
order = sorted(range(1, 1 + len(covs)), key=lambda i: p[i])
for i in order[:5]:
    print(f"{covs[i - 1]}: {b[i]:+.2f} log units per sd, t = {t[i]:.1f}, p = {p[i]:.1g}")
print(f"{ROCK}: " + ", ".join(f"{k} {v:+.2f}" for k, v in sorted(rock.items(), key=lambda kv: -kv[1])))
print(
    f"variogram: practical range {reach:.0f} m at azimuth {azimuth:.0f}, ratio {ratio:.2f}, nugget {100 * q[1]:.0f} % of the sill {np.exp(q[0]):.2f}"
)
for s in spots[:8]:
    print(
        f"hot spot at {s[1]:.0f}, {s[2]:.0f}: {np.exp(s[0]):.1f} times the surroundings, half-distance {s[3]:.0f} m, z = {s[4]:.1f}"
    )
found = {
    "covariates": [{"name": c, "sign": "+" if v > 0 else "-"} for c, v in drivers],
    "richest_rock": max(rock, key=rock.get) if len(rock) > 1 else None,
    "range_m": round(reach),
    "anisotropy_azimuth": round(azimuth, 1),
    "anisotropy_ratio": round(ratio, 2),
    "nugget_share": round(float(q[1]), 3),
    "hot_spots": [dict(zip(("x", "y", "radius"), (round(float(v)) for v in s[1:4]))) for s in spots],
}
print("RESULT", json.dumps(found))
