"""Whether games predict better than the models' mean: error rates of the answer, and what the mean predicts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.verdicts import answered


def test_the_answer_is_seldom_wrong_and_the_means_interval_holds() -> None:
    null = [answered(14, 3, 0.0, [seed, 1], permutations=400) for seed in range(150)]
    assert np.mean([one["yes"] for one in null]) <= 0.09  # 5 %, and two standard errors
    assert np.mean([one["false no"] for one in null]) <= 0.03
    assert np.mean([one["mean holds"] for one in null]) == pytest.approx(0.95, abs=0.04)
    strong = [answered(14, 3, 0.8, [seed, 2], permutations=400) for seed in range(60)]
    assert np.mean([one["yes"] for one in strong]) > 0.9
    assert not any(one["no"] for one in strong)


def test_with_hardly_more_models_than_coefficients_it_never_says_no() -> None:
    assert not any(answered(8, 6, 0.0, [seed, 3], permutations=50)["no"] for seed in range(30))
