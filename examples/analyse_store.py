"""Analyse a store with pandas.

Everything that happened is in the store: runs, scores, events. This plays a public goods game with and without a free
rider in one of two groups, and asks: what do the others do about it, round by round?
"""

from typing import Any

import labmates

STORE = "sqlite:///sweep.db"
PLAIN = "scripted:conditional"
TABLE: dict[str, Any] = {"game": "public-goods", "rounds": 6, "model": PLAIN}
for guest in ({}, {"A1": "scripted:defect"}, {"A1": "scripted:random"}):
    for size in (3, 5):
        labmates.run("game", **TABLE, model_for=guest, group_size=size, replicates=2, store=STORE)

runs = labmates.load("runs", store=STORE, kind="game")
runs["player A1"] = runs["condition.model_for.A1"].fillna(PLAIN)
print("Points in the group's pool: mean and standard error over simulations")
cells = runs.groupby(["player A1", "condition.group_size"])["metrics.level"]
print(cells.agg(mean="mean", error="sem", simulations="size").round(2).to_string())

decisions = labmates.load("decisions", store=STORE, kind="game")
decisions["player A1"] = decisions["run"].map(runs.set_index("id")["player A1"])
others = decisions[decisions["agent"] != "A1"]
print("\nWhat all others give, round by round")
print(others.pivot_table("decision.group", ["player A1", "team"], "round").round(1).to_string())
