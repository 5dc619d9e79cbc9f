"""Studies without any effect: a comparison of all parameters marks a difference in at most one of twenty."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.analyses.compare import COMPARE
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.protocol.analysis import Runs

Design = tuple[str, str, str, str]
"""Tasks, organisations, models and visibilities, a letter each."""
DESIGNS: dict[str, Design] = {
    "two organisations": ("a", "pq", "m", "f"),
    "three organisations": ("a", "pqr", "m", "f"),
    "3 tasks, 5 organisations, 4 models": ("abc", "pqrst", "wxyz", "f"),
    "and two visibilities": ("abc", "pqrst", "wxyz", "fh"),
}
OUTCOMES: dict[str, Callable[[np.random.Generator, float], float]] = {
    "normal": lambda rng, shift: 0.5 + shift + rng.normal(0, 0.1),
    "yes or no": lambda rng, _: float(rng.random() < 0.8),
    "near the end": lambda rng, _: rng.beta(2, 0.2),
}


def study(rng: np.random.Generator, design: Design, outcome: str, seeds: int) -> list[RunRecord]:
    """Runs whose skill depends on their data set alone."""
    runs: list[RunRecord] = []
    tasks, *others = design
    for task, seed in product(tasks, range(seeds)):
        shift = rng.normal(0, 0.1)
        for organisation, model, visibility in product(*others):
            condition = {"task": task, "model": model, "organisation": organisation, "visibility": visibility}
            metrics = {"skill": OUTCOMES[outcome](rng, shift), "provenance": rng.random(), "completeness": rng.random()}
            run = RunRecord(f"run{len(runs)}", "science", json.dumps(condition), seed, seed, condition, [model])
            runs.append(replace(run, status="completed", metrics=metrics))
    return runs


class Marks(NamedTuple):
    """The share of studies in which the primary outcome, or any, has p below .05 somewhere."""

    primary: float
    any: float


def marks(folder: Path, design: Design, outcome: str, seeds: int, studies: int) -> Marks:
    """The marks of comparisons of all parameters."""
    rng, primary, some = np.random.default_rng(seeds), 0, 0
    with Store(f"sqlite:///{folder}/runs.db") as store:
        for _ in range(studies):
            runs = Runs.given(store, study(rng, design, outcome, seeds))
            rows = COMPARE.result(runs, CompareParams()).json_objects()
            roles = {row["role"] for row in rows if row["p"] is not None and row["p"] < 0.05}
            primary += "primary" in roles
            some += bool(roles)
    return Marks(primary / studies, some / studies)


def test_few_null_studies_have_a_mark(tmp_path: Path) -> None:
    assert marks(tmp_path, DESIGNS["three organisations"], "normal", 8, 60).primary <= 0.1


@pytest.mark.slow("tests/workflows/test_null_studies.py")
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("design", DESIGNS)
def test_null_studies_have_a_mark_in_at_most_one_of_twenty(tmp_path: Path, design: str, outcome: str) -> None:
    for seeds in (6, 9):
        found = marks(tmp_path, DESIGNS[design], outcome, seeds, 50).primary
        assert found <= 0.12, f"{seeds} seeds"  # .05 and two standard errors are .112
