d = df.drop_duplicates()
steps = d[["make", "week", "load_n", "extension_mm"]].nunique()["week"]
print(f"{len(df)} rows, {len(df) - len(d)} of them repeated; {d['make'].nunique()} makes in {steps} weeks")
