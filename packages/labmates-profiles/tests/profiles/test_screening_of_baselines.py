"""``labmates screen`` from end to end: baselines that play and work by one disposition, each left out and predicted.

`benchmarks/screening.py` does the same with more of everything.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support.command_line import Labmates

GENEROUS = (0.25, 0.31, 0.36, 0.42, 0.47, 0.53, 0.58, 0.64, 0.69, 0.75)
TRUSTING = (0.47, 0.75, 0.31, 0.58, 0.25, 0.64, 0.42, 0.69, 0.36, 0.53)
CAREFUL = (0.4, 0.65, 0.6, 0.3, 0.5, 0.3, 0.6, 0.65, 0.4, 0.5)
pytestmark = [
    pytest.mark.slow("packages/labmates-profiles/tests"),
    pytest.mark.xdist_group("screening"),
]  # one worker makes the study
COLLEAGUES = tuple(
    f"scripted:colleague/generosity={generosity}/trust={trust}/care={care}"
    for generosity, trust, care in zip(GENEROUS, TRUSTING, CAREFUL, strict=True)
)
ODD = "scripted:colleague/generosity=1/trust=0"
RUNS = 2
LAB = f"""name: lab
kind: science
models: [{", ".join(COLLEAGUES)}]
fixed: {{task: ecology, difficulty: easy, max_turns: 1, deliberation_rounds: 0}}
replicates: {RUNS}
sandbox: unsafe-local
concurrency: {{workers: 1, max_sandboxes: 1}}
"""
GAMES = ("--game", "weakest-link", "--game", "common-pool")
PLAYED = ("--group-size", "2", "--simulations", "2")
OUTCOME = ("--no-benchmarks", "--outcome", "completeness")


@pytest.fixture(scope="module")
def labmates(tmp_path_factory: pytest.TempPathFactory) -> Labmates:
    """Return the command line in a folder with a store: lab runs and profiles of all colleagues, one of them odd."""
    labmates = Labmates(tmp_path_factory.mktemp("colleagues"))
    (labmates.folder / "lab.yaml").write_text(LAB, "utf-8")
    ran = labmates("study", "run", "lab.yaml")
    assert ran.code == 0, ran.err
    played = labmates("profile", *COLLEAGUES, *GAMES, *PLAYED, "--json")
    assert played.code == 0, played.err
    return labmates


@pytest.fixture(scope="module")
def screened(labmates: Labmates) -> list[dict[str, Any]]:
    """Predict each colleague from the others by the one game that is informative about their work."""
    done = labmates("screen", *COLLEAGUES, *GAMES[2:], *PLAYED, *OUTCOME, "--stored", "--json")
    assert done.code == 0, done.err
    outcomes = [one["outcomes"]["completeness"] for one in done.records]
    assert all(
        one["headline"] == ("with games" if one["better_than_mean"] == "yes" else "models' mean") for one in outcomes
    )
    return [{**one, **one["with_games"]} for one in outcomes]


def reached(labmates: Labmates, tmp_path: Path) -> dict[str, list[float]]:
    assert labmates("export", "lab", "--out", str(tmp_path / "runs.csv")).code == 0
    found: dict[str, list[float]] = {name: [] for name in COLLEAGUES}
    with (tmp_path / "runs.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["models"]].append(float(row["metrics.completeness"]))
    return found


def test_intervals_hold_what_the_baselines_that_were_left_out_reach(
    labmates: Labmates, screened: list[dict[str, Any]], tmp_path: Path
) -> None:
    scores = reached(labmates, tmp_path)
    assert [len(one) for one in scores.values()] == [RUNS] * len(COLLEAGUES)
    held = [
        said["run_low"] <= score <= said["run_high"]
        for said, model in zip(screened, COLLEAGUES, strict=True)
        for score in scores[model]
    ]
    # Where intervals hold 95 %, 3 or more of 20 runs fall outside in 8 % of studies; this one is always the same.
    assert sum(held) >= len(held) - 2
    assert all(said["run_low"] <= said["low"] < said["mean"] < said["high"] <= said["run_high"] for said in screened)
    # Means of two runs are off by chance as well, so that intervals for true means hold them a little less often.
    assert sum(said["low"] <= said["observed"] <= said["high"] for said in screened) >= 8
    # Intervals that hold everything would say nothing.
    assert median(said["high"] - said["low"] for said in screened) < 0.5


def test_a_baseline_is_left_out_of_the_study_that_predicts_it_and_lies_inside(
    screened: list[dict[str, Any]],
) -> None:
    for said, model in zip(screened, COLLEAGUES, strict=True):
        assert set(said["study"]["models"]) == set(COLLEAGUES) - {model}
        assert said["standing"]["where"] in ("within", "at the edge")


def test_one_that_is_unlike_all_others_is_played_and_said_to_be_far_outside(labmates: Labmates) -> None:
    done = labmates("screen", ODD, *GAMES, *PLAYED, *OUTCOME)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "Profile: 4 simulations, " in text
    assert "lies far outside of the fitted models: " in text
    assert "common-pool is outside the range of the fitted models" in text
    assert "weakest-link is outside the range of the fitted models" in text
    assert "The prediction is an extrapolation: do not rely on it." in text


def test_what_their_play_says_of_their_work_is_analysed(labmates: Labmates) -> None:
    asked = ("--variant", "group_size=2", *OUTCOME, "--spec", "robust", "--draws", "500")
    told = labmates("analyze", "prediction", *GAMES, *asked)
    assert told.code == 0, told.err
    assert f"{RUNS * len(COLLEAGUES)} observations of {len(COLLEAGUES)} models, scored by heuristic" in told.out
    assert "common-pool" in told.out
