"""NUTS agrees with the importance sampler, on the collapsed density and on that of the rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.plain_models import proximity_rows
from labmates.errors import MissingExtraError
from labmates.games.base import Array
from labmates.stats.bayes.nuts import check_numpyro
from labmates.stats.bayes.posterior import furthest
from labmates.workflows.games.proximity.cells import REFERENCE_GAME, collapse, with_predictors
from labmates.workflows.games.proximity.fit import fit
from labmates.workflows.games.proximity.mixed import PAPER, MixedModel
from labmates.workflows.games.proximity.nuts import _collapsed, fit_cells
from labmates.workflows.games.proximity.simulation import CLUSTERED, simulated_cells, simulated_rows
from tests.stats.bayes.studies import ROBUST, small_design


def _slopes(density: Any, mean: Array, at: Any) -> tuple[Any, Any]:
    jax = pytest.importorskip("jax")
    return jax.grad(density)(mean, at), jax.hessian(density)(mean, at)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("components", [PAPER, ROBUST])
def test_the_density_that_nuts_samples_has_the_marginal_of_the_other(components: tuple[str, ...]) -> None:
    """Given the deviations the coefficients are normal: the density at one point and its curvature tell the rest."""
    jax = pytest.importorskip("jax")
    cells = simulated_cells(small_design(5, 1500), CLUSTERED, seed=1)
    model = MixedModel(cells, components)
    points = np.array([[0.11, 0.07, 0.05, 0.04, 0.03, 0.02, 0.2, 0.06], [0.1, 0.02, 0.1, 0.01, 0.08, 0.01, 0.1, 0.03]])
    points = points[:, : len(model.deviations)]
    sd = np.r_[0.5, np.ones(model.width - 1)]
    mean = np.r_[0.5, np.zeros(model.width - 1)]

    with jax.enable_x64(True):
        log_likelihood = _collapsed(model)
        told = jax.jit(lambda at: (log_likelihood(mean, at), *_slopes(log_likelihood, mean, at)))  # compiled once
        found = []
        for point in points:
            at, slope, curvature = map(np.asarray, told(point))
            precision = np.diag(sd**-2) - curvature
            found.append(at + 0.5 * slope @ np.linalg.solve(precision, slope) - 0.5 * np.linalg.slogdet(precision)[1])
    half_normal = -0.5 * ((points / 0.5) ** 2).sum(axis=1)

    ours = model.log_density(points)

    assert found[0] + half_normal[0] - found[1] - half_normal[1] == pytest.approx(ours[0] - ours[1], abs=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_compilation")
def test_nuts_on_cells_and_on_rows_agree_with_importance_sampling() -> None:
    pytest.importorskip("numpyro")
    design = small_design(8, 1200)
    design = design[(design["game"] == REFERENCE_GAME) & design["condition"].isin(["canonical", "cot", "tom"])]
    rows = with_predictors(simulated_rows(design, CLUSTERED, seed=4), REFERENCE_GAME)
    ours = fit(collapse(rows, "pareto_proximity", ["cot", "tom"]), "paper", draws=20_000)

    by_cells = fit_cells(ours, draws=1500, warm_up=500)
    by_rows, gradients = proximity_rows(rows, "pareto_proximity", ours.model, dense=True, draws=1500, warm_up=500)

    for found in (by_cells, by_rows):
        assert found.diagnostics.r_hat is not None
        assert found.diagnostics.r_hat <= 1.01
        assert furthest(ours.posterior, found)[0] <= 0.1
    assert gradients > 6000


def test_without_numpyro_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingExtraError, match=r"labmates\[analysis\]"):
        check_numpyro()
