"""The power of H2 is told by the plan of a study, for its own design."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.workflows.tournament.condition import TournamentCondition
from labmates_design.super_additivity import CASES, DEVIATIONS, first_moves, power, powers
from tests.support.command_line import Labmates


def design(**more: Any) -> list[TournamentCondition]:
    """Return the conditions of a study of the three structures."""
    return [TournamentCondition(structure=name, model="scripted:grim", **more) for name in ("ri", "gc", "sa")]


def test_few_tournaments_tell_an_effect_like_the_papers_and_twenty_do() -> None:
    """One-shot rates of Qwen3; without an effect p < .05 is rare."""
    rates = CASES["the published means of Qwen3"]
    assert 0.2 <= power(rates, (24, 18, 24), 0.05, 5) <= 0.45
    assert power(rates, (24, 18, 24), 0.05, 20) >= 0.8
    assert power((0.3, 0.3, 0.3), (24, 18, 24), 0.05, 10) <= 0.1


def test_first_moves_are_those_of_the_design() -> None:
    """Of two teams of three: matches with five others or three, as far as a player's rounds last."""
    assert [first_moves(each) for each in design(rounds=10)] == [24, 18, 24]
    assert [first_moves(each) for each in design(rounds=10, rounds_per_player=20)] == [12, 12, 12]


@pytest.mark.parametrize(("left_out", "replicates"), [("ri", 5), ("", 1)])
def test_a_design_that_cannot_test_h2_has_no_power_for_it(left_out: str, replicates: int) -> None:
    conditions = [each for each in design() if each.structure != left_out]
    assert list(powers(conditions, replicates)) == []


def test_the_plan_of_a_study_tells_the_power(labmates: Labmates) -> None:
    [plan] = labmates("study", "plan", "super-additive", "--json").records
    [told] = (each["powers"] for each in plan["detectable"] if "powers" in each)
    assert len(told) == len(CASES) * len(DEVIATIONS)
    shown = labmates("study", "plan", "super-additive").out
    for effect, probability in told.items():
        assert f"{probability:.2f} with {effect}" in shown
        assert 0 < probability < 1
    assert "5 tournaments of each structure" in " ".join(shown.split())
