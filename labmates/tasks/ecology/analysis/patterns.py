# ruff: noqa
# mypy: ignore-errors
# Which series move together, how long they remember, and what the year does to them.
import matplotlib.pyplot as plt

M = pd.concat({n: L.xs(n, axis=1, level=1).mean(axis=1) for n in names}, axis=1)
C = M.corr(method="spearman")
pairs = sorted(((abs(C.iloc[i, j]), i, j) for i in range(len(names)) for j in range(i)), reverse=True)
for _, i, j in pairs[:4]:
    print(f"{names[i]} and {names[j]}: rank correlation {C.iloc[i, j]:+.2f}")
memory = {n: M[n].autocorr(1) for n in names}
print("correlation from one step to the next: " + ", ".join(f"{n} {v:.2f}" for n, v in memory.items()))
trend = {n: (M[n].iloc[-len(M) // 4 :].mean() - M[n].iloc[: len(M) // 4].mean()) for n in names}
print("last against first quarter, log units: " + ", ".join(f"{n} {v:+.2f}" for n, v in trend.items()))
fig, ax = plt.subplots(figsize=(5, 3), dpi=70)
ax.plot(M.rolling(9, center=True, min_periods=1).mean(), lw=1)
ax.set(xlabel=str(TIME), ylabel=f"log {VALUE}")
ax.legend(names, fontsize=5)
plt.show()
plt.close(fig)
