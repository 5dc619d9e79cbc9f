"""The six behavioural games: payoffs by hand, reference plays by the paper's sizes, and what holds for any play."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.games.base import Array, Game, balanced
from labmates.games.collective_risk import CollectiveRisk
from labmates.games.common_pool import CommonPool, CommonPoolWithSanctions
from labmates.games.o_ring import ORing
from labmates.games.public_goods import PublicGoods
from labmates.games.references import NoEquilibriumError, equilibria, references
from labmates.games.registry import GAMES, make_game
from labmates.games.weakest_link import WeakestLink
from labmates_author.games import check_game, random_decisions

ALL = GAMES.names()
POOL = {3: (30, 50), 4: (17.5, 37.5), 5: (10, 30), 8: (10, 18.75), 10: (10, 15)}
RISK = {3: (5 / 3, 250 / 3), 4: (1.25, 87.5), 5: (1.0, 90), 8: (0.625, 93.75), 10: (0.5, 95)}
RING = {3: (4, 88 / 3), 4: (5, 20), 5: (6, 14), 8: (7.875, 4.625), 10: (0, 0)}
REFERENCES = [
    *(("weakest-link", n, 0, 0, 10, 10) for n in (3, 4, 5, 8, 10)),
    *(
        (name, n, 10, nash, 0, best)
        for name in ("common-pool", "common-pool-sanctions")
        for n, (nash, best) in POOL.items()
    ),
    *(("collective-risk", n, 0, 50, level, best) for n, (level, best) in RISK.items()),
    *(("o-ring", n, 0, 0, level, best) for n, (level, best) in RING.items()),
    *(("public-goods", n, 0, 10, 10, 20) for n in (3, 4, 5, 8, 10)),
]


def play(*groups: list[Any]) -> Array:
    """Return decisions of groups; a player's as one number or a list."""
    return np.array([[player if isinstance(player, list) else [player] for player in group] for group in groups])


@pytest.mark.parametrize(("name", "n", "nash", "nash_payoff", "best", "best_payoff"), REFERENCES)
def test_the_reference_plays_are_those_of_exact_enumeration(
    name: str, n: int, nash: float, nash_payoff: float, best: float, best_payoff: float
) -> None:
    found = references(make_game(name, {"group_size": n}))
    assert (float(found.nash.level), float(found.nash.payoff)) == pytest.approx((nash, nash_payoff))
    assert (float(found.optimum.level), float(found.optimum.payoff)) == pytest.approx((best, best_payoff))


def test_games_with_several_equilibria_have_them_all() -> None:
    assert list(references(WeakestLink()).equilibria) == list(range(11))
    assert list(references(ORing()).equilibria) == [0, 6]
    assert list(references(ORing(group_size=8)).equilibria) == [0]
    assert list(references(CollectiveRisk()).equilibria) == [0, 1]


def test_the_weakest_link_pays_by_the_least_effort_of_all_groups() -> None:
    game = WeakestLink(group_size=3)
    assert game.payoffs(play([3, 5, 10], [4, 4, 9])).tolist() == [[3, 1, -4], [2, 2, -3]]


def test_the_common_pool_shares_what_has_become_of_the_rest() -> None:
    game = CommonPool(group_size=2)
    assert game.payoffs(play([10, 0], [5, 5])).tolist() == [[70, 60], [65, 65]]
    big = CommonPool(group_size=10)
    greedy = np.full((2, 10, 1), 10)
    assert big.payoffs(greedy).tolist() == [[10] * 10] * 2
    assert big.overdrawn(greedy) == 100


def test_sanctions_cost_what_they_cost_and_nothing_else() -> None:
    game = CommonPoolWithSanctions(group_size=2)
    before = game.payoffs(play([10, 0], [5, 5]))
    tokens = np.array([[[0, 0], [3, 0]], [[0, 1], [1, 0]]])
    assert (game.sanctioned(before, tokens) - before).tolist() == [[-6, -3], [-3, -3]]


def test_collective_risk_pays_savings_and_the_loss_is_by_chance() -> None:
    game = CollectiveRisk(group_size=2, rounds=2, target=20)
    assert game.payoffs(play([10, 0], [3, 7])).tolist() == [[0, 10], [7, 3]]
    assert bool(game.reached(np.array([[10, 0], [3, 7]])))
    missed = np.array([[[9], [0]], [[3], [7]]])
    assert not game.reached(missed[..., 0])
    assert np.asarray(game.expected(missed), dtype=float).tolist() == [[5.5, 10.0], [8.5, 6.5]]


def test_the_o_ring_succeeds_exactly_at_its_threshold() -> None:
    game = ORing(group_size=4)
    all_five = np.full((2, 4, 1), 5)
    assert game.production(all_five).tolist() == [50, 50]
    assert game.payoffs(all_five).tolist() == [[20.0] * 4] * 2
    less = all_five.copy()
    less[0, 0, 0] = 4
    assert game.production(less).tolist() == [Fraction(161, 4), Fraction(805, 16)]
    assert game.payoffs(less)[0].tolist() == [-4, -5, -5, -5]
    assert float(ORing().production(np.full((2, 5, 1), 6))[0]) == pytest.approx(54.432)


def test_public_goods_pay_what_is_kept_and_both_shares() -> None:
    game = PublicGoods(group_size=2)
    paid = game.payoffs(play([[10, 0, 0], [0, 10, 0]], [[0, 0, 10], [5, 5, 0]]))
    assert paid.tolist() == [[23.75, 13.75], [8.75, 13.75]]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [3, 5, 8])
def test_our_games_pass_their_own_check(name: str, n: int) -> None:
    assert check_game(make_game(name, {"group_size": n})) == []


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_no_play_pays_more_than_its_bounds_and_places_in_a_group_make_no_difference(
    name: str, data: st.DataObject
) -> None:
    game = make_game(name, {"group_size": data.draw(st.integers(2, 6)), "groups": data.draw(st.integers(1, 3))})
    seed = data.draw(st.integers(0, 2**32 - 1))
    decisions = random_decisions(game, 4, np.random.default_rng(seed))
    paid = np.asarray(game.payoffs(decisions), dtype=float)
    most = {"weakest-link": 10, "common-pool": 160, "common-pool-sanctions": 160, "collective-risk": 10, "o-ring": 100}
    assert (paid <= most.get(name, 10 + 10 * 2 + 10 * 1.5)).all()
    assert (paid >= -10).all()
    order = data.draw(st.permutations(range(game.group_size)))
    again = np.asarray(game.payoffs(decisions[:, :, order]), dtype=float)
    assert np.allclose(again, paid[:, :, order])


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"group_size": 1}, "group_size"),
        ({"group_size": "many"}, "group_size"),
        ({"most_effort": 0}, "most_effort"),
        ({"pool": 10}, "pool"),
    ],
)
def test_wrong_rules_are_named(rules: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_game("weakest-link", rules)
    with pytest.raises(UsageError, match=r"unknown game 'weakest'.*'weakest-link'"):
        make_game("weakest")


class Unfair(WeakestLink):
    """Pays the first player more."""

    name = "unfair"

    def payoffs(self, decisions: Array) -> Array:
        """Add one to the first seat."""
        paid = np.array(super().payoffs(decisions))
        paid[..., 0, 0] += 1
        return paid


class Matching(Game):
    """Has no symmetric equilibrium: whoever does what the fewest do wins."""

    name = "matching"
    title = "Minority"
    summary = "Be in the minority."
    formal = ("Be in the minority.",)
    prose = "Be in the minority."
    primary = "side"

    @property
    def quantities(self) -> Any:
        """A side."""
        return WeakestLink(most_effort=1).quantities[:1]

    @property
    def default_decision(self) -> tuple[int, ...]:
        """No side."""
        return (0,)

    def payoffs(self, decisions: Array) -> Array:
        """Pay those on the smaller side."""
        raise ZeroDivisionError


def test_a_wrong_game_is_told_what_is_wrong_with_it() -> None:
    assert check_game(Unfair()) == [
        "payoffs change when members of a group swap places",
        "payoffs change when groups swap places",
    ]
    [problem] = check_game(Matching())
    assert problem == "the primary quantity 'side' is unknown; the game has: effort"


class Mute(WeakestLink):
    """Says too little, and falls back on what is not allowed."""

    name = "mute"
    formal = ("Choose an effort up to $most_effort.",)
    prose = "Choose an effort up to $most; all get $multiplier times the least effort."

    @property
    def default_decision(self) -> tuple[int, ...]:
        """More than is allowed."""
        return (self.most_effort + 1,)


class Boundless(CommonPoolWithSanctions):
    """Pays for sanctions, and keeps with a probability above 1."""

    name = "boundless"

    def sanctioned(self, payoffs: Array, tokens: Array) -> Array:
        """Pay whoever sanctions."""
        return np.asarray(payoffs + tokens.sum(axis=-1))

    def keeps(self, history: Array) -> Fraction:
        """Return what is no probability."""
        return Fraction(2)


def test_a_game_that_tells_its_rules_badly_is_told_so() -> None:
    assert check_game(Mute()) == [
        "the default decision (11,) is not allowed",
        "the standard rules omit the value of 'multiplier' (2)",
        "the alternate rules can't be rendered: KeyError: 'most'",
    ]
    assert check_game(Boundless()) == [
        "the probability of keeping savings is 2, not between 0 and 1",
        "sanctions raise a payoff",
    ]


class Minority(CommonPool):
    """One gains by leaving any common decision."""

    name = "minority"

    def payoffs(self, decisions: Array) -> Array:
        """Pay whoever is alone."""
        taken = decisions[..., 0]
        same = (taken[..., None, None] == taken[..., None, None, :, :]).sum(axis=(-2, -1))
        return np.where(same == 1, 1, 0)


def test_a_game_without_a_symmetric_equilibrium_says_so() -> None:
    with pytest.raises(NoEquilibriumError, match="no symmetric equilibrium"):
        references(Minority(group_size=2))
    assert any("no symmetric equilibrium" in problem for problem in check_game(Minority(group_size=2)))


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_equilibria_are_those_that_every_single_deviation_leaves(data: st.DataObject) -> None:
    rules: dict[str, int] = {"group_size": data.draw(st.integers(2, 4)), "groups": data.draw(st.integers(1, 2))}
    name, limits = data.draw(
        st.sampled_from(
            [
                ("weakest-link", {"most_effort": 4, "multiplier": 3}),
                ("common-pool", {"pool": 30, "most_extraction": 5, "multiplier": 6}),
                ("collective-risk", {"rounds": 2, "allowance": 2, "target": 8}),
                ("o-ring", {"most_withdrawal": 4, "resource": 40}),
                ("public-goods", {"endowment": 3, "group_multiplier": 5}),
            ]
        )
    )
    game = make_game(name, {**rules, **{rule: data.draw(st.integers(1, most)) for rule, most in limits.items()}})
    by_hand = []
    for strategy in game.strategies():
        gains = []
        for other in game.strategies():
            profile = game.uniform(strategy)
            profile[0, 0] = [Fraction(value) for value in other]
            gains.append(game.expected(profile)[0, 0])
        if game.expected(game.uniform(strategy))[0, 0] >= max(gains):
            by_hand.append(strategy)
    assert equilibria(game) == by_hand


@settings(max_examples=25, deadline=None)
@given(
    group_size=st.integers(2, 4),
    groups=st.integers(1, 2),
    pool=st.integers(1, 40),
    multiplier=st.integers(1, 9),
    rounds=st.integers(1, 3),
    chance=st.fractions(0, 1, max_denominator=4),
)
def test_the_best_of_all_sums_is_among_the_candidates(
    group_size: int, groups: int, pool: int, multiplier: int, rounds: int, chance: Fraction
) -> None:
    sizes = {"group_size": group_size, "groups": groups}
    common = CommonPool(**sizes, pool=pool, multiplier=multiplier, most_extraction=4)
    risk = CollectiveRisk(**sizes, rounds=rounds, allowance=3, target=pool, loss_probability=chance)
    for game, most in ((common, 4), (risk, 3 * rounds)):
        every = (
            np.array([Fraction(one) for one in balanced(total, game.players)], dtype=object).reshape(groups, -1, 1)
            for total in range(most * game.players + 1)
        )
        best, found = (max(game.expected(one).sum() for one in some) for some in (every, game.candidates()))
        assert found == best


def test_the_candidates_of_large_groups_are_few() -> None:
    for name in ("common-pool", "collective-risk"):
        assert len(list(make_game(name, {"group_size": 100, "groups": 20}).candidates())) <= 2
