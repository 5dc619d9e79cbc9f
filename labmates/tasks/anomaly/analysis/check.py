# ruff: noqa
# mypy: ignore-errors
# Is each claimed event rarer than what the same sensors do elsewhere for as long?
inside = np.zeros(len(Z), bool)
where = {v: i for i, v in enumerate(Z.index)}
claimed = [(e["start"], e["end"], e["sensors"], e["kind"]) for e in claims.get("events", [])]
claimed = [e for e in claimed if e[0] in where and e[1] in where]
for a, b, *_ in claimed:
    inside[max(0, where[a] - 12) : where[b] + 13] = True

kept, lost, chance = [], [], []
for a, b, who, kind in claimed:
    who = [c for c in who if c in sensors] or sensors
    n = b - a + 1
    level = Z[who].abs().mean(axis=1).rolling(n, min_periods=1).mean()
    here = level.iloc[where[b]]
    p = (level[~inside] >= here).mean()
    chance.append(p)
    (kept if p < 0.005 else lost).append([a, b, who, kind])
print(
    f"claimed events: {len(claimed)}; rarer than 1 in 200 stretches of the same length: {len(kept)}; median p = {np.median(chance or [1]):.2g}"
)
if lost:
    print("not confirmed: " + "; ".join(f"{TIME} {a} on {', '.join(w)}" for a, b, w, _ in lost[:12]))
found = {}
if claimed:
    flag = np.zeros(len(Z), bool)
    for a, b, *_ in kept:
        flag[where[a] : where[b] + 1] = True
    times = {c: sum(c in e[2] for e in kept) for c in sensors}
    kinds = {k: sum(e[3] == k for e in kept) for k in ("point", "contextual", "collective")}
    found = {
        "anomalous_share": round(float(flag.mean()), 4),
        "most_affected_sensor": max(times, key=times.get),
        **{f"n_{kind}": number for kind, number in kinds.items()},
        "events": [dict(zip(("start", "end", "sensors", "kind"), e)) for e in kept],
    }
print("RESULT", json.dumps(found))
