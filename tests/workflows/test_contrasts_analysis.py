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


def test_stored_runs_are_compared(url: str) -> None:
    result = analyze("contrasts", store=url, within="wording")
    rows = result.table().rows
    assert {row["factor"] for row in rows} == {"mechanism", "wording", "model"}
    assert {row["within"] for row in rows} == {"all", "ours", "paper"}
    whole = {row["factor"]: row for row in rows if (row["within"], row["outcome"]) == ("all", "cooperation")}
    assert whole["model"]["difference"] < 0, "who defects cooperates less than who draws by chance"
    assert whole["mechanism"]["strata"] == 1
    assert len(result.figures) == 2


def test_runs_without_two_levels_are_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    asyncio.run(arun("dilemma", game="prisoners", entrants="scripted:defect", store=url))
    with pytest.raises(UsageError, match="nothing to compare"):
        analyze("contrasts", store=url)
    with pytest.raises(UsageError, match="'colour' is not a parameter of dilemma"):
        analyze("contrasts", store=url, within="colour")


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
    rows = analyze("contrasts", store=url, kind="tournament", within="structure").table().rows
    whole = [row for row in rows if (row["within"], row["outcome"]) == ("all", "cooperation")]
    by_factor = {row["factor"]: row for row in whole}
    assert set(by_factor) == {"structure", "plan_every", "model", "model_for", "model, in the same tournament"}
    assert (by_factor["structure"]["first"], by_factor["structure"]["second"]) == ("gc", "sa")
    assert by_factor["model"]["difference"] < 0, "who defects cooperates less than who draws by chance"
    assert by_factor["model, in the same tournament"]["strata"] == 1
    assert {row["within"] for row in rows} == {"all", "gc"}, "sa alone has nothing to compare"
    assert {row["outcome"] for row in rows} == {"cooperation", "one-shot cooperation", "points per round"}


def test_experiments_without_contrasts_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    asyncio.run(arun("game", game="weakest-link", model="scripted:random", rounds=1, group_size=2, store=url))
    with pytest.raises(UsageError, match="game have no contrasts; choose another kind with --kind"):
        analyze("contrasts", store=url, kind="game")
