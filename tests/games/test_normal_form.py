"""Games in normal form: the dilemmas' payoffs, equilibria, payoff tables of one's own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.games.dilemmas import DILEMMAS, get_dilemma
from labmates.games.normal_form import eliminations, find_dilemma, prisoners_payoffs
from labmates.games.payoff_table import PayoffTable, load_table, read_table

TABLE = """
name: chicken
actions: [swerve, straight]
payoffs:
  swerve swerve: [3, 3]
  swerve, straight: [2, 4]
  straight swerve: [4, 2]
  straight straight: [0, 0]
"""


def test_public_goods_grow_by_half_and_are_shared() -> None:
    game = get_dilemma("public-goods").game()
    for profile in game.profiles():
        share = Fraction(3, 2) * sum(action == 0 for action in profile) / 3
        assert list(game.payoffs[profile]) == [share + (action == 1) for action in profile]


def test_travellers_get_the_lower_claim_with_a_bonus_and_a_malus() -> None:
    game = get_dilemma("travellers").game()
    for one, other in game.profiles():
        low = min(one, other) + 2
        bonus = 2 * (one < other) - 2 * (one > other)
        assert list(game.payoffs[one, other]) == [low + bonus, low - bonus]


@pytest.mark.parametrize(
    ("name", "cooperate", "defect", "symmetric"),
    [
        ("prisoners", [2, 2], [1, 1], True),
        ("public-goods", [1.5, 1.5, 1.5], [1, 1, 1], True),
        ("travellers", [5, 5], [2, 2], True),
        ("trust", [10, 10], [4, 4], False),
        ("stag-hunt", [5, 5], [3, 3], True),
    ],
)
def test_each_dilemma_has_a_bad_equilibrium_and_a_play_that_is_better_for_all(
    name: str, cooperate: list[float], defect: list[float], symmetric: bool
) -> None:
    game = get_dilemma(name).game()
    found = find_dilemma(game)
    assert found is not None
    assert (found.cooperate, found.defect) == (game.cooperate, game.defect)
    assert game.table[found.cooperate].tolist() == cooperate
    assert game.table[found.defect].tolist() == defect
    assert game.is_nash(found.defect)
    assert game.is_nash(found.cooperate) == (name == "stag-hunt")
    assert game.is_symmetric == symmetric


def test_matching_pennies_is_a_control_without_a_dilemma() -> None:
    game = get_dilemma("matching-pennies").game()
    assert find_dilemma(game) is None
    assert not any(game.is_nash(profile) for profile in game.profiles())
    assert (game.payoffs.sum(axis=-1) == 0).all()


def test_a_prisoners_dilemma_has_its_four_payoffs() -> None:
    assert prisoners_payoffs(get_dilemma("prisoners").game()) == (3, 2, 1, 0)
    for name in ("public-goods", "travellers", "trust", "stag-hunt", "matching-pennies"):
        assert prisoners_payoffs(get_dilemma(name).game()) is None


def test_the_game_is_told_from_where_a_player_sits() -> None:
    trust = get_dilemma("trust").game()
    second = trust.seen_by(1)
    assert second.table[0, 1].tolist() == [2, 6]
    assert trust.table[1, 0].tolist() == [6, 2]
    assert second.seen_by(1).table.tolist() == trust.table.tolist()


def test_defection_is_dominant_where_the_paper_says_so() -> None:
    assert all(get_dilemma("prisoners").game().is_weakly_dominant(player, 1) for player in range(2))
    assert all(get_dilemma("public-goods").game().is_weakly_dominant(player, 1) for player in range(3))
    trust = get_dilemma("trust").game()
    assert not trust.is_weakly_dominant(0, 1)
    assert trust.is_weakly_dominant(1, 1)


@given(st.sampled_from(["prisoners", "public-goods", "travellers", "trust"]), st.integers(0, 2**31))
def test_expected_payoffs_are_the_mean_over_all_draws(name: str, seed: int) -> None:
    game = get_dilemma(name).game()
    rng = np.random.default_rng(seed)
    mixes = [rng.dirichlet(np.ones(len(own))).tolist() for own in game.labels]
    by_hand = np.zeros(game.players)
    for profile in game.profiles():
        chance = np.prod([mix[action] for mix, action in zip(mixes, profile, strict=True)])
        by_hand += chance * game.table[profile]
    assert game.expected(mixes).tolist() == pytest.approx(by_hand.tolist(), abs=1e-12)


def test_a_payoff_table_of_ones_own_is_a_game(tmp_path: Path) -> None:
    path = tmp_path / "chicken.yaml"
    path.write_text(TABLE)
    table = load_table(path)
    assert table.game().table[0, 1].tolist() == [2, 4]
    assert table.game().labels == (("A0", "A1"), ("A0", "A1"))
    assert PayoffTable.model_validate_json(table.model_dump_json()) == table


@pytest.mark.parametrize(
    ("text", "payoffs"),
    [
        (
            "players: 4, actions: [give, keep], formula: {kind: pool, factor: 2, kept: 3}",
            {(0, 1, 1, 1): [0.5, 3.5, 3.5, 3.5]},
        ),
        ('players: 2, actions: ["10", "20"], formula: {kind: claims, bonus: 5}', {(0, 1): [15, 5], (1, 1): [20, 20]}),
    ],
)
def test_a_formula_gives_the_payoffs_of_a_table(text: str, payoffs: dict[tuple[int, ...], list[float]]) -> None:
    table = read_table(f"{{name: mine, {text}}}", "mine.yaml")
    for profile, numbers in payoffs.items():
        assert table.game().table[profile].tolist() == numbers
    assert PayoffTable.model_validate_json(table.model_dump_json()) == table


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("actions: [a, b], formula: {kind: lottery}", "pool"),
        ("actions: [a, b, c], formula: {kind: pool, factor: 2}", "a pool two actions"),
        ("actions: [a, b], formula: {kind: pool, factor: much}", "must be a number"),
        ("actions: [a, b, c], formula: {kind: claims, bonus: 2}", "numbers as actions"),
        ("actions: [a, b], words: [give], payoffs: {}", "1 words are given for 2 actions"),
        ("actions: [a, b], formula: {kind: pool, factor: 2}, payoffs: {a a: [1, 1]}", "payoffs and formula disagree"),
    ],
)
def test_a_wrong_formula_is_told(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_table(f"{{name: mine, {text}}}", "mine.yaml")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("swerve swerve: [3, 3]", "swerve swerve: [3]"), "'swerve swerve' needs 2 payoffs"),
        (("  straight straight: [0, 0]\n", ""), "payoffs are missing for: straight straight"),
        (("straight straight:", "straight stop:"), "payoffs are missing for"),
        (("swerve, straight: [2, 4]", "swerve, straight: [2, much]"), "must be a number"),
        (("swerve, straight: [2, 4]", "swerve, straight: [2, 1e400]"), "must be a number"),
        (("swerve, straight: [2, 4]", "swerve, straight: [2, 1e999999999]"), "must be a number"),
        (("straight swerve: [4, 2]", "swerve swerve: [9, 9]"), "yaml:7: payoffs.swerve swerve: repeated key .* line 5"),
        (("name: chicken", "name: chicken\nname: duck"), "name: repeated key .first in line 2"),
        (("name: chicken", "name: [chicken"), ":3: invalid YAML"),
        (("[swerve, straight]", "[swerve]"), "two players and two actions"),
        (("[swerve, straight]", "[swerve, swerve]"), "is repeated"),
        (("name: chicken", "name: Chicken Run"), "name"),
        (("name: chicken", "name: chicken\nplayers: 3"), "payoffs are missing"),
        (("name: chicken", "name: chicken\ncooperate: swerve swerve"), "both 'cooperate' and 'defect'"),
        (("name: chicken", "name: chicken\ncolour: red"), "colour"),
        (("[swerve, straight]", "[true, no]"), "in quotes"),
        ((TABLE, "- 3"), "the payoff table must be a mapping"),
    ],
)
def test_a_wrong_payoff_table_is_told(change: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_table(TABLE.replace(*change), "chicken.yaml")


@given(st.fractions(-(10**12), 10**12, max_denominator=10**100))
def test_an_exact_payoff_is_kept_to_the_last_digit(payoff: Fraction) -> None:
    table = read_table(TABLE.replace("[0, 0]", f"[0, {payoff}]"), "chicken.yaml")
    assert PayoffTable.model_validate_json(table.model_dump_json()) == table
    assert table.game().payoffs[1, 1, 1] == payoff


def test_a_payoff_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        load_table(tmp_path / "none.yaml")


def test_a_dilemma_that_is_no_table_is_told() -> None:
    entries: Any = {"broken": 3}
    for name, entry in entries.items():
        DILEMMAS.register(name, entry)
    try:
        with pytest.raises(UsageError, match="must be a"):
            get_dilemma("broken")
    finally:
        DILEMMAS._loaded.pop("broken")
    with pytest.raises(UsageError, match="Did you mean 'prisoners'"):
        get_dilemma("prisoner")


@pytest.mark.parametrize(
    ("name", "eliminated"),
    [
        ("prisoners", [(1, 0, 0, True), (1, 1, 0, True)]),
        ("trust", [(1, 1, 0, True), (2, 0, 0, True)]),
        ("stag-hunt", []),
    ],
)
def test_dominated_actions_are_eliminated_round_by_round(
    name: str, eliminated: list[tuple[int, int, int, bool]]
) -> None:
    gone = eliminations(get_dilemma(name).game())
    assert [(one.round, one.player, one.action, one.strictly) for one in gone] == eliminated


def test_travellers_undercut_each_other_step_by_step() -> None:
    """Each price is weakly dominated by the next lower one once higher ones are gone (CoopEval, section 2)."""
    table = get_dilemma("travellers")
    own = [one for one in eliminations(table.game()) if one.player == 0]
    assert [(table.actions[0][one.action], table.actions[0][one.by]) for one in own] == [
        ("5", "4"),
        ("4", "3"),
        ("3", "2"),
    ]
    assert [one.strictly for one in own] == [False, False, True]
