constants, softer = [], []
for make, rows in d.groupby("make"):
    x, y = rows["week"].to_numpy(float), np.log(rows["stiff"].to_numpy())
    slope, start = np.polyfit(x, y, 1)
    error = np.std(y - start - slope * x) / (np.std(x) * np.sqrt(len(x)))
    t = slope / error
    constants.append({"make": make, "newtons_per_mm": round(float(np.exp(start)), 3)})
    softer += [make] if t < -4 else []
    print(f"{make}: {np.exp(start):.3f} N/mm when new, {100 * slope:+.2f} % a week, t = {t:.1f}, n = {len(x)}")
print("RESULT", json.dumps({"stiffness": constants, "softening": softer}))
