"""Contrasts of stored runs: social dilemmas and tournaments."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from labmates.api import analyze, arun
from labmates.errors import UsageError


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('contrasts')}/runs.db"
    fixed: dict[str, Any] = {"entrants": "scripted:random,scripted:defect", "replicates": 2, "store": url}
    variants: list[dict[str, Any]] = [{}, {"mechanism": "contract"}, {"mechanism": "contract", "wording": "paper"}]
    for more in variants:
        asyncio.run(arun("dilemma", game="prisoners", **fixed, **more))
    return url


def test_mechanisms_wordings_and_models_in_the_same_run_are_compared(url: str) -> None:
    result = analyze("contrasts", store=url)
    rows = [row for row in result.json_objects() if row["role"] == "primary"]
    assert {row["factor"] for row in rows} == {"mechanism", "wording", "player"}
    assert {row["outcome"] for row in rows} == {"normalised"}
    [player] = analyze("compare", store=url, by=("player",), metric="cooperation_rate").json_objects()
    by_name = {player["first"]: player["first_mean"], player["second"]: player["second_mean"]}
    assert by_name["scripted:defect"] < by_name["scripted:random"]
    assert player["pairs"] == 24, "every seat and its co-players, in every run"
    assert player["difference_n"] == 2, "one unit per seed"
    paper = analyze("compare", store=url, where=("wording!=paper",)).json_objects()
    assert {row["factor"] for row in paper} == {"mechanism", "player"}


def test_runs_without_two_levels_are_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    asyncio.run(arun("dilemma", game="prisoners", entrants="scripted:defect", store=url))
    with pytest.raises(UsageError, match="nothing to compare"):
        analyze("contrasts", store=url)
    with pytest.raises(UsageError, match="no run has results of players of several models"):
        analyze("compare", store=url, by=("player",))
    with pytest.raises(UsageError, match="colour"):
        analyze("compare", store=url, by=("colour",))


def test_tournaments_are_compared_by_structure_plan_and_model(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    fixed: dict[str, Any] = {"team_size": "2", "rounds": 3, "replicates": 2, "store": url}
    variants: list[dict[str, Any]] = [
        {"structure": "sa", "model": "scripted:random"},
        {"structure": "gc", "model": "scripted:random"},
        {"structure": "gc", "model": "scripted:random", "plan_every": 2},
        {"structure": "gc", "model": "scripted:defect"},
        {"structure": "gc", "model": "scripted:random", "model_for": {"B": "scripted:defect"}},
    ]
    for more in variants:
        asyncio.run(arun("tournament", **fixed, **more))
    rows = [row for row in analyze("contrasts", store=url).json_objects() if row["role"] == "primary"]
    assert {row["factor"] for row in rows} >= {"structure", "plan_every", "model", "player"}
    [model] = [row for row in rows if row["factor"] == "model"]
    means = {model["first"]: model["first_mean"], model["second"]: model["second_mean"]}
    assert means["scripted:defect"] < means["scripted:random"], "who defects cooperates less than who draws by chance"
