# ruff: noqa
# mypy: ignore-errors
# Where the detector is most likely to be wrong: noisy sensors, restless hours, gaps.
noise = Z.clip(-6, 6).std()
tails = (Z.abs() > 3).mean()
hours = Z.abs().clip(upper=6).mean(axis=1).groupby(t % day // max(1, day // 8)).mean()
print("sd in units of the normal spread: " + ", ".join(f"{c} {v:.2f}" for c, v in noise.items()))
print(
    f"beyond three spreads: {100 * tails.mean():.2f} % of the readings, most in {tails.idxmax()} ({100 * tails.max():.2f} %)"
)
print("mean distance by eighth of the day: " + ", ".join(f"{v:.2f}" for v in hours))
print(f"missing after cleaning: {100 * R.isna().to_numpy().mean():.1f} %, most in {R.isna().mean().idxmax()}")
