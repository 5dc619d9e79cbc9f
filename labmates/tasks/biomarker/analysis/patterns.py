# ruff: noqa
# mypy: ignore-errors
# Which markers move together, how the arms compare, and who lacks an outcome.
import matplotlib.pyplot as plt

C = X[filled].corr(method="spearman").to_numpy()
pairs = sorted(((abs(C[i, j]), i, j) for i in range(len(C)) for j in range(i) if C[i, j] == C[i, j]), reverse=True)
for _, i, j in pairs[:4]:
    print(f"{markers[i]} and {markers[j]}: rank correlation {C[i, j]:+.2f}")
before = [c for c in num if c not in markers and c != OUTCOME]
for c in before:
    v = d[c].mask(d[c] < 0)
    a, b = (v[(treated == k) & known] for k in (1, 0))
    print(f"{c}: median {a.median():g} (treated) and {b.median():g} (control), {100 * v.isna().mean():.1f} % missing")
left = pd.DataFrame({c: d[c].mask(d[c] < 0) for c in before}).assign(left=~np.isfinite(y))
gap = (left[left["left"]].mean() - left[~left["left"]].mean()) / left.std()
print("without an outcome against with one, in sd: " + ", ".join(f"{c} {gap[c]:+.2f}" for c in before))
fig, ax = plt.subplots(figsize=(5, 4), dpi=70)
ax.imshow(C, vmin=-1, vmax=1, cmap="RdBu_r", interpolation="nearest")
ax.set_yticks(range(len(markers)), markers, fontsize=5)
ax.set(title="rank correlation of the log levels")
plt.show()
plt.close(fig)
