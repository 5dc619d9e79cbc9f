"""Analyse a store with pandas.

Everything that happened is in the store: runs, scores, events. This plays a public goods game with and without a free
rider in one of two groups, and asks: what do the others do about it, round by round?
"""

import labmates
from labmates.api import load_decisions

STORE = "sqlite:///sweep.db"
for rider in ({}, {"A1": "scripted:defect"}, {"A1": "scripted:random"}):
    for size in (3, 5):
        labmates.run(
            "game",
            game="public-goods",
            model="scripted:conditional",
            model_for=rider,
            group_size=size,
            rounds=6,
            replicates=4,
            store=STORE,
        )

runs = labmates.load_runs(STORE, kind="game").set_index("id")
runs["player A1"] = runs["condition.model_for.A1"].fillna("scripted:conditional")
print("Points in the group's pool: mean and standard error over simulations")
cells = runs.groupby(["player A1", "condition.group_size"])["metrics.level"]
print(cells.agg(mean="mean", error="sem", simulations="size").round(2).to_string())

decisions = load_decisions(STORE, kind="game").join(runs["player A1"], on="run")
others = decisions[decisions.agent != "A1"]
print("\nWhat all others give, round by round")
print(others.pivot_table("decision.group", ["player A1", "team"], "round").round(1).to_string())
