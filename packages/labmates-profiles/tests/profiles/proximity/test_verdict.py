"""What is said in plain words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labmates_profiles.bayes.evidence import PermutationTest
from labmates_profiles.proximity.checks import Checks, adjusted_means, checks, own_effects, verdict
from labmates_profiles.proximity.fit import Fit, fit
from tests.profiles.bayes.studies import small_design
from tests.profiles.simulated_proximity import CLUSTERED, simulated_cells

NOTHING = Checks({}, None, {}, {})


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return fit(simulated_cells(small_design(), CLUSTERED, seed=0), "paper", draws=500)


def _said(one: Fit, name: str, low: float, high: float, beside: Checks = NOTHING, outcome: str = "cooperation") -> str:
    """Return the sentence on a predictor whose interval is about this."""
    draws = one.posterior.draws.copy()
    draws[:, one.posterior.names.index(name)] = np.linspace(low, high, len(draws))
    shifted = replace(one, specification="robust", posterior=replace(one.posterior, draws=draws))
    told = verdict([shifted], beside, outcome)
    return told[one.cells.names.index(name)]


def test_effects_are_told_with_their_direction(fitted: Fit) -> None:
    assert "Moves play toward the equilibrium." in _said(fitted, "tom", -0.2, -0.1)
    assert "Moves play toward the optimum." in _said(fitted, "tom", 0.1, 0.2)
    assert "Moves play toward the optimum." in _said(fitted, "tom", -0.2, -0.1, outcome="proximity"), "a distance"
    assert "though by less than 0.05" in _said(fitted, "tom", -0.03, -0.01)


def test_no_effect_is_told_apart_from_not_knowing(fitted: Fit) -> None:
    assert "No effect as large as 0.05" in _said(fitted, "cot", -0.02, 0.02)
    assert "Inconclusive: no effect and relevant effects of either sign" in _said(fitted, "cot", -0.3, 0.3)
    assert "Inconclusive: no effect and a relevant increase" in _said(fitted, "cot", -0.01, 0.3)


def test_a_test_over_models_that_disagrees_casts_doubt(fitted: Fit) -> None:
    doubtful = replace(NOTHING, tests={"size": PermutationTest(1.0, 0.4, 99, 12, 12)})

    assert "does not confirm it" in _said(fitted, "size", -0.3, -0.1, doubtful)
    assert "p = 0.4" in _said(fitted, "size", -0.3, -0.1, doubtful)


def test_the_papers_specification_alone_is_warned_of(fitted: Fit) -> None:
    assert any("--spec robust" in sentence for sentence in verdict([fitted], NOTHING))


def test_limits_of_the_models_are_told(fitted: Fit) -> None:
    limits = Checks({}, -0.2, {"size": 9.0, "thinking": 9.0}, {"model-3": 0.8, "model-1": 0.1})

    said = " ".join(verdict([fitted], limits))

    assert "12 models are few" in said
    assert "R² -0.20" in said
    assert "variance inflation 9.0" in said
    assert "model-3 (0.80)" in said
    assert "model-1" not in said


def test_models_are_compared_as_if_all_had_been_played_alike(fitted: Fit) -> None:
    cells = fitted.cells
    shifted = replace(cells, mean=cells.mean + 0.3 * (cells.model == 4))

    difference = adjusted_means(shifted) - adjusted_means(cells)

    assert difference == pytest.approx(0.3 * (np.arange(12) == 4), abs=1e-9)


def test_own_effects_compare_a_prompt_with_none(fitted: Fit) -> None:
    cells = fitted.cells
    tom = cells.predictors[:, cells.names.index("tom")]
    shifted = replace(cells, mean=cells.mean + tom * cells.model)

    assert own_effects(shifted, "tom") - own_effects(cells, "tom") == pytest.approx(np.arange(12))
    assert own_effects(shifted, "cot") == pytest.approx(own_effects(cells, "cot"))


@pytest.mark.parametrize("name", ["cot", "tom", "group_size", "game:o-ring"])
def test_each_models_own_effect_is_what_its_cells_say_alone(fitted: Fit, name: str) -> None:
    cells = fitted.cells
    given = 0.1 * np.arange(12) + 0.01
    exact = cells.predictors @ np.linspace(-1, 1, len(cells.names)) + cells.model  # other effects and levels
    by = cells.predictors[:, cells.names.index(name)]
    own = replace(
        cells, mean=exact + by * (given - np.linspace(-1, 1, len(cells.names))[cells.names.index(name)])[cells.model]
    )

    assert own_effects(own, name) == pytest.approx(given)


def test_checks_are_over_models(fitted: Fit) -> None:
    found = checks(fitted.cells, permutations=99)

    assert set(found.tests) == set(fitted.cells.names)
    assert all(one.units == 12 for one in found.tests.values())
    assert sum(found.leverage.values()) == pytest.approx(3)
    assert next(iter(found.leverage.values())) == max(found.leverage.values())
