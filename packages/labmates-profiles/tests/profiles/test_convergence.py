"""Convergence: the error of a mean of simulations, and whether it separates models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates_profiles.curves import (
    bootstrap_errors,
    closed_form_errors,
    convergence,
    convergence_figure,
    reliabilities,
    variance_between,
)
from labmates_profiles.prediction.sources import read_levels
from tests.profiles.test_profiles import record
from tests.support.command_line import Labmates


def test_the_error_of_a_mean_is_that_of_the_formula() -> None:
    values = np.random.default_rng(1).normal(5, 2, 5000)
    sizes = (1, 5, 20, 50)
    found = bootstrap_errors(values, sizes, resamples=4000)
    assert found == pytest.approx(closed_form_errors(float(values.std(ddof=1)), sizes), rel=0.05)
    assert closed_form_errors(1.0, [20])[0] == pytest.approx(0.178, abs=5e-4)


def test_reliability_is_the_share_of_variance_that_is_between_models() -> None:
    assert reliabilities(1.0, 2.0, [1, 4, 16]) == pytest.approx([0.2, 0.5, 0.8])
    assert reliabilities(0.0, 1.0, [10]) == pytest.approx([0.0])
    assert reliabilities(0.0, 0.0, [10]) == pytest.approx([0.0])
    rng = np.random.default_rng(2)
    true = rng.normal(0, 1.5, 2000)
    measured = true + rng.normal(0, 0.5, 2000)
    assert variance_between(measured, np.full(2000, 0.5)) == pytest.approx(2.25, rel=0.1)
    assert variance_between(np.array([1.0, 1.1]), np.array([5.0, 5.0])) == 0


def test_convergence_is_told_by_game_over_models_with_several_simulations() -> None:
    rng = np.random.default_rng(3)
    runs = [
        record(f"m:{model}", "o-ring", i, level=float(level))
        for model in range(6)
        for i, level in enumerate(rng.normal(model, 1.0, 40))
    ]
    runs += [record("m:0", "weakest-link", 0, level=1.0), record("m:0", "public-goods", 0)]
    [found] = convergence(runs, sizes=(5, 20))
    assert (found.game, found.models, found.simulations, found.sizes) == ("o-ring", 6, 40, (5, 20))
    assert found.within == pytest.approx(1.0, rel=0.1)
    assert found.between == pytest.approx(np.std(range(6), ddof=1), rel=0.15)
    assert found.bootstrap == pytest.approx(found.closed_form, rel=0.15)
    assert found.reliability is not None
    assert 0.9 < found.reliability[0] < found.reliability[1] < 1
    [alone] = convergence([run for run in runs if run.models == ["m:1"]])
    assert alone.reliability is None
    assert alone.between is None


def test_models_are_compared_under_equal_conditions() -> None:
    rng = np.random.default_rng(4)
    runs = [
        replace(
            record(f"m:{model}", "o-ring", i, level=float(level)),
            key=f"{model} {size}",
            condition={"game": "o-ring", "model": f"m:{model}", "group_size": size, "prices": {"input": model}},
        )
        for size in (3, 8)
        for model in range(5)
        for i, level in enumerate(rng.normal(0.1 * model + size, 0.1, 30))
    ]
    [found] = convergence(runs)
    assert found.models == 5
    # Five models a tenth apart; that sizes differ by five has nothing to do with it.
    assert found.between == pytest.approx(0.1 * np.std(range(5), ddof=1), rel=0.25)
    [apart] = convergence([run for run in runs if (run.condition["group_size"] == 3) == (run.models == ["m:0"])][:60])
    assert (apart.models, apart.between) == (2, None)


def test_simulations_in_which_almost_all_decisions_failed_say_nothing_of_convergence() -> None:
    runs = [record(f"m:{name}", "o-ring", i, level=float(i)) for name in "ab" for i in range(4)]
    broken = [record("m:c", "o-ring", i, level=9.0 * i, failed_decision_rate=0.9) for i in range(4)]
    [found] = convergence([*runs, *broken], metrics=["level"])
    [same] = convergence(runs, metrics=["level"])
    assert (found.models, found.within) == (same.models, same.within)


def test_convergence_is_drawn_with_its_reliability_if_there_are_several_models() -> None:
    runs = [record(f"m:{m}", "o-ring", i, level=m + i / 10) for m in range(3) for i in range(4)]
    axes = convergence_figure(convergence(runs)).axes
    assert [ax.axison for ax in axes] == [True, True, True, False]
    drawn: dict[str, Any] = {str(line.get_label()): line.get_ydata() for line in axes[0].lines}
    assert drawn["mean"][0] == pytest.approx(drawn["formula, normal errors"][0], rel=0.2)
    assert (drawn["95th percentile"] >= drawn["mean"]).all()
    assert len(convergence_figure(convergence(runs[:4])).axes) == 2


def test_models_that_never_vary_have_no_error_to_draw() -> None:
    runs = [record("m:a", "o-ring", i, level=3.0) for i in range(4)]
    drawn = [str(line.get_label()) for line in convergence_figure(convergence(runs)).axes[0].lines]
    assert drawn == ["formula, normal errors"]


def test_a_profile_is_read_by_the_prediction_and_convergence_is_told_of_it(labmates: Labmates) -> None:
    quick = ("--game", "o-ring", "--game", "weakest-link", "--group-size", "3")
    others = [f"scripted:{name}" for name in ("cooperate", "conditional", "fair-share", "defect")]
    assert labmates("profile", *others, *quick, "--simulations", "2").code == 0
    taking = ("profile", "scripted:random", *quick, "--simulations", "3")
    assert labmates(*taking).code == 0
    taken = labmates(*taking, "--json", "--out", "profile.csv")
    levels = [game["level"] for game in taken.records[0]["games"]]
    read = [one for one in read_levels(labmates.folder / "profile.csv")[0] if one.model == "scripted:random"]
    assert [(one.value, one.error, one.simulations) for one in read] == [
        (one["value"], one["error"], 3) for one in levels
    ]
    told = labmates("analyze", "convergence", "--game", "o-ring", "--size", "5", "--json").records
    assert [one["game"] for one in told] == ["o-ring"]
    assert told[0]["models"] == 5
    assert told[0]["sizes"] == [5]
    plotted = labmates("analyze", "convergence", "--plot", "c.png", "--out", "c.tex", "--out", "c.parquet")
    assert "weakest-link" in plotted.out
    assert "0.18 at n = 20" in plotted.out
    assert r"SD within models" in (Path(labmates.folder) / "c.tex").read_text()
    several = labmates("analyze", "convergence", "--metric", "cooperation", "--metric", "level", "--json").records
    assert {one["metric"] for one in several if one["game"] == "o-ring"} == {"cooperation", "level"}
    unknown = labmates("analyze", "convergence", "--metric", "nothing")
    assert (unknown.code, "metrics: " in unknown.err, "efficiency" in unknown.err) == (2, True, True)
    assert (Path(labmates.folder) / "c.png").is_file()
    nothing = labmates("analyze", "convergence", "--model", "scripted:nobody")
    assert nothing.code == 2
    assert "at least two simulations" in nothing.err
