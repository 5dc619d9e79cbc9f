"""Proximity and efficiency: what the numbers are, and what they are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.games.references import references
from labmates.games.registry import make_game
from labmates.workflows.games.cooperation import efficiency, pareto_proximity


def test_proximity_of_the_paper_counts_actions_and_ours_what_comes_of_them() -> None:
    plays = references(make_game("collective-risk"))
    assert pareto_proximity(1.0, plays) == 0
    assert pareto_proximity(0.0, plays) == 1
    assert pareto_proximity(2.1, plays) == 1, "an over-contributor counts as one who gives nothing"
    assert pareto_proximity(0.5, plays) == 0.5
    assert efficiency(90.0, plays) == 1
    assert efficiency(50.0, plays) == 0
    assert efficiency(79.0, plays) == pytest.approx(0.725), "what 2.1 in each round brings"
    assert efficiency(20.0, plays) == 0
    assert efficiency(95.0, plays) == 1


def test_proximity_is_not_defined_where_the_best_play_is_the_equilibrium() -> None:
    plays = references(make_game("o-ring", {"group_size": 10}))
    assert pareto_proximity(3.0, plays) is None
    assert efficiency(3.0, plays) is None


@given(st.floats(-1e3, 1e3), st.sampled_from(["weakest-link", "common-pool", "public-goods", "o-ring"]))
def test_proximities_lie_between_0_and_1(value: float, game: str) -> None:
    plays = references(make_game(game))
    for found in (pareto_proximity(value, plays), efficiency(value, plays)):
        assert found is not None
        assert 0 <= found <= 1
