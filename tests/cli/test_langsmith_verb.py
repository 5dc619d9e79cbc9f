from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Labmates
from tests.support.langsmith_server import KEY, langsmith_server

STUDY = """
name: plays
kind: game
description: who plays better
models: [scripted:cooperate, scripted:defect]
fixed: {group_size: 2, rounds: 1}
grid: {game: [o-ring, weakest-link]}
replicates: 2
"""


@pytest.fixture
def plays(labmates: Labmates, tmp_path: Path) -> None:
    (tmp_path / "plays.yaml").write_text(STUDY)
    assert labmates("study", "run", "plays.yaml").code == 0


@pytest.mark.usefixtures("plays")
def test_models_are_experiments_on_the_cases_of_a_study(labmates: Labmates) -> None:
    with langsmith_server() as langsmith:
        reached = {"LANGSMITH_ENDPOINT": langsmith.url, "LANGSMITH_API_KEY": KEY}
        done = labmates("study", "langsmith", "plays", "--json", **reached)
    assert done.code == 0, done.err
    names = ["plays: scripted:cooperate", "plays: scripted:defect"]
    assert done.records == [
        {"name": name, "id": f"experiment-{number}", "runs": 4} for number, name in enumerate(names, 1)
    ]
    good, bad = langsmith.experiments
    assert [good["experiment_name"], bad["experiment_name"]] == names
    assert {each["dataset_name"] for each in (good, bad)} == {"labmates: plays"}
    assert good["dataset_description"] == "who plays better"
    cases = [{row["row_id"]: row["inputs"] for row in each["results"]} for each in (good, bad)]
    assert cases[0] == cases[1]
    assert len(cases[0]) == 4
    assert {(case["game"], case["seed"]) for case in cases[0].values()} == {
        (game, seed) for game in ("o-ring", "weakest-link") for seed in (0, 1)
    }
    assert "scripted" not in json.dumps(cases)
    row = good["results"][0]
    scores = {score["key"]: score["score"] for score in row["evaluation_scores"]}
    assert scores == row["actual_outputs"]["metrics"] != {}


@pytest.mark.usefixtures("plays")
def test_langsmith_that_refuses_or_is_away_is_told(labmates: Labmates) -> None:
    without = labmates("study", "langsmith", LANGSMITH_API_KEY="", LANGCHAIN_API_KEY="")
    assert (without.code, "LANGSMITH_API_KEY is not set" in without.err) == (2, True)
    with langsmith_server() as langsmith:
        reached = {"LANGSMITH_ENDPOINT": langsmith.url, "LANGSMITH_API_KEY": "lsv2-another"}
        refused = labmates("study", "langsmith", **reached)
    assert refused.code == 1
    assert "LangSmith refused 'plays: scripted:cooperate': Authentication failed" in refused.err
    away = labmates("study", "langsmith", **reached)
    assert away.code == 1
    assert f"LangSmith at {langsmith.url} is unreachable" in away.err
    assert "lsv2" not in refused.err + away.err
    assert "unknown study 'play'" in labmates("study", "langsmith", "play").err
