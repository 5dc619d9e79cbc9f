"""Fixation, stationary distribution and alpha-rank: egttools, OpenSpiel and complete Markov chains say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates_populations.fixation import (
    alpha_rank,
    log_fixation,
    population_payoffs,
    stationary_distribution,
)
from tests.support.metagames import pair_payoffs, public_goods

RECORDED = json.loads((Path(__file__).parent / "data" / "egttools_openspiel.json").read_text())
"""Values of egttools 0.1.14 (`PairwiseComparison`, matrix games) and OpenSpiel 2.0 (`alpharank.compute`, m = 50, global
selection, payoffs scaled to 0 to 1)."""


@pytest.mark.parametrize("case", RECORDED["fixation"], ids=lambda case: f"{case['game']}-{case['population']}")
def test_egttools_gives_the_same_fixation_and_stationary_distribution(case: dict[str, Any]) -> None:
    logs = log_fixation(pair_payoffs(case["payoffs"]), case["population"], case["strength"])
    assert np.exp(logs) == pytest.approx(np.array(case["resident_invader"]), abs=1e-10)
    assert stationary_distribution(logs) == pytest.approx(np.array(case["stationary"]), abs=1e-10)


@pytest.mark.parametrize("case", RECORDED["alpha_rank"], ids=lambda case: f"{case['game']}-{case['alpha']:g}")
def test_open_spiel_gives_the_same_alpha_rank_at_any_alpha(case: dict[str, Any]) -> None:
    payoffs = np.array(case["payoffs"])
    scaled = pair_payoffs((payoffs - payoffs.min()) / np.ptp(payoffs))
    shares = stationary_distribution(log_fixation(scaled, 50, case["alpha"]))
    assert shares == pytest.approx(np.array(case["pi"]), abs=1e-10)


@pytest.mark.parametrize("process", ["pairwise", "moran"])
def test_fixation_is_the_absorption_of_the_complete_chain_in_groups(process: Any) -> None:
    pairs, size, strength = pair_payoffs(public_goods(4, 2.0)), 12, 0.3
    payoffs = population_payoffs(pairs, size)
    chain = np.eye(size + 1)  # from so many defectors to so many
    for defectors in range(1, size):
        bad, good = payoffs[1, 0, defectors - 1], payoffs[0, 1, size - defectors - 1]
        share = defectors / size
        if process == "pairwise":
            mixed = share * (1 - share)
            up, down = mixed / (1 + np.exp(strength * (good - bad))), mixed / (1 + np.exp(strength * (bad - good)))
        else:
            weights = defectors * (1 - strength + strength * bad), (size - defectors) * (1 - strength + strength * good)
            up, down = weights[0] / sum(weights) * (1 - share), weights[1] / sum(weights) * share
        chain[defectors, defectors - 1 : defectors + 2] = down, 1 - up - down, up
    inner = chain[1:-1, 1:-1]
    absorbed = np.linalg.solve(np.eye(size - 1) - inner, chain[1:-1, -1])
    found = np.exp(log_fixation(pairs, size, strength, process))
    assert found[0, 1] == pytest.approx(absorbed[0], rel=1e-10)
    assert found[0, 0] == pytest.approx(1 / size)


def test_expected_payoffs_are_those_of_all_groups_that_can_be_drawn() -> None:
    pairs = pair_payoffs(public_goods(3, 1.5))
    # A lone cooperator among 5: in every group of 3 it gets k/3.
    assert population_payoffs(pairs, 5)[0, 1, 0] == pytest.approx(0.5)
    # Two cooperators among 4: the other one is in 2 of the 3 groups with two co-players.
    assert population_payoffs(pairs, 4)[0, 1, 1] == pytest.approx((2 * 1.0 + 1 * 0.5) / 3)


def test_neutral_types_share_alike_and_strong_selection_has_no_overflow() -> None:
    neutral = pair_payoffs(np.ones((3, 3)))
    assert stationary_distribution(log_fixation(neutral, 20, 5.0)) == pytest.approx(np.full(3, 1 / 3))
    assert alpha_rank(neutral) == pytest.approx(np.full(3, 1 / 3))
    cycle = pair_payoffs([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
    assert alpha_rank(cycle) == pytest.approx(np.full(3, 1 / 3))
    assert alpha_rank(pair_payoffs(public_goods(4, 2.0))) == pytest.approx([0, 1])
    # Of two strict equilibria, the one that is harder to leave holds all the time.
    assert alpha_rank(pair_payoffs([[4, 0], [3, 2]])) == pytest.approx([0, 1])


def test_what_is_out_of_bounds_is_refused() -> None:
    pairs = pair_payoffs(public_goods(4, 2.0))
    with pytest.raises(UsageError, match="population: from 4"):
        log_fixation(pairs, 3, 1.0)
    with pytest.raises(UsageError, match="strength"):
        log_fixation(pairs, 10, -1.0)
    with pytest.raises(UsageError, match="strength"):
        log_fixation(pairs - 3, 10, 0.9, "moran")
