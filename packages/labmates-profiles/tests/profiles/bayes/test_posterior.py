"""Posteriors and what is said of their quality."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labmates.stats.multiplicity import mark
from labmates.stats.tables import ADJUSTED, CREDIBLE
from labmates_profiles.bayes.importance import Diagnostics, warnings
from labmates_profiles.bayes.posterior import Posterior, adjusted

GOOD = Diagnostics(20_000, effective=3000.0, k_hat=0.2)


def _draws(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal([1.0, 0.0], [0.1, 2.0], size=(20_000, 2))


def test_summaries_tell_mean_spread_interval_and_direction() -> None:
    found = Posterior(("size", "tom"), _draws(), GOOD).summaries

    size, tom = found["size"], found["tom"]
    assert (size.mean, size.sd) == pytest.approx((1.0, 0.1), abs=0.01)
    assert (size.low, size.high) == pytest.approx((0.804, 1.196), abs=0.01)
    assert size.positive == 1
    assert size.credible
    assert tom.positive == pytest.approx(0.5, abs=0.02)
    assert not tom.credible


def test_p_of_effects_is_adjusted_for_all_that_are_shown_together() -> None:
    found = Posterior(("size", "tom"), _draws() - np.array([0.78, 0.0]), GOOD)
    size, tom = found.summaries["size"], found.summaries["tom"]
    alone = 2 * (1 - size.positive)
    assert 0.025 < alone < 0.05
    assert size.credible
    least = 2 * min(tom.positive, 1 - tom.positive)
    assert adjusted([found], [["size"]]) == [pytest.approx({"size": alone})]
    assert adjusted([found], [["size", "tom"]]) == [pytest.approx({"size": 2 * alone, "tom": max(2 * alone, least)})]
    assert adjusted([found], [["size"]], [["tom"]]) == [pytest.approx({"size": alone, "tom": least})]
    assert adjusted([found, found], [["size"], ["size"]]) == [pytest.approx({"size": 2 * alone})] * 2
    assert mark(size.credible, 2 * alone) == CREDIBLE
    assert mark(size.credible, alone) == ADJUSTED
    assert mark(tom.credible, 1.0) == ""


def test_a_good_sample_has_no_warning() -> None:
    assert warnings(0.2, 3000.0, 1) == ()


def test_a_bad_k_hat_is_told_with_its_number_and_what_to_do() -> None:
    [warning] = warnings(0.93, 3000.0, 4)

    assert "0.93" in warning
    assert "least squares" in warning


def test_few_effective_draws_are_told() -> None:
    [warning] = warnings(0.2, 120.0, 1)

    assert "120 effective draws" in warning


def test_json_has_one_entry_per_parameter() -> None:
    posterior = Posterior(("a", "b"), _draws(), GOOD)

    data = json.loads(json.dumps(posterior.json()))
    assert [one["name"] for one in data["parameters"]] == ["a", "b"]
    assert data["diagnostics"]["k_hat"] == 0.2
