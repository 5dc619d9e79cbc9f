# ruff: noqa
# mypy: ignore-errors
# What each part of the model is worth: explained variance on held-out fifths of the patients, and the precision of the effect.
rows = np.flatnonzero(ok)
fold = np.random.default_rng(0).permutation(len(rows)) % 5
steps = {
    "arm alone": np.column_stack([treated, np.ones(len(d))]),
    "and covariates": np.column_stack([treated, W]),
    "and markers": np.column_stack([treated, W, M]),
    "and chosen interactions": np.column_stack([treated, W, M, treated[:, None] * M[:, inter]]),
    "and all interactions": np.column_stack([treated, W, M, treated[:, None] * M]),
}
print("model | R2 on held-out fifths | effect | standard error")
for name, A in steps.items():
    guess = np.zeros(len(rows))
    for f in range(5):
        a, b = rows[fold != f], rows[fold == f]
        guess[fold == f] = A[b] @ np.linalg.lstsq(A[a], y[a], rcond=None)[0]
    B = np.linalg.lstsq(A[rows], y[rows], rcond=None)[0]
    s2 = ((y[rows] - A[rows] @ B) ** 2).sum() / max(len(rows) - A.shape[1], 1)
    se = sqrt(s2 * np.linalg.pinv(A[rows].T @ A[rows])[0, 0])
    r2 = 1 - ((y[rows] - guess) ** 2).sum() / ((y[rows] - y[rows].mean()) ** 2).sum()
    print(f"{name} | {r2:.3f} | {B[0]:+.2f} | {se:.2f}")
