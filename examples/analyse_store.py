"""Analyse a store with pandas.

Everything that happened is in the store: runs, scores, events. This plays a public goods game with and without a free
rider in one of two groups, and asks: what do the others do about it, round by round?
"""

import pandas as pd

import labmates
from labmates.records.store import Store
from labmates.records.view import events_frame

STORE = "sqlite:///sweep.db"
GAME = {"game": "public-goods", "model": "scripted:conditional", "rounds": 6}
for others in ({}, {"A1": "scripted:defect"}, {"A1": "scripted:random"}):
    for size in (3, 5):
        labmates.run("game", **GAME, model_for=others, group_size=size, replicates=4, store=STORE)

runs = labmates.load_runs(STORE, kind="game")
runs["player A1"] = runs["condition.model_for.A1"].fillna("scripted:conditional")
print("Points in the group's pool: mean and standard error over simulations")
cells = runs.groupby(["player A1", "condition.group_size"])["metrics.level"]
print(cells.agg(mean="mean", error="sem", simulations="size").round(2).to_string())

store = Store(STORE)
decisions = []
for run in store.runs(kind="game"):
    events = events_frame(store, run.id)
    rider = run.condition["model_for"].get("A1", run.condition["model"])
    for player, data in events.loc[events.type == "decision", ["agent", "data"]].itertuples(index=False):
        if player != "A1":
            given = data["decision"]["group"]
            decisions.append({"player A1": rider, "group": player[0], "round": data["round"], "given": given})
store.close()

print("\nWhat all others give, round by round")
frame = pd.DataFrame(decisions)
print(frame.pivot_table("given", ["player A1", "group"], "round").round(1).to_string())
