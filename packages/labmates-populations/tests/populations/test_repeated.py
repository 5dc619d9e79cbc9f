"""The repeated games' exact numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates_populations.repeated import REPEATED, CommonPool, make_repeated

BINARY = [name for name, game in REPEATED.items() if game.is_binary]


def row(text: str) -> np.ndarray:
    return np.array([[one == "C" for one in text]])


@pytest.mark.parametrize(
    ("name", "rules", "moves", "payoffs"),
    [
        ("public-goods", {}, "CCDD", [1, 1, 2, 2]),
        ("public-goods", {}, "CCCC", [2, 2, 2, 2]),
        ("public-goods", {}, "DDDD", [1, 1, 1, 1]),
        ("public-goods", {"k": 1.5}, "CDDD", [0.375, 1.375, 1.375, 1.375]),
        ("collective-risk", {}, "CCDD", [2, 2, 3, 3]),
        ("collective-risk", {}, "CDDD", [0, 1, 1, 1]),
        ("collective-risk", {"m": 3, "k": 5}, "CCCD", [5, 5, 5, 6]),
        ("common-pool", {}, "CCDD", [2, 2, 4, 4]),
        ("common-pool", {"capacity": 8}, "DDDD", [2, 2, 2, 2]),
    ],
)
def test_payoffs_of_a_round(name: str, rules: dict[str, float], moves: str, payoffs: list[float]) -> None:
    game = make_repeated(name, 4, 20, rules)
    assert game.payoffs(row(moves), game.start(1))[0].tolist() == payoffs


@pytest.mark.parametrize(
    ("name", "players", "low", "high"),
    [
        ("public-goods", 4, 1, 2),
        ("collective-risk", 4, 0.75, 2.5),
        ("collective-risk", 2, 0.5, 2),
        ("collective-risk", 64, 33 / 64, 2.5),
        ("common-pool", 4, 0.2, 2.1),
        ("common-pool", 64, 0.2, 2.1),
    ],
)
def test_bounds_of_the_welfare(name: str, players: int, low: float, high: float) -> None:
    assert make_repeated(name, players).bounds() == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("k", [0.1, 0.25, 0.5, 1, 3])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_bounds_hold_whatever_the_benefit(k: float, m: int) -> None:
    game = make_repeated("collective-risk", 4, 1, {"k": k, "m": m})
    welfare = [game.play(row("C" * count + "D" * (4 - count))[None]).mean() for count in range(5)]
    assert game.bounds() == pytest.approx((min(welfare), max(welfare)), abs=1e-12)


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
def test_no_play_is_outside_of_the_bounds_which_are_reached(name: str, data: st.DataObject) -> None:
    players = data.draw(st.integers(3, 6))
    rounds = data.draw(st.integers(1, 6))
    game = make_repeated(name, players, rounds)
    moves = data.draw(st.lists(st.booleans(), min_size=players * rounds, max_size=players * rounds))
    low, high = game.bounds()
    welfare = game.play(np.array(moves).reshape(1, rounds, players)).mean()
    # In the common pool, "least" is what all get who empty it at once; who leaves some in the last round loses more.
    assert (low if name != "common-pool" else 0) - 1e-9 <= welfare <= high + 1e-9
    for continuation in (1.0, 0.7):
        game = make_repeated(name, players, rounds, {"continuation": continuation})
        low, high = game.bounds()
        extremes = _extremes(name, players, rounds)
        reached = [game.counted(np.broadcast_to(play, (1, rounds, players))).mean() for play in extremes]
        assert reached == pytest.approx([low, high])
    assert game.efficiency(high) == 1
    assert game.efficiency(low) == (0 if low < high else 1)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    ("players", "rounds", "rules"), [(2, 1, {}), (3, 5, {}), (4, 20, {"continuation": 0.8}), (5, 7, {"k": 2.5})]
)
def test_a_players_bounds_are_those_of_being_exploited_and_of_exploiting_others(
    name: str, players: int, rounds: int, rules: dict[str, float]
) -> None:
    if name == "public-goods" and players == 2:
        rules = {"k": 1.5}
    has_k = name in ("public-goods", "collective-risk")
    game = make_repeated(name, players, rounds, {key: rules[key] for key in rules if has_k or key != "k"})
    turns = np.arange(rounds)[None, :, None]
    first_defection = np.arange(rounds + 1)[:, None, None]
    first = np.arange(players) == 0
    exploiting = game.counted((turns < first_defection) | ~first)[:, :, 0].mean(axis=1)
    exploited = game.counted(np.broadcast_to(first, (1, rounds, players)))[0, :, 0].mean()
    assert game.individual_bounds() == pytest.approx((exploited, exploiting.max()), abs=1e-12)


def test_a_table_by_count_pays_what_the_game_pays_that_it_was_made_of() -> None:
    chance = np.random.default_rng(2)
    actions = chance.random((20, 6, 5)) < 0.5
    game = make_repeated("collective-risk", 5, 6, {"k": 3, "m": 3})
    cooperate = [3 * (count >= 3) for count in range(1, 6)]
    table = make_repeated("by-count", 5, 6, {"cooperate": cooperate, "defect": [1 + 3 * (n >= 3) for n in range(5)]})
    assert np.array_equal(table.play(actions), game.play(actions))
    assert table.individual_bounds() == game.individual_bounds()
    assert table.bounds()[1] == game.bounds()[1]
    with pytest.raises(UsageError, match="n_players must be 5, the number of payoffs in 'cooperate', not 4"):
        make_repeated("by-count", 4, 6, {"cooperate": cooperate})
    with pytest.raises(UsageError, match="finite numbers that differ"):
        make_repeated("by-count", 2, 6, {"cooperate": [1, 1], "defect": [1, 1]})


def test_rounds_count_by_the_probability_that_the_game_reaches_them() -> None:
    game = make_repeated("public-goods", 4, 6, {"continuation": 0.75})
    actions = np.random.default_rng(0).random((5, 6, 4)) < 0.5
    paid = game.play(actions)
    # All ends: after round t with probability 0.75**t * 0.25, after the last one with the rest.
    ends = [0.75**t * 0.25 for t in range(5)] + [0.75**5]
    total = sum(chance * paid[:, : end + 1].sum(axis=1) for end, chance in enumerate(ends))
    length = sum(chance * (end + 1) for end, chance in enumerate(ends))
    assert game.counted(actions).mean(axis=1) == pytest.approx(total / length)
    with pytest.raises(UsageError, match="continuation must be"):
        make_repeated("public-goods", 4, 6, {"continuation": 0})
    with pytest.raises(UsageError, match="noise must be"):
        make_repeated("public-goods", 4, 6, {"noise": 0.6})


def _extremes(name: str, players: int, rounds: int) -> list[np.ndarray]:
    seats, turns = np.arange(players), np.arange(rounds)[:, None]
    match name:
        case "public-goods" | "by-count":
            return [seats < 0, seats >= 0]
        case "collective-risk":
            threshold = max(2, players // 2)
            return [seats < threshold - 1, seats < threshold]
        case _:
            return [turns + seats < 0, (turns < rounds - 1) & (seats >= 0)]


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=12))
def test_the_stock_follows_its_formula_in_exact_numbers(moves: list[list[bool]]) -> None:
    game = CommonPool(4, len(moves))
    stock, expected = Fraction(16), []
    for played in moves:
        taken = [stock / 8 * (1 if one else 2) for one in played]
        expected.append([float(one) for one in taken])
        left = stock - sum(taken)
        stock = min(left + 2 * left * (1 - left / 16), Fraction(16))
    assert game.play(np.array([moves]))[0] == pytest.approx(np.array(expected))


def test_groups_that_are_played_together_do_not_matter_to_each_other() -> None:
    chance = np.random.default_rng(0)
    for name in BINARY:
        game = make_repeated(name, 5, 7)
        actions = chance.random((6, 7, 5)) < 0.5
        alone = np.concatenate([game.play(actions[i : i + 1]) for i in range(6)])
        assert np.array_equal(game.play(actions), alone)


@pytest.mark.parametrize(
    ("name", "players", "rounds", "rules", "said"),
    [
        ("public-good", 4, 20, {}, "Did you mean 'public-goods'"),
        ("public-goods", 2, 20, {}, "k must be more than 1 and less than the number of players"),
        ("public-goods", 4, 20, {"k": 4}, "k must be more than 1"),
        ("public-goods", 4, 20, {"k": float("nan")}, "k must be more than 1"),
        ("public-goods", 1, 20, {}, "n_players must be a whole number from 2"),
        ("public-goods", 4, 0, {}, "n_rounds must be a whole number from 1"),
        ("public-goods", 4, 20, {"m": 2}, "public-goods has no parameter 'm'"),
        ("collective-risk", 4, 20, {"m": 5}, "m must be a whole number from 2 to 4"),
        ("collective-risk", 4, 20, {"k": 0}, "k must be more than 0"),
        ("common-pool", 4, 20, {"capacity": 7}, "capacity must be a whole number from 8"),
    ],
)
def test_what_can_not_be_is_said(name: str, players: int, rounds: int, rules: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_repeated(name, players, rounds, rules)


@pytest.mark.parametrize(("players", "capacity"), [(13, 40), (11, 113), (64, 257)])
def test_a_stock_is_never_negative(players: int, capacity: int) -> None:
    game = make_repeated("common-pool", players, 50, {"capacity": capacity})
    stock = game.start(1)
    for _ in range(game.n_rounds):
        stock = game.next_stock(stock, game.payoffs(np.zeros((1, players), dtype=bool), stock))
        assert stock is not None
        assert stock[0] >= 0


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(-9, 9), min_size=n, max_size=n, unique=True)] * 2)
    ),
    st.integers(0, 2**20),
)
def test_a_game_of_two_named_actions_pays_as_one_of_cooperation(lists: tuple[list[int], ...], seed: int) -> None:
    cooperate, defect = lists
    players = len(cooperate)
    plain = make_repeated("by-count", players, 3, {"cooperate": cooperate, "defect": defect})
    table = [cooperate[::-1], defect[::-1]]  # by how many others cooperate, the most first
    named = make_repeated("by-action", players, 3, {"actions": ["c", "d"], "table": table})
    actions = np.random.default_rng(seed).random((4, 3, players)) < 0.5
    numbers = np.where(actions, 0, 1).astype(np.uint8)
    assert np.array_equal(named.play(numbers), plain.play(actions))
    assert named.bounds() == pytest.approx(plain.bounds())
    assert np.array_equal(named.cooperates(numbers), actions)
    others = named.others(numbers[:, 0], numbers[:, 0])
    assert np.array_equal(others[..., 0], plain.others(actions[:, 0], actions[:, 0]))
    assert (others.sum(axis=2) == players - 1).all()
