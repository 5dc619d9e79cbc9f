# ruff: noqa
# mypy: ignore-errors
# Where the model fails: residuals by arm, by batch, by the level of what it predicts, and in the tails.
A = np.column_stack([treated, M, treated[:, None] * M[:, inter], W])[ok]
guess = A @ np.linalg.lstsq(A, y[ok], rcond=None)[0]
R = pd.Series(y[ok] - guess)
arms = R.groupby(treated[ok]).std()
print(f"residual sd by arm: treated {arms.get(1.0, np.nan):.2f}, control {arms.get(0.0, np.nan):.2f}")
fifths = R.groupby(pd.qcut(pd.Series(guess), 5, labels=False, duplicates="drop"))
print("residual mean by fifth of the prediction: " + ", ".join(f"{v:+.2f}" for v in fifths.mean()))
by = R.groupby(batch[ok].to_numpy()).mean()
print(f"residual mean by batch: from {by.min():+.2f} to {by.max():+.2f}")
far = R.abs() > 3 * R.std()
print(f"beyond three sd: {100 * far.mean():.2f} % (normal: 0.27 %), largest {R.abs().max():.1f} points")
gone = pd.Series(~np.isfinite(y)).groupby(treated).mean()
print(
    f"missing after cleaning: {100 * (~np.isfinite(y)).mean():.1f} % of the outcomes, {100 * (~filled).mean():.1f} % of the samples"
)
