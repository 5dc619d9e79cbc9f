# ruff: noqa
# mypy: ignore-errors
# Least squares: outcome = covariates + arm + markers + arm x markers; first which interactions, then all else given these.
from math import erfc, sqrt


def p_of(t):
    return erfc(abs(t) / sqrt(2))


def chosen(t, rate=0.1):
    p = np.array([p_of(v) for v in t])
    good = np.flatnonzero(np.sort(p) <= rate * np.arange(1, len(p) + 1) / len(p))
    return [int(i) for i in np.argsort(p)[: good[-1] + 1]] if len(good) else []


def columns(c):
    if c in num:
        v = d[c].mask(d[c] < 0)
        return ((v - v.median()) / (v.std() or 1)).fillna(0).clip(-3, 3).to_frame()
    k = tidy(d[c])
    return pd.get_dummies(k.where(k.map(k.value_counts()) > 20, "other"), dtype=float).iloc[:, 1:]


skip = {*markers, OUTCOME, ARM, ID, BATCH}
W = np.column_stack([np.ones(len(d)), *[columns(c) for c in d.columns if c in num + words and c not in skip]])
M, K = Z.to_numpy(), len(markers)


def fit(inter, rows, y=y):
    A = np.column_stack([treated, M, treated[:, None] * M[:, inter], W])[rows]
    b = np.linalg.lstsq(A, y[rows], rcond=None)[0]
    s = sqrt(((y[rows] - A @ b) ** 2).sum() / max(len(A) - A.shape[1], 1))
    se = s * np.sqrt(np.diag(np.linalg.pinv(A.T @ A)))
    return b, b / np.where(se > 0, se, 1), s


inter = sorted(chosen(fit(list(range(K)), ok)[1][K + 1 : 2 * K + 1]))
b, t, s = fit(inter, ok)
main = chosen(t[1 : K + 1])
helped = b[0] + M[:, inter] @ b[K + 1 : K + 1 + len(inter)]


def effect(i, size):
    return {"marker": markers[i], "sign": "+" if size > 0 else "-", "size": abs(round(float(size), 2))}


found = {
    "average_treatment_effect": round(float(b[0]), 2),
    "prognostic_markers": [effect(i, b[1 + i]) for i in sorted(main)],
    "predictive_markers": [effect(i, b[K + 1 + k]) for k, i in enumerate(inter)],
    "benefit_share": round(float((helped[filled] > 0).mean()), 3),
}
print(
    f"average effect of the treatment {b[0]:+.2f} points, standard error {b[0] / t[0]:.2f}, t = {t[0]:.1f}, "
    f"n = {int(ok.sum())}; unexplained sd {s:.1f}; benefit expected for {100 * found['benefit_share']:.0f} %"
)
for k, i in sorted(enumerate(inter), key=lambda q: -abs(t[K + 1 + q[0]]))[:5]:
    u = t[K + 1 + k]
    print(f"predictive {markers[i]}: interaction {b[K + 1 + k]:+.2f} points per sd, t = {u:.1f}, p = {p_of(u):.1g}")
for i in main[:6]:
    print(f"prognostic {markers[i]}: {b[1 + i]:+.2f} points per sd, t = {t[1 + i]:.1f}, p = {p_of(t[1 + i]):.1g}")
print("RESULT", json.dumps(found))
