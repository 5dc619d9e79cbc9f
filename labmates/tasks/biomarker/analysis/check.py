# ruff: noqa
# mypy: ignore-errors
# Do the claimed effects have the same sign in both halves of the patients, given each other?
claimed = {
    k: [
        (q["marker"], -1 if q["sign"] == "-" else 1, q)
        for q in claims.get(f"{k}_markers", [])
        if q["marker"] in markers
    ]
    for k in ("prognostic", "predictive")
}
place = {m: i for i, m in enumerate(markers)}
both = [place[q[0]] for q in claimed["prognostic"]], [place[q[0]] for q in claimed["predictive"]]
half = np.random.default_rng(1).permutation(len(d)) % 2


def effects(rows):
    M = Z.to_numpy()
    A = np.column_stack([treated, treated[:, None] * M[:, both[1]], M, np.ones(len(d))])[rows]
    if len(A) < 2 * A.shape[1]:
        return np.nan, [np.nan] * len(both[0]), [np.nan] * len(both[1]), len(A)
    b = np.linalg.lstsq(A, y[rows], rcond=None)[0]
    k = 1 + len(both[1])
    return b[0], [b[k + i] for i in both[0]], b[1:k], len(A)


first, second = effects(ok & (half == 0)), effects(ok & (half == 1))
kept, lost = {}, []
for at, kind in ((1, "prognostic"), (2, "predictive")):
    fair = [all(v != v or v * q[1] > 0 for v in (u, w)) for q, u, w in zip(claimed[kind], first[at], second[at])]
    kept[f"{kind}_markers"] = [q[2] for q, good in zip(claimed[kind], fair) if good]
    lost += [f"{kind} {q[0]}" for q, good in zip(claimed[kind], fair) if not good]
tried, held = sum(map(len, claimed.values())), sum(map(len, kept.values()))
print(
    f"claimed effects of markers: {tried}; the same sign in both halves ({first[3]} and {second[3]} patients): {held}"
)
print(f"effect of the treatment in the halves: {first[0]:+.2f} and {second[0]:+.2f} points")
if lost:
    print("not confirmed: " + "; ".join(lost))
print("RESULT", json.dumps(kept if tried else {}))
