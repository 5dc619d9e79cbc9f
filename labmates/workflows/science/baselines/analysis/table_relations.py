# ruff: noqa
# mypy: ignore-errors
# Relations in a plain table: ranks that go together, and groups that differ.
from math import erfc, sqrt

usable = [c for c in num if d[c].nunique() > 5 and d[c].nunique() < len(d) or c in floats][:40]
C = d[usable].corr(method="spearman") if len(usable) > 1 else pd.DataFrame()
pairs = sorted(
    ((abs(C.iloc[i, j]), i, j) for i in range(len(C)) for j in range(i) if C.iloc[i, j] == C.iloc[i, j]), reverse=True
)
for _, i, j in pairs[:6]:
    r, n = C.iloc[i, j], d[[usable[i], usable[j]]].dropna().shape[0]
    print(
        f"{usable[i]} and {usable[j]}: rank correlation {r:+.2f}, n = {n}, p = {erfc(abs(r) * sqrt(max(n - 1, 0)) / sqrt(2)):.1g}"
    )
groups = [c for c in txt + num if 1 < d[c].nunique() <= 6][:6]
for g in groups:
    means = d.groupby(g)[usable].mean()
    gap = ((means.max() - means.min()) / d[usable].std()).dropna()
    if len(gap):
        print(f"{g} ({d[g].nunique()} groups): the largest gap is {gap.max():.2f} sd, in {gap.idxmax()}")
missing = d.isna().mean()
print(f"most missing: {missing.idxmax()} ({100 * missing.max():.1f} %); columns used: {len(usable)}")
