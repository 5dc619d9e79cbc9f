# ruff: noqa
# mypy: ignore-errors
# One row per site: coordinates in order, grades in one unit, codes and slips out, gaps filled from the nearest sites.
import difflib
from scipy.spatial import cKDTree

E, N = XY
near_east, near_north = (d[XY].sub(d[c].median()).abs() for c in XY)
swapped = (near_north[E] < near_east[E]) & (near_east[N] < near_north[N])
d.loc[swapped, XY] = d.loc[swapped, XY[::-1]].to_numpy()
covs = [c for c in num if c not in (E, N, VALUE) and d[c].nunique() > 20]
codes = int(d[covs].isin([-999, -9999]).to_numpy().sum())
d[covs] = d[covs].mask(d[covs].isin([-999, -9999])).astype(float)

few = {c: d[c].astype(str).str.strip().str.lower() for c in words}
few = {c: s for c, s in few.items() if 1 < (s.value_counts() > 0.03 * len(s)).sum() < 9}
times = few[ROCK].value_counts()
common = list(times.index[times > 0.03 * len(d)])
d["kind"] = few[ROCK].map({k: (difflib.get_close_matches(k, common, 1, 0.7) or [k])[0] for k in times.index})

grade, moved = d[VALUE].astype(float), 0
for c in words:
    level = grade.abs().groupby(d[c]).median()
    wrong = d[c].isin(level.index[level > grade.abs().median() * 100])
    if 0 < wrong.mean() < 0.3:
        grade, moved = grade.where(~wrong, grade / 1e3), moved + int(d.loc[wrong, c].nunique())
below = grade < 0
d["log_grade"] = np.log(grade.where(~below, -grade / 2).where(grade != 0))
converted = 0
for c in covs:
    for w in few if re.search("elev|height|alt", str(c).lower()) else ():
        level = d[c].groupby(few[w]).median()
        feet = few[w].isin(level.index[(level / level.min()).between(2.6, 4.2)])
        d[c], converted = d[c].where(~feet, d[c] / 3.28084), converted + int(feet.sum())

# A second sample of a site lies within the error of its coordinates; how much it differs tells the nugget.
twice = cKDTree(d[XY]).query_pairs(10, output_type="ndarray")
differ = d["log_grade"].to_numpy()[twice] @ [1, -1]
differ = differ[np.abs(differ) < 2.1]
nugget = (differ**2).mean() / 2 if len(differ) > 19 else np.nan
sites = d.drop(index=d.index[np.unique(twice.max(axis=1))]).reset_index(drop=True)
at = sites[XY].to_numpy(float)


def from_nearest(values, k=6):
    known = np.flatnonzero(np.isfinite(values))
    index = cKDTree(at[known]).query(at, min(k + 1, len(known)))[1][:, 1:]
    return np.median(values[known][index], axis=1)


y = sites["log_grade"].to_numpy()
off = y - from_nearest(y)
slips = np.abs(off) > max(1.9, 4 * 1.4826 * np.nanmedian(np.abs(off)))
use = np.isfinite(y) & ~slips
gaps = int(sites[covs].isna().sum().sum())
for c in covs:
    v = sites[c].to_numpy()
    sites[c] = np.where(np.isfinite(v), v, from_nearest(v))
print(
    f"{len(sites)} distinct sites; {int(swapped.sum())} with east and north exchanged; {moved} batches converted from parts per billion; "
    f"{int(below.sum())} below the detection limit (half of it taken); {int((slips & np.isfinite(y)).sum())} decimal slips set aside"
)
if nugget == nugget:
    print(f"{len(differ)} second samples differ from the first by an sd of {np.sqrt(2 * nugget):.2f} log units")
print(
    f"{codes} codes for no value, {gaps} gaps filled from the nearest sites, {converted} heights converted from feet; "
    f"{ROCK}: {', '.join(sites['kind'].value_counts().head(8).index)}"
)
q = np.exp(np.nanquantile(y[use], [0.05, 0.5, 0.95]))
print(f"{VALUE}: median {q[1]:.1f}, 90 % between {q[0]:.1f} and {q[2]:.1f}, sd of the logarithm {y[use].std():.2f}")
print("RESULT", json.dumps({"n_sites": len(sites)}))
