# ruff: noqa
# mypy: ignore-errors
# Hidden subtypes: a mixture of normal distributions with one covariance, their number chosen by BIC.
Q = Z[filled].to_numpy()
n, K = Q.shape


def seeds(k, seed):
    rng = np.random.default_rng(seed)
    c = Q[rng.integers(n, size=1)]
    while len(c) < k:
        far = ((Q[:, None] - c) ** 2).sum(2).min(1)
        c = np.vstack([c, Q[rng.choice(n, p=far / far.sum())]])
    return np.eye(k)[((Q[:, None] - c) ** 2).sum(2).argmin(1)]


def mixture(R):
    last = -np.inf
    for _ in range(50):
        w = R.sum(0) + 1e-9
        mean = R.T @ Q / w[:, None]
        S = (Q.T @ Q - (mean.T * w) @ mean) / n + 1e-3 * np.eye(K)
        H = np.linalg.inv(np.linalg.cholesky(S))
        A, B = Q @ H.T, mean @ H.T
        logp = np.log(w / n) + A @ B.T - ((B**2).sum(1) + (A**2).sum(1)[:, None]) / 2 + np.log(np.diag(H)).sum()
        top = logp.max(1)
        R = np.exp(logp - top[:, None])
        total = R.sum(1)
        R /= total[:, None]
        like = float((top + np.log(total)).sum())
        if like - last < 1:
            break
        last = like
    return like, R, mean


fits = {}
for k in range(6, 0, -1):
    starts = [seeds(k, s) for s in range(2)]
    if k + 1 in fits:  # the solution with one more, without its smallest part
        more = fits[k + 1][1]
        rest = np.delete(more, more.sum(0).argmin(), 1)
        starts.append((rest + 1e-6) / (rest + 1e-6).sum(1)[:, None])
    fits[k] = max(map(mixture, starts), key=lambda f: f[0])
bic = {k: -2 * f[0] + (k - 1 + k * K) * np.log(n) for k, f in fits.items()}
best = min(bic, key=bic.get)
R = fits[best][1]
share = R.mean(0)
apart = (fits[best][2] - Q.mean(0)) / np.maximum(1 - share, 0.1)[:, None]
use = ok[filled.to_numpy()]
a, v = treated[filled][use], y[filled][use]
A = np.column_stack([R[use], a[:, None] * R[use], Q[use]])
b = np.linalg.lstsq(A, v, rcond=None)[0][best : 2 * best]
se = np.std(v) * 2 / np.sqrt(np.maximum(R[use].sum(0), 1))
print(
    "BIC above the lowest, by number of subtypes: " + ", ".join(f"{k}: {bic[k] - bic[best]:.0f}" for k in sorted(bic))
)
told = []
for k in np.argsort(-share):
    order = np.argsort(-np.abs(apart[k]))
    up, down = ([markers[j] for j in order if w * apart[k, j] > 0.5][:8] for w in (1, -1))
    effect_in = round(float(b[k]), 2)
    told.append({"share": round(float(share[k]), 3), "high": up, "low": down, "treatment_effect": effect_in})
    print(
        f"subtype with {100 * share[k]:.1f} %: high {', '.join(up[:5]) or 'none'}; low {', '.join(down[:5]) or 'none'}; "
        f"effect of the treatment {b[k]:+.1f} points (standard error {se[k]:.1f})"
    )
print("RESULT", json.dumps({"n_subtypes": len(told), "subtypes": told}))
