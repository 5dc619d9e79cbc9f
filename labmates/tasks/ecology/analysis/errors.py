# ruff: noqa
# mypy: ignore-errors
# Where the growth model fails: residuals by place, by series and by time of the year.
size = pd.DataFrame(R, columns=names).assign(
    place=[places[p] for p in pl], half=np.where(at < T // 2, "first", "second")
)
by_place = size.groupby("place")[names].std().mean(axis=1)
by_series = size[names].std()
tails = (size[names].abs() > 3 * by_series).mean()
print("residual sd by place: " + ", ".join(f"{k} {v:.2f}" for k, v in by_place.items()))
print("residual sd by series: " + ", ".join(f"{k} {v:.2f}" for k, v in by_series.items()))
print(f"beyond three sd: {100 * tails.mean():.2f} % (normal: 0.27 %); largest in {tails.idxmax()}")
halves = size.groupby("half")[names].std().mean(axis=1)
print("by half of the time: " + ", ".join(f"{k} {v:.2f}" for k, v in halves.items()))
