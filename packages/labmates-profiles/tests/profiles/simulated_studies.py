"""Simulated studies as files: profiles and lab runs for the prediction, simulations for the regression of proximity."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from labmates.models.roster import roster
from labmates_profiles.prediction.published import PUBLISHED
from tests.profiles.bayes.studies import small_design
from tests.profiles.simulated_prediction import simulate_prediction
from tests.profiles.simulated_proximity import CLUSTERED, simulated_rows


def write_prediction(folder: Path) -> None:
    """Write a study of twenty models as ``games.csv`` and ``lab.csv``."""
    known = roster()[:20]
    controls = np.array([[m.ifeval, m.mmlu_pro, np.log10(m.size), m.thinking] for m in known], dtype=float)
    studies = {
        outcome: simulate_prediction(
            np.random.default_rng(6), outcome, between=0.5, models=20, observations=300, benchmarks=controls
        )
        for outcome in PUBLISHED
    }
    data = studies["quality"].data
    with (folder / "games.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "game", "mean", "error", "simulations"])
        for i, model in enumerate(known):
            for j, game in enumerate(data.games):
                writer.writerow([f"openai:{model.name}", game, 5 + data.levels[i, j], data.errors[i, j], 20])
    with (folder / "lab.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "task", "theory_of_mind", *PUBLISHED])
        for at, place in enumerate(data.model_of):
            task = ("anomaly", "biomarker", "ecology", "geospatial")[int(data.conditions[at, 1:4] @ [1, 2, 3])]
            scores = [studies[outcome].data.outcome[at] for outcome in PUBLISHED]
            writer.writerow([f"openai:{known[place].name}", task, bool(data.conditions[at, 7]), *scores])


def write_proximity(path: Path) -> None:
    """Write 2,000 simulations of twelve models, with the models' traits."""
    simulated_rows(small_design(12, 2000), CLUSTERED, seed=1).to_csv(path, index=False)
