# ruff: noqa
# mypy: ignore-errors
# Spikes stand out from their neighbours; longer events keep a sensor away from its normal course.
near = Z.rolling(5, center=True, min_periods=2).median()
S = Z - near
S = S / (1.4826 * S.abs().median()).replace(0, 1.0)
away = Z.abs().clip(upper=8).rolling(9, center=True, min_periods=5).mean()


def stretches(on, gap):
    out = []
    for i in np.flatnonzero(on):
        if out and i - out[-1][1] <= gap:
            out[-1][1] = i
        else:
            out.append([i, i])
    return out


def detect(spike, run):
    single = []
    for c in sensors:
        for a, b in stretches((away[c] > run).to_numpy(), 12):
            z = Z[c].iloc[a : b + 1].abs().median()
            if b - a >= 7 and z > 0.6 * run:
                single.append((a, b, c, z))
    events = []
    for a, b, c, z in sorted(single):
        if events and a <= events[-1]["b"]:
            e = events[-1]
            e["parts"].append((a, b, c)), e.update(b=max(e["b"], b), z=max(e["z"], z))
        else:
            events.append({"b": b, "parts": [(a, b, c)], "z": z})
    found, busy = [], np.zeros(len(Z), bool)
    for e in events:
        a, b = (int(np.median([p[k] for p in e["parts"]])) for k in (0, 1))
        who = sorted({p[2] for p in e["parts"]})
        found.append((a, b, who, "collective" if len(who) > 1 or b - a > 30 else "contextual", e["z"]))
        busy[max(0, min(p[0] for p in e["parts"]) - 8) : e["b"] + 9] = True
    for c in sensors:
        tall = (S[c].abs() > spike) & (Z[c].abs() > spike / 2) & ~busy
        found += [(a, a, [c], "point", abs(S[c].iloc[a])) for a, b in stretches(tall.to_numpy(), 3) if b - a < 3]
    return sorted(found, key=lambda e: -e[4])


events = detect(7.0, 3.0)
kinds = {k: sum(e[3] == k for e in events) for k in ("point", "contextual", "collective")}
flag = np.zeros(len(Z), bool)
for a, b, *_ in events:
    flag[a : b + 1] = True
times = {c: sum(c in e[2] for e in events) for c in sensors}
print(
    f"{len(events)} events: "
    + ", ".join(f"{n} {k}" for k, n in kinds.items())
    + f"; {100 * flag.mean():.1f} % of the samples; "
    f"most on {max(times, key=times.get)} ({max(times.values())})"
)
shown = sorted(events[:28])
found = {
    "anomalous_share": round(float(flag.mean()), 4),
    "most_affected_sensor": max(times, key=times.get),
    **{f"n_{kind}": number for kind, number in kinds.items()},
    "events": [
        {"start": int(Z.index[a]), "end": int(Z.index[b]), "sensors": who, "kind": kind} for a, b, who, kind, _ in shown
    ],
}
print("RESULT", json.dumps(found))
