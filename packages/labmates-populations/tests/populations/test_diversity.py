from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates import analyze
from labmates_populations.diversity import (
    cohens_d,
    ellipse,
    mean_pairwise_distance,
    participation_ratio,
    principal_components,
    takes_turns,
)
from tests.support.strategies import library

SEEDS = st.integers(0, 2**31)


def vectors(seed: int, rows: int = 12, columns: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).random((rows, columns))


@given(SEEDS)
def test_the_distance_is_that_of_all_pairs_one_by_one(seed: int) -> None:
    found = vectors(seed)
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(found) for b in found[:i]]
    assert mean_pairwise_distance(found) == pytest.approx(np.mean(pairs) / np.sqrt(40 / 6))


def test_random_vectors_have_distance_one_and_equal_ones_none() -> None:
    assert mean_pairwise_distance(vectors(0, 200, 961)) == pytest.approx(1, abs=0.01)
    assert mean_pairwise_distance(np.ones((5, 9))) == 0
    assert mean_pairwise_distance(np.ones((1, 9))) is None


@given(SEEDS)
def test_the_ratio_is_that_of_the_covariances_eigenvalues(seed: int) -> None:
    found = vectors(seed)
    values = np.linalg.eigvalsh(np.cov(found.T))
    assert participation_ratio(found) == pytest.approx(values.sum() ** 2 / (values**2).sum())


def test_the_ratio_counts_dimensions() -> None:
    line = np.linspace(0, 1, 9)[:, None] * np.ones(7)
    assert participation_ratio(line) == pytest.approx(1)
    corners = np.array([[x, y, 0.5] for x in (0, 1) for y in (0, 1)], dtype=float)
    assert participation_ratio(corners) == pytest.approx(2)
    assert participation_ratio(np.ones((4, 3))) is None


def test_strategies_that_go_by_a_schedule_take_turns() -> None:
    moves = np.array([[1, 0, 1, 0, 1], [1, 0, 0, 1, 0], [0, 1, 1, 1, 0], [1, 1, 1, 1, 0], [1, 0.5, 1, 0, 1]], float)
    assert takes_turns(moves).tolist() == [True, True, False, False, False], "neither first and last rounds, nor chance"
    assert not takes_turns(np.ones((1, 1))).any()


def test_cohens_d_of_one_dimension_is_the_usual_one() -> None:
    first, second = np.array([[0.1], [0.2], [0.3]]), np.array([[0.5], [0.7], [0.9], [0.9]])
    pooled = np.sqrt((2 * first.var(ddof=1) + 3 * second.var(ddof=1)) / 5)
    assert cohens_d(first, second) == pytest.approx((second.mean() - first.mean()) / pooled)
    assert cohens_d(first[:1], second[:1]) is None
    assert cohens_d(np.ones((3, 2)), np.zeros((3, 2))) is None, "nothing varies within"


@given(SEEDS)
def test_components_are_those_of_the_covariance_and_order_their_variance(seed: int) -> None:
    found = vectors(seed)
    mapped = principal_components(found)
    values = np.sort(np.linalg.eigvalsh(np.cov(found.T)))[::-1]
    assert mapped.points.var(axis=0, ddof=1) == pytest.approx(values[:2])
    assert mapped.explained == pytest.approx(values[:2] / values.sum())
    assert mapped.project(found) == pytest.approx(mapped.points)
    assert mapped.axes.T @ mapped.axes == pytest.approx(np.eye(2), abs=1e-9)


def test_the_first_component_grows_with_cooperation_and_equal_strategies_have_none() -> None:
    found = np.linspace(1, 0, 6)[:, None] * np.ones(5)
    mapped = principal_components(found)
    assert np.all(np.diff(mapped.points[:, 0]) < 0)
    assert mapped.explained == pytest.approx([1, 0])
    assert not principal_components(np.ones((4, 5))).points.any()


def test_the_ellipse_has_the_deviations_of_its_points() -> None:
    points = np.array([[-2.0, 0], [2, 0], [0, -1], [0, 1]])
    found = ellipse(points)
    assert found is not None
    assert found[0] == pytest.approx([0, 0])
    assert found[1].max(axis=0) == pytest.approx(points.std(axis=0, ddof=1), rel=0.01)
    assert ellipse(points[:2]) is None


def test_strategies_of_several_games_stand_on_one_map(tmp_path: Path) -> None:
    """Two opposite strategies in one game, one of them in another, which stands where it does in the first."""
    library(tmp_path, "public-goods", one={"collective": "return C", "exploitative": "return D"})
    library(tmp_path, "collective-risk", one={"exploitative": "return D"})
    how: dict[str, Any] = {"path": str(tmp_path), "game": "public-goods", "rounds": 2}
    drawings = {each.name: each for each in analyze("diversity", **how, joint=["collective-risk"]).figures}
    figure = drawings["games"].draw()
    assert figure is not None
    first, second = figure.axes[:2]
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["public-goods", "collective-risk"]
    assert first.get_xlim() == second.get_xlim()
    centres, others = (
        {
            str(line.get_label()): float(np.asarray(line.get_xdata())[0])
            for line in axes.lines
            if np.size(line.get_xdata()) == 1
        }
        for axes in (first, second)
    )
    assert others == {"one/exploitative": pytest.approx(centres["one/exploitative"])}
    assert centres["one/exploitative"] < centres["one/collective"]
    assert "games" not in {each.name for each in analyze("diversity", **how).figures}
