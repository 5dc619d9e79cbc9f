# ruff: noqa
# mypy: ignore-errors
# Regression kriging against regression alone, in random folds and in folds of whole blocks.
P, Y, rng = at[use], y[use], np.random.default_rng(1)
Z = sites.loc[use, covs].apply(lambda s: np.log(s) if s.min() > 0 and s.skew() > 0.8 else s)
D = pd.get_dummies(sites.loc[use, "kind"], drop_first=True).to_numpy(float)
X = np.column_stack([np.ones(len(Y)), (Z - Z.mean()) / Z.std(), D])
square = np.unique(P // 1000, axis=0, return_inverse=True)[1].ravel()
folds = {"random": rng.integers(10, size=len(Y)), "block": rng.integers(10, size=square.max() + 1)[square]}


def r2(error):
    return 1 - float((error**2).mean() / Y.var())


def krige(fold, reach, nugget, k=16):
    trend, rest = np.empty(len(Y)), np.empty(len(Y))
    for f in range(10):
        o, i = fold != f, fold == f
        b = np.linalg.lstsq(X[o], Y[o], rcond=None)[0]
        e = Y[o] - X[o] @ b
        h, j = cKDTree(P[o]).query(P[i], k)
        around = P[o][j]
        C = (1 - nugget) * np.exp(-3 * np.hypot(*np.moveaxis(around[:, :, None] - around[:, None], 3, 0)) / reach)
        w = np.linalg.solve(C + nugget * np.eye(k), (1 - nugget) * np.exp(-3 * h / reach)[..., None])[..., 0]
        trend[i], rest[i] = X[i] @ b, (w * e[j]).sum(1)
    return Y - trend, Y - trend - rest


tried = {(reach, nugget): krige(folds["random"], reach, nugget)[1] for reach in (500, 1000) for nugget in (0.2, 0.5)}
reach, nugget = min(tried, key=lambda s: (tried[s] ** 2).mean())
random = tried[reach, nugget]
plain, block = krige(folds["block"], reach, nugget)
found = {"r2_random_cv": r2(random), "r2_block_cv": r2(block), "r2_covariates_cv": r2(plain)}
print(f"kriging of residuals with a range of {reach} m and a nugget of {nugget} did best in random folds")
print("RESULT", json.dumps({k: round(v, 3) for k, v in found.items()}))
