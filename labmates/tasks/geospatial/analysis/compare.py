# ruff: noqa
# mypy: ignore-errors
# What each part of the trend is worth on blocks that were not fitted, and how the search depends on its threshold.
square = np.unique(P // 1000, axis=0, return_inverse=True)[1].ravel()
fold = rng.integers(10, size=square.max() + 1)[square]
J = len(covs)
found_by = [i for i, c in enumerate(covs, 1) if c in dict(drivers)]
parts = {
    "all covariates and rock": X,
    "found covariates and rock": X[:, [0, *found_by, *range(J + 1, X.shape[1])]],
    "covariates alone": X[:, : J + 1],
    "rock alone": X[:, [0, *range(J + 1, X.shape[1])]],
}


def judge(M):
    left = np.empty(len(Y))
    for f in range(10):
        left[fold == f] = (Y - M @ np.linalg.lstsq(M[fold != f], Y[fold != f], rcond=None)[0])[fold == f]
    rss = ((Y - M @ np.linalg.lstsq(M, Y, rcond=None)[0]) ** 2).sum()
    return [
        round(1 - float((left**2).mean() / Y.var()), 3),
        round(float(len(Y) * np.log(rss / len(Y)) + 2 * M.shape[1])),
    ]


table = {name: judge(M) for name, M in parts.items()}
print("trend | R2 in left-out blocks of 1000 m | AIC")
for name, v in table.items():
    print(f"{name} | {v[0]:.3f} | {v[1]}")
for least in (2.5, 3.5):
    print(
        f"hot spots with a contrast of at least {least} robust sd: {len(search(e, least))} (stated: {len(spots)} from {LEAST})"
    )
