"""Usage of runs: means by experiment and model, and games relative to the lab."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labmates.records.run import RunRecord, Usage
from labmates_profiles.prediction.sources import USUAL
from labmates_profiles.usage import ratio_tables, usage_table
from tests.profiles.test_profiles import record


def simulation(model: str, game: str, replicate: int, tokens: int, seconds: float) -> RunRecord:
    run = record(model, game, replicate, level=1.0)
    used = Usage(30, tokens - 50, 50)
    return replace(run, condition={**run.condition, **USUAL, "rounds": 3}, usage=used, seconds=seconds)


def lab_run(model: str, replicate: int, tokens: int, seconds: float) -> RunRecord:
    run = simulation(model, "", replicate, tokens, seconds)
    key = f"{model} lab {replicate % 2}"
    return replace(run, id=f"{run.id}lab", kind="science", key=key, condition={"task": "ecology"})


RUNS = [
    *(simulation("m:a", game, at, 1000, 2.0) for game in ("o-ring", "weakest-link") for at in range(3)),
    *(simulation("m:b", "o-ring", at, 4000, 5.0) for at in range(2)),
    *(lab_run("m:a", at, tokens, 100.0) for at, tokens in enumerate((20_000, 40_000))),
    *(lab_run("m:c", at, 50_000, 100.0) for at in range(3)),
]


def test_means_are_of_a_run_and_the_median_is_over_models() -> None:
    rows = usage_table(RUNS).rows
    assert [(row["kind"], row["model"], row["conditions"], row["runs"], row["total"]) for row in rows] == [
        ("game", "m:a", 2, 6, 1000),
        ("game", "m:b", 1, 2, 4000),
        ("game", "median", 1.5, 4, 2500),
        ("science", "m:a", 2, 2, 30_000),
        ("science", "m:c", 2, 3, 50_000),
        ("science", "median", 2, 2.5, 40_000),
    ]
    assert (rows[3]["input"], rows[3]["output"]) == (29_950, 50)


def test_games_stand_beside_the_lab_for_models_that_have_been_in_both() -> None:
    [table] = ratio_tables(RUNS)
    [row] = table.rows
    assert (row["model"], row["games"], row["lab_runs"]) == ("m:a", 2, 2)
    assert row["tokens_ratio"] == 30
    assert row["seconds_ratio"] == 50
    assert row["profile_lab_runs"] == pytest.approx(20 * 2 * 1000 / 30_000)
    assert ratio_tables([run for run in RUNS if run.kind == "game"]) == []
