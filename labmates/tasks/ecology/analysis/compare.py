# ruff: noqa
# mypy: ignore-errors
# What each part of the growth model is worth: left out one at a time, judged by AIC and by the last fifth of the time.
late = at >= 0.8 * T
parts = {
    "all parts": Zb,
    "no effects of others": None,
    "no steps": Z,
    "no weather": np.column_stack([Zb[:, :K], Zb[:, K + len(cov) :]]),
}


def judge(M, i):
    keep = M if M is not None else np.column_stack([F[at, pl][:, [i]], Zb[:, K:]])
    b = np.linalg.lstsq(keep[~late], Y[~late, i], rcond=None)[0]
    r2 = 1 - ((Y[late, i] - keep[late] @ b) ** 2).sum() / ((Y[late, i] - F[at, pl][late, i]) ** 2).sum()
    rss = (rest(Y[:, i], keep) ** 2).sum()
    return r2, len(Y) * np.log(rss / len(Y)) + 2 * keep.shape[1]


table = {m: np.array([judge(M, i) for i in range(K)]) for m, M in parts.items()}
print("model | gain over 'stays as it is' on the last fifth | AIC")
for m, v in table.items():
    print(f"{m} | {v[:, 0].mean():.3f} | {v[:, 1].sum():.0f}")
