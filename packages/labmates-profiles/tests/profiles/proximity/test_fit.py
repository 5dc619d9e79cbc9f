"""Fits of simulated studies give the truth back, and leave out what data can't tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.models.roster import roster
from labmates_profiles.proximity.cells import REFERENCE_GAME, Cells, collapse, with_predictors
from labmates_profiles.proximity.fit import SPECIFICATIONS, allowed, fit
from labmates_profiles.proximity.report import PUBLISHED
from tests.profiles.bayes.studies import small_design
from tests.profiles.simulated_proximity import (
    CLUSTERED,
    INDEPENDENT,
    proximity_design,
    simulated_cells,
    simulated_rows,
    true_names,
)


def test_a_study_like_the_papers_has_its_numbers_of_simulations_and_cells() -> None:
    design = proximity_design(roster())

    assert design["count"].sum() == 87_475
    assert len(design) == 1365
    assert design.groupby("condition")["count"].sum()["canonical"] == pytest.approx(18_000, abs=210)


def test_the_published_coefficients_come_back() -> None:
    """Under the paper's own assumption both specifications find them, within 3.5 posterior standard deviations."""
    cells = simulated_cells(proximity_design(roster()), INDEPENDENT, seed=2)

    paper, robust = fit(cells, "paper").posterior, fit(cells, "robust", draws=1000).posterior

    for posterior in (paper, robust):
        assert posterior.diagnostics.k_hat is not None
        assert posterior.diagnostics.k_hat <= 0.7
        assert posterior.diagnostics.warnings == ()
        for name, value in PUBLISHED.items():
            one = posterior.summaries[name]
            assert abs(one.mean - value) < 3.5 * one.sd, name
        assert posterior.summaries["sd:residual"].mean == pytest.approx(0.233, abs=0.003)
    # As in the paper: half of the width of its intervals of thinking is .005, that of games .005 or .006.
    assert paper.summaries["thinking"].high - paper.summaries["thinking"].low == pytest.approx(0.010, abs=0.003)
    assert paper.summaries["r2"].mean == pytest.approx(0.424, abs=0.08)


def test_the_robust_intervals_cover_where_the_papers_do_not() -> None:
    """Eight small studies of models that differ; at a coverage of .95 less than .88 would be far beyond chance."""
    design = small_design(12, 3000)
    held: dict[str, list[bool]] = {"paper": [], "robust": []}
    for seed in range(8):
        cells = simulated_cells(design, CLUSTERED, seed=seed)
        for specification in ("paper", "robust"):
            found = fit(cells, specification, draws=500, seed=seed).posterior.summaries
            held[specification] += [found[name].low <= value <= found[name].high for name, value in PUBLISHED.items()]

    assert np.mean(held["robust"]) > 0.88
    assert np.mean(held["paper"]) < 0.7


def test_the_same_seed_gives_the_same_fit() -> None:
    cells = simulated_cells(small_design(), CLUSTERED, seed=0)

    one, other = (fit(cells, "paper", draws=500, seed=3).posterior.draws for _ in range(2))

    assert (one == other).all()


def test_terms_that_the_data_cannot_tell_apart_are_left_out_and_named() -> None:
    design = small_design(4)
    design = design[(design["game"] == "o-ring") & (design["condition"] == "canonical")]
    cells = simulated_cells(design.assign(count=1), CLUSTERED, seed=0)

    components, notes = allowed(cells, "robust")

    assert "game" not in components
    assert "cell" not in components
    assert any("one game only" in note for note in notes)
    assert any("no model has two conditions" in note for note in notes)


def test_a_family_of_one_model_each_leaves_no_model_intercepts() -> None:
    cells = simulated_cells(small_design(4), CLUSTERED, seed=0)

    components, notes = allowed(cells, "robust")

    assert "model" not in components
    assert any("each family has one model only" in note for note in notes)


def test_rows_and_cells_of_a_simulated_study_agree() -> None:
    design = small_design(6)
    rows = with_predictors(simulated_rows(design, INDEPENDENT, seed=7), REFERENCE_GAME)

    by_rows = collapse(rows, "pareto_proximity", true_names(design))
    by_cells = simulated_cells(design, INDEPENDENT, seed=7)

    assert by_rows.rows == by_cells.rows
    assert len(by_rows.count) == len(by_cells.count)
    assert by_rows.mean.mean() == pytest.approx(by_cells.mean.mean(), abs=0.02)


def _determined(*, by_model: bool) -> Cells:
    """Return cells without noise: outcomes are the game's level, and where asked for the model's as well."""
    cells = simulated_cells(small_design(8).assign(count=1), INDEPENDENT, seed=0)
    games = cells.block % len(cells.games)
    level = 0.1 + 0.1 * games + (0.05 * cells.model**2 if by_model else 0.0)
    return replace(cells, family=cells.model // 4, families=("a", "b"), mean=level, squares=np.zeros(len(level)))


def test_outcomes_without_noise_are_told_from_a_fit() -> None:
    for specification in SPECIFICATIONS:
        with pytest.raises(UsageError, match=f"{specification}: predictors .* determine every outcome exactly"):
            fit(_determined(by_model=False), specification, draws=500)
    with pytest.raises(UsageError, match="the paper's specification claims less of models, and may still do"):
        fit(_determined(by_model=True), "robust", draws=500)
    found = fit(_determined(by_model=True), "paper", draws=500).posterior
    assert np.isfinite(found.draws).all()


def test_outcomes_with_next_to_no_noise_are_told_from_a_fit() -> None:
    cells = _determined(by_model=False)
    noise = np.random.default_rng(0).normal(0, 1e-7, len(cells.mean))
    with pytest.raises(UsageError, match="without noise"):
        fit(replace(cells, mean=cells.mean + noise), "paper", draws=500)


def test_small_noise_beside_large_games_is_sampled_well() -> None:
    cells = _determined(by_model=False)
    noise = np.random.default_rng(0).normal(0, 1e-3, len(cells.mean))
    found = fit(replace(cells, mean=cells.mean + noise), "paper", draws=1000).posterior
    assert found.summaries["sd:residual"].mean == pytest.approx(1e-3, rel=0.2)
    assert found.diagnostics.effective > 300


def test_one_simulation_each_leaves_no_term_beside_the_noise() -> None:
    design = small_design(8)
    one_each = design[design["condition"] == "canonical"].assign(count=1)

    components, notes = allowed(simulated_cells(one_each, CLUSTERED, seed=0), "robust")
    assert {"game", "cell"}.isdisjoint(components)
    assert any("each model has one simulation of a game only" in note for note in notes)

    components, notes = allowed(simulated_cells(one_each[one_each["game"] == "o-ring"], CLUSTERED, seed=0), "robust")
    assert "model" not in components
    assert any("each model has one simulation only" in note for note in notes)
