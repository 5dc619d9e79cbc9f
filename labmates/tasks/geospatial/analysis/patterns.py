# ruff: noqa
# mypy: ignore-errors
# What goes along with the grade, which rock is rich, how alike neighbours are, and a map.
import matplotlib.pyplot as plt

C = sites.loc[use, covs].corrwith(sites.loc[use, "log_grade"], method="spearman")
told = ", ".join(f"{c} {C[c]:+.2f}" for c in C.abs().sort_values(ascending=False).index[:6])
print(f"rank correlation with the grade: {told}")
medians = np.exp(sites[use].groupby("kind")["log_grade"].median()).sort_values(ascending=False)
print(f"median {VALUE} by {ROCK}: " + ", ".join(f"{k} {v:.1f}" for k, v in medians.head(6).items()))
z = (y[use] - y[use].mean()) / y[use].std()
around = cKDTree(at[use]).query(at[use], 9)[1][:, 1:]
moran = float((z * z[around].mean(1)).mean())
print(f"correlation of a site with its eight nearest (Moran's I): {moran:.2f}, z = {moran * np.sqrt(4 * len(z)):.0f}")
fig, ax = plt.subplots(figsize=(5, 4), dpi=70)
drawn = ax.scatter(*at[use].T, c=y[use], s=4)
fig.colorbar(drawn, label=f"log {VALUE}")
ax.set(xlabel=E, ylabel=N, aspect="equal")
plt.show()
plt.close(fig)
