# ruff: noqa
# mypy: ignore-errors
# Do the claimed effects hold in both halves of the time, with levels taken out for each place and each stretch?
X = np.stack([L[p].interpolate(limit=2, limit_area="inside").to_numpy() for p in places], 1)
T, P, K = X.shape
edge = [0, *[b - t0 for b in claims.get("shift_surveys", []) if 5 < b - t0 < T - 5], T]
C = np.concatenate([X[a:b] - np.nanmean(X[a:b], axis=0) for a, b in zip(edge, edge[1:])])


def effects(lo, hi):
    now, new = C[lo : hi - 1].reshape(-1, K), C[lo + 1 : hi].reshape(-1, K)
    ok = np.isfinite(now).all(1) & np.isfinite(new).all(1)
    if ok.sum() < 3 * K:
        return np.full((K, K), np.nan), int(ok.sum())
    return np.linalg.lstsq(now[ok], new[ok], rcond=None)[0], int(ok.sum())


(first, n1), (second, n2) = effects(0, T // 2), effects(T // 2, T)
kept, lost = [], []
for q in claims.get("interactions", []):
    a, b, way = q["source"], q["target"], -1 if q["sign"] == "-" else 1
    if a in names and b in names:
        e = [m[names.index(a), names.index(b)] for m in (first, second)]
        (kept if all(np.sign(x) in (way, 0) or x != x for x in e) else lost).append(q)
mean = np.nanmean(X, axis=1)
drops = {
    b: np.abs(np.nanmean(mean[b - t0 : b - t0 + 12], 0) - np.nanmean(mean[max(0, b - t0 - 12) : b - t0], 0)).max()
    for b in claims.get("shift_surveys", [])
    if 5 < b - t0 < T - 5
}
print(
    f"claimed effects: {len(kept) + len(lost)}; the same sign in both halves ({n1} and {n2} transitions): {len(kept)}"
)
print(
    "largest change of a mean across each claimed shift, log units: "
    + (", ".join(f"{b}: {v:.2f}" for b, v in drops.items()) or "none claimed")
)
if lost:
    print("not confirmed: " + "; ".join(f"{q['source']} -> {q['target']}" for q in lost))
print("RESULT", json.dumps({"interactions": kept} if kept or lost else {}))
