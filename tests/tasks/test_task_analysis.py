"""The cells that tasks ship find what is in the data, say it briefly, repeat exactly, and test claims honestly."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from labmates.tasks.analysis import PIECES, printed_findings, run_cells
from labmates.tasks.base import Difficulty, Task, accuracy
from labmates.tasks.registry import get_task

NAMES = ("ecology", "anomaly", "biomarker", "geospatial")
MOST_PRINTED = 6_000


def table(task: Task[Any, Any], seed: int, difficulty: Difficulty) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(task.generate(seed, difficulty).csv()))


@cache
def analysed(name: str, seed: int, difficulty: Difficulty) -> tuple[str, Mapping[str, Any]]:
    task = get_task(name)
    assert task.analysis is not None
    return run_cells(task.analysis, table(task, seed, difficulty))


def checked(name: str, seed: int, claims: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what the cell that tests claims prints, and which of them hold."""
    task = get_task(name)
    assert task.analysis is not None
    names: dict[str, Any] = {"df": table(task, seed, "easy"), "claims": claims}
    for piece in ("prepare", "clean", "check"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(task.analysis.code[piece], piece, "exec"), names)
    [found] = printed_findings(printed.getvalue())
    return printed.getvalue(), found


OTHER = pytest.mark.slow("tests/tasks/test_task_analysis.py")
"""Data sets of another difficulty than the usual one, and the tasks whose analyses take longest."""
SOME = ["ecology", "anomaly", pytest.param("biomarker", marks=OTHER), pytest.param("geospatial", marks=OTHER)]


@pytest.mark.parametrize(
    ("name", "difficulty", "low", "high"),
    [
        pytest.param("ecology", "easy", 0.7, 1.0, marks=OTHER),
        ("ecology", "medium", 0.6, 0.97),
        pytest.param("ecology", "hard", 0.4, 0.85, marks=OTHER),
        pytest.param("anomaly", "easy", 0.7, 1.0, marks=OTHER),
        ("anomaly", "medium", 0.45, 0.8),
        pytest.param("anomaly", "hard", 0.15, 0.6, marks=OTHER),
        pytest.param("biomarker", "easy", 0.85, 1.0, marks=OTHER),
        pytest.param("biomarker", "medium", 0.5, 0.96, marks=OTHER),
        pytest.param("biomarker", "hard", 0.2, 0.8, marks=OTHER),
        pytest.param("geospatial", "easy", 0.7, 1.0, marks=OTHER),
        pytest.param("geospatial", "medium", 0.5, 0.96, marks=OTHER),
        pytest.param("geospatial", "hard", 0.4, 0.9, marks=OTHER),
    ],
)
def test_findings_are_as_right_as_plain_methods_can_make_them(
    name: str, difficulty: Difficulty, low: float, high: float
) -> None:
    task = get_task(name)
    scores = []
    for seed in (1, 3):
        printed, found = analysed(name, seed, difficulty)
        findings = task.findings.model_validate(found)
        scores.append(accuracy(task.score(findings, task.generate(seed, difficulty).truth)))
        assert len(printed) <= MOST_PRINTED
        assert set(found) == set(task.findings.model_fields)
    assert low <= np.mean(scores) <= high


@pytest.mark.parametrize("name", SOME)
def test_the_same_data_give_the_same_words(name: str) -> None:
    task = get_task(name)
    assert task.analysis is not None
    assert analysed(name, 1, "medium") == run_cells(task.analysis, table(task, 1, "medium"))


@pytest.mark.parametrize("name", NAMES)
def test_each_piece_of_work_has_its_cell_without_a_word_for_linters(name: str) -> None:
    analysis = get_task(name).analysis
    assert analysis is not None
    assert analysis.ordered()[0] == PIECES[0]
    assert set(analysis.titles) <= set(PIECES)
    assert len(set(analysis.titles.values())) == len(analysis.titles)
    assert not any("ruff" in code or "mypy" in code for code in analysis.code.values())


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("anomaly", "events", {"start": 5, "end": 40, "sensors": ["no such sensor"], "kind": "collective"}),
        ("biomarker", "prognostic_markers", None),
        ("ecology", "interactions", None),
        pytest.param("geospatial", "covariates", None, marks=OTHER),
    ],
)
def test_the_check_keeps_what_holds_and_drops_what_does_not(
    name: str, field: str, wrong: dict[str, Any] | None
) -> None:
    right = analysed(name, 1, "easy")[1][field]
    # Without a made-up claim, the largest effect with the other sign.
    largest = max(right, key=lambda claim: claim.get("size", claim.get("strength", 0)))
    turned = {**largest, "sign": "+" if largest.get("sign") == "-" else "-"}
    claims = [*right, wrong] if wrong else [turned, *(claim for claim in right if claim != largest)]
    printed, found = checked(name, 1, {field: claims})
    assert "not confirmed" in printed
    assert found[field]
    assert all(claim in right for claim in found[field])


@pytest.mark.parametrize("name", NAMES)
def test_without_claims_the_check_states_nothing(name: str) -> None:
    assert not any(checked(name, 1, {})[1].values())


def test_findings_are_taken_from_whole_lines_only() -> None:
    printed = 'RESULT {"a": 1}\nRESULT {"b": \n  RESULT {"c": 3}\nRESULT {"d": 4} \n'
    assert list(printed_findings(printed)) == [{"a": 1}, {"d": 4}]
