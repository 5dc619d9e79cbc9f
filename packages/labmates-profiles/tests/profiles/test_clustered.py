"""Least squares with clustered errors, beside statsmodels."""

from __future__ import annotations

import numpy as np
import pytest

from labmates_profiles.clustered import clustered_ols


def _data(clusters: int = 12, rows: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    cluster = rng.integers(clusters, size=rows)
    design = np.column_stack([np.ones(rows), rng.normal(size=rows), rng.normal(size=clusters)[cluster]])
    outcome = design @ [0.5, 0.3, -0.2] + rng.normal(size=clusters)[cluster] + rng.normal(size=rows)
    return design, outcome, cluster, rng.integers(1, 5, size=rows).astype(float)


def test_estimates_and_intervals_are_those_of_statsmodels() -> None:
    regression = pytest.importorskip("statsmodels.api")
    design, outcome, cluster, _ = _data()
    theirs = regression.OLS(outcome, design).fit(cov_type="cluster", cov_kwds={"groups": cluster}, use_t=True)
    ours = clustered_ols(design, outcome, cluster)
    assert ours is not None
    for at, estimate in enumerate(ours):
        assert (estimate.value, estimate.error) == pytest.approx((theirs.params[at], theirs.bse[at]))
        assert (estimate.low, estimate.high) == pytest.approx(tuple(theirs.conf_int()[at]))
        assert estimate.p == pytest.approx(theirs.pvalues[at])


def test_a_row_that_stands_for_several_counts_as_these() -> None:
    design, outcome, cluster, count = _data()
    places = np.repeat(np.arange(len(count)), count.astype(int))
    counted = clustered_ols(design, outcome, cluster, count)
    repeated = clustered_ols(design[places], outcome[places], cluster[places])
    assert counted is not None
    assert repeated is not None
    for one, other in zip(counted, repeated, strict=True):
        assert (one.value, one.error, one.low) == pytest.approx((other.value, other.error, other.low))


def test_data_that_do_not_determine_the_coefficients_have_no_estimates() -> None:
    design, outcome, cluster, _ = _data()
    assert clustered_ols(np.column_stack([design, design[:, 1]]), outcome, cluster) is None
    assert clustered_ols(design, outcome, np.zeros_like(cluster)) is None
    assert clustered_ols(design[:3], outcome[:3], cluster[:3]) is None
