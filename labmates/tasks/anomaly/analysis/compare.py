# ruff: noqa
# mypy: ignore-errors
# How much the events depend on the two thresholds.
print("spike | stretch | point | contextual | collective | share of time")
for spike, run in ((5.5, 3.0), (7.0, 2.5), (7.0, 3.0), (7.0, 3.5), (9.0, 3.0)):
    found = detect(spike, run)
    k = [sum(e[3] == kind for e in found) for kind in ("point", "contextual", "collective")]
    busy = len({i for a, b, *_ in found for i in range(a, b + 1)}) / len(Z)
    print(f"{spike} | {run} | {k[0]} | {k[1]} | {k[2]} | {busy:.4f}")
