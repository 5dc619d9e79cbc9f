"""Compare two models in the science lab.

Two scripted baselines stand in for models here, so that this runs offline; any `provider:name` will do. Each does the
same tasks with the same seeds, which is what makes the differences of pairs meaningful. How many seeds can be given:
`python compare_baselines.py 5`.
"""

import sys

import labmates

STORE = "sqlite:///compare.db"
SEEDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
MODELS = ["scripted:diligent", "scripted:hasty"]

for model in MODELS:
    labmates.run(
        "science", task="anomaly", difficulty="easy", model=model, budget="0.50", replicates=SEEDS, store=STORE
    )

runs = labmates.load("runs", store=STORE).set_index("id")
scores = labmates.load("scores", store=STORE)
scores["model"] = scores.run.map(runs["condition.model"])
scores["judged"] = scores.judge + " " + scores.metric

print("Mean scores")
print(scores.pivot_table("value", "judged", "model").round(2).to_string())

print("\nWhat a run takes")
taken = ["usage.llm_calls", "usage.input_tokens", "usage.output_tokens", "usage.tool_calls"]
print(runs.groupby("condition.model")[taken].mean().astype(int).T.to_string())

verified = runs["metrics.accuracy"].groupby([runs["condition.model"], runs.seed]).first().unstack(0)
difference = verified[MODELS[0]] - verified[MODELS[1]]
print(f"\nAccuracy, {MODELS[0]} less {MODELS[1]}, seed by seed: {', '.join(f'{d:+.2f}' for d in difference)}")
