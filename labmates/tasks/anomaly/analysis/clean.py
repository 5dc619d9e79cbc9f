# ruff: noqa
# mypy: ignore-errors
# One reading per sample and sensor: no error codes, no stuck loggers, one unit; then the normal course is taken out.
sensors = [c for c in floats if c != TIME]
R = d.drop_duplicates(TIME).set_index(TIME)[sensors].sort_index()
marks = [v for v in (-999, -9999, 9999) if (R == v).to_numpy().any()]
R = R.mask(R.isin(marks))
codes = int(R.isna().sum().sum())
same = R.apply(lambda s: s.groupby((s != s.shift()).cumsum()).transform("size"))
R = R.mask(same >= 8)
stuck = int((same >= 8).sum().sum())
rescaled = []
for c in sensors:
    s = R[c]
    jump = np.log(
        (s[::-1].rolling(145, min_periods=30).median()[::-1] / s.rolling(145, min_periods=30).median()).abs()
    ).abs()
    if jump.max() > 0.5:
        at = jump.idxmax()
        a, b = s[:at], s[at:]
        R.loc[at:, c] = (b - b.median()) * (a - a.median()).abs().median() / (
            b - b.median()
        ).abs().median() + a.median()
        rescaled.append(c)

t = np.arange(len(R))
day = 144  # one sample every ten minutes
Z, drift = pd.DataFrame(index=R.index), {}
for c in sensors:
    rest = R[c] - R[c].groupby(t % day).transform("median")
    daily = rest.groupby(t // day).median().dropna()
    x, y = daily.index.to_numpy(float), daily.to_numpy()
    line = np.polyfit(x, y, 1) if len(x) > 3 else np.zeros(2)
    rest = rest - np.polyval(line, t / day - 0.5)
    spread = 1.4826 * (rest - rest.median()).abs().median()
    Z[c] = (rest - rest.median()) / (spread or 1.0)
    noise = np.std(y - np.polyval(line, x)) / (np.sqrt(((x - x.mean()) ** 2).sum()) or 1.0)
    drift[c] = (line[0] * len(x) / (spread or 1.0), line[0] / (noise or 1.0))
moving = [c for c in sensors if abs(drift[c][0]) > 1.2 and abs(drift[c][1]) > 6]
print(
    f"{len(sensors)} sensors, {len(R)} samples, {codes} missing readings or error codes, {stuck} readings of stuck loggers, "
    f"unit changed in {rescaled or 'none'}, cycle of {day} samples taken out"
)
print(
    "drift over the whole time in noise units: "
    + ", ".join(f"{c} {v:+.1f} (t = {s:.0f})" for c, (v, s) in drift.items())
)
print("RESULT", json.dumps({"n_sensors": len(sensors), "drifting_sensors": moving}))
