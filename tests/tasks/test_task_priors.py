"""Priors: what can be said without data earns little, and knows nothing that the data of a seed would tell."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.tasks.base import DIFFICULTIES, Difficulty, accuracy, skill
from labmates.tasks.geospatial.findings import GeospatialFindings
from labmates.tasks.registry import get_task

NAMES = ("ecology", "anomaly", "biomarker", "geospatial")
SEEDS = range(4)


@cache
def made(name: str, seed: int, difficulty: Difficulty) -> tuple[tuple[str, ...], Any]:
    """Return the columns and the truth of a data set."""
    data = get_task(name).generate(seed, difficulty)
    return tuple(data.frame.columns), data.truth


def earned(name: str, difficulty: Difficulty) -> list[float]:
    task = get_task(name)
    cases = [made(name, seed, difficulty) for seed in SEEDS]
    return [accuracy(task.score(task.prior(columns, difficulty), truth)) for columns, truth in cases]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "difficulty",
    [
        "medium",
        *(pytest.param(other, marks=pytest.mark.slow("tests/tasks/test_task_priors.py")) for other in ("easy", "hard")),
    ],
)
def test_guessing_earns_something_but_little_and_the_truth_of_another_seed_no_more(
    name: str, difficulty: Difficulty
) -> None:
    assert 0 < np.mean(earned(name, difficulty)) <= 0.15
    task = get_task(name)
    truths = [made(name, seed, difficulty)[1] for seed in SEEDS]
    aliens = [accuracy(task.score(task.oracle(a), b)) for a in truths for b in truths if a is not b]
    assert np.mean(aliens) <= 0.2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_prior_is_valid_and_depends_on_public_arguments_alone(name: str, difficulty: Difficulty) -> None:
    task = get_task(name)
    columns, _ = made(name, 0, difficulty)
    prior = task.prior(columns, difficulty)
    assert type(prior) is task.findings
    assert task.findings.model_validate_json(prior.model_dump_json(), strict=True) == prior
    assert get_task(name).prior(list(columns), difficulty) == prior
    task.prior([], difficulty)


def test_hand_made_guesses_of_the_map_earn_no_more_than_the_prior() -> None:
    task = get_task("geospatial")
    guess = GeospatialFindings(
        range_m=1_200, anisotropy_azimuth=90, anisotropy_ratio=2, nugget_share=0.3,
        r2_random_cv=0.5, r2_block_cv=0.3, r2_covariates_cv=0.25,
    )  # fmt: skip
    truths = [made("geospatial", seed, "medium")[1] for seed in SEEDS]
    by_hand = np.mean([accuracy(task.score(guess, truth)) for truth in truths])
    assert by_hand < np.mean(earned("geospatial", "medium"))


@given(st.floats(0, 1), st.floats(0, 0.99))
def test_skill_is_one_for_all_zero_for_the_prior_and_grows_with_accuracy(value: float, prior: float) -> None:
    assert skill(1.0, prior) == pytest.approx(1.0)
    assert skill(prior, prior) == 0.0
    assert skill(value, prior) <= 1
    assert (skill(value, prior) < 0) == (value < prior)
    assert skill(value, 0.0) == value


def test_nothing_is_left_to_find_out_where_the_prior_is_perfect() -> None:
    assert np.isnan(skill(1.0, 1.0))
