"""The collapsed density is that of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labmates_profiles.proximity.cells import (
    REFERENCE_GAME,
    Cells,
    collapse,
    with_predictors,
)
from labmates_profiles.proximity.mixed import CELL, FAMILY, GAME, MODEL, PAPER, MixedModel, Priors
from tests.profiles.bayes.studies import ROBUST, small_design
from tests.profiles.simulated_proximity import CLUSTERED, simulated_rows, true_names


def _rows(models: int = 4, *, keep: float = 1.0, seed: int = 0) -> tuple[pd.DataFrame, list[str]]:
    """Return a few hundred rows at most, and the names of the predictors."""
    design = small_design(models)
    design["count"] = np.random.default_rng(seed).integers(1, 4, len(design))
    rows = with_predictors(simulated_rows(design, CLUSTERED, seed=seed), REFERENCE_GAME)
    return rows.sample(frac=keep, random_state=seed), true_names(design)


def _row_log_density(
    rows: pd.DataFrame, names: list[str], components: Sequence[str], point: np.ndarray, priors: Priors
) -> float:
    """The density as one would write it down: one normal of all rows, with the covariance that all terms give them."""
    design = np.column_stack([np.ones(len(rows)), rows[names]])
    spread = np.r_[priors.intercept_sd, np.full(len(names), priors.coefficient_sd)]
    covariance = (design * spread**2) @ design.T + point[0] ** 2 * np.eye(len(rows))
    mean = design[:, 0] * priors.intercept_mean
    cot, tom, size = (rows[name].to_numpy() for name in ("cot", "tom", "group_size"))
    by_cell = rows.drop_duplicates(["model", "game", "condition"])["group_size"]
    groups = {
        FAMILY: (["family"], np.ones(len(rows))),
        MODEL: (["model"], np.ones(len(rows))),
        "cot": (["model"], cot),
        "tom": (["model"], tom),
        "group_size": (["model"], size - by_cell.mean()),
        GAME: (["model", "game"], np.ones(len(rows))),
        CELL: (["model", "game", "condition"], np.ones(len(rows))),
    }
    for deviation, name in zip(point[1:], components, strict=True):
        columns, by = groups[name]
        group = rows.groupby(columns).ngroup().to_numpy()
        covariance += deviation**2 * np.outer(by, by) * (group[:, None] == group[None, :])
    density = stats.multivariate_normal(mean, covariance).logpdf(rows["pareto_proximity"].to_numpy())
    return float(density + stats.halfnorm.logpdf(point, scale=priors.component_sd).sum())


@pytest.mark.parametrize(
    "components", [(), PAPER, ROBUST, (FAMILY, MODEL), (MODEL, GAME), (CELL,), ("cot", "tom", FAMILY), ("group_size",)]
)
def test_the_collapsed_log_density_is_that_of_the_rows(components: tuple[str, ...]) -> None:
    rows, names = _rows()
    point = np.array([0.11, 0.07, 0.05, 0.04, 0.03, 0.02, 0.2, 0.06])[: 1 + len(components)]

    found = MixedModel(collapse(rows, "pareto_proximity", names), components).log_density(point[None])

    assert found[0] == pytest.approx(_row_log_density(rows, names, components, point, Priors()), abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(0.01, 0.6), min_size=8, max_size=8),
    st.integers(0, 1000),
    st.floats(0.3, 1.0),
    st.builds(Priors, st.floats(-1, 1), st.floats(0.1, 2), st.floats(0.1, 2), st.floats(0.1, 2)),
)
def test_the_densities_agree_for_any_deviations_priors_and_gaps(
    point: list[float], seed: int, keep: float, priors: Priors
) -> None:
    """Cells and whole model × game blocks are missing, and cells are of different sizes."""
    rows, names = _rows(3, keep=keep, seed=seed)
    at = np.array(point)

    found = MixedModel(collapse(rows, "pareto_proximity", names), ROBUST, priors).log_density(at[None])

    # Next to no noise beside large terms costs the covariance of all rows eight digits.
    assert found[0] == pytest.approx(_row_log_density(rows, names, ROBUST, at, priors), rel=1e-8, abs=1e-6)


def test_points_are_valued_together_as_alone() -> None:
    rows, names = _rows()
    model = MixedModel(collapse(rows, "pareto_proximity", names), ROBUST)
    points = np.abs(np.random.default_rng(0).normal(0.1, 0.05, (30, 8))) + 0.01

    alone = [model.log_density(point[None])[0] for point in points]

    assert model.log_density(points) == pytest.approx(np.array(alone), abs=1e-8)


def test_coefficients_and_families_are_drawn_from_their_exact_posterior() -> None:
    """Given the standard deviations the posterior is normal, with a mean and covariance that algebra tells."""
    rows, names = _rows()
    model = MixedModel(collapse(rows, "pareto_proximity", names), PAPER)
    residual, family = 0.12, 0.08
    families = pd.get_dummies(rows["family"]).to_numpy(dtype=float)
    design = np.column_stack([np.ones(len(rows)), rows[names], families])
    precision = np.diag(np.r_[4.0, np.ones(len(names)), np.full(families.shape[1], family**-2)])
    prior_mean = np.r_[0.5, np.zeros(design.shape[1] - 1)]
    covariance = np.linalg.inv(precision + design.T @ design / residual**2)
    mean = covariance @ (precision @ prior_mean + design.T @ rows["pareto_proximity"].to_numpy() / residual**2)

    coefficients, intercepts = model.draw(np.tile([residual, family], (20_000, 1)), np.random.default_rng(0))
    draws = np.column_stack([coefficients, intercepts])

    sd = np.sqrt(np.diag(covariance))
    assert (draws.mean(axis=0) - mean) / sd == pytest.approx(0, abs=0.04)
    assert draws.std(axis=0) / sd == pytest.approx(1, abs=0.03)
    assert np.corrcoef(draws.T) == pytest.approx(covariance / np.outer(sd, sd), abs=0.04)


def test_a_cell_is_count_mean_and_squares_of_its_rows() -> None:
    rows, names = _rows()

    cells: Cells = collapse(rows, "pareto_proximity", names)

    assert cells.rows == len(rows)
    one = rows[(rows["model"] == "model-2") & (rows["game"] == "o-ring") & (rows["condition"] == "size 8")]
    at = np.flatnonzero(
        (cells.block == cells.models.index("model-2") * 6 + cells.games.index("o-ring"))
        & (cells.predictors[:, names.index("group_size")] == 8)
    )
    assert cells.count[at] == len(one)
    assert cells.mean[at] == pytest.approx(one["pareto_proximity"].mean())
    assert cells.squares[at] == pytest.approx(((one["pareto_proximity"] - one["pareto_proximity"].mean()) ** 2).sum())
