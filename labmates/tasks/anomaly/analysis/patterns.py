# ruff: noqa
# mypy: ignore-errors
# Which sensors move together, and how much of each is its daily course.
import matplotlib.pyplot as plt

C = Z.clip(-4, 4).corr(method="spearman")
pairs = sorted(((abs(C.iloc[i, j]), i, j) for i in range(len(sensors)) for j in range(i)), reverse=True)
for _, i, j in pairs[:5]:
    print(f"{sensors[i]} and {sensors[j]}: rank correlation {C.iloc[i, j]:+.2f} after the daily course is taken out")
daily = {c: R[c].groupby(t % day).median().var() / R[c].var() for c in sensors}
print("share of variance that is daily course: " + ", ".join(f"{c} {v:.2f}" for c, v in daily.items()))
fig, ax = plt.subplots(figsize=(5, 3), dpi=70)
ax.imshow(Z.abs().clip(upper=6).rolling(9, center=True, min_periods=3).mean().T, aspect="auto", interpolation="nearest")
ax.set_yticks(range(len(sensors)), sensors, fontsize=6)
ax.set(xlabel=str(TIME), title="distance from the normal course")
plt.show()
plt.close(fig)
