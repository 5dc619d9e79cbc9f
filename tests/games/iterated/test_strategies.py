from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.games.iterated.match import Action, Match, Payoffs, Round, turned
from labmates.games.iterated.strategies import IN_PRISONERS_DILEMMA, STRATEGIES, extortion, generosity, move_of

PAYOFFS = Payoffs()
ROUND: st.SearchStrategy[Round] = st.tuples(st.sampled_from(["C", "D"]), st.sampled_from(["C", "D"]))
GAMES = st.tuples(*[st.integers(-50, 50)] * 4).map(lambda four: Payoffs(*sorted(four, reverse=True)))


def moves(name: str, theirs: str) -> str:
    """Return what a strategy without chance does against these moves."""
    rounds: list[Round] = []
    for other in theirs:
        own = move_of(STRATEGIES[name], rounds, PAYOFFS, 0.5)
        rounds.append((own, "C" if other == "C" else "D"))
    return "".join(own for own, _ in rounds)


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("cooperate", "DDDD", "CCCC"),
        ("defect", "CCCC", "DDDD"),
        ("tit-for-tat", "DCDC", "CDCD"),
        ("suspicious-tit-for-tat", "CCDC", "DCCD"),
        ("tit-for-two-tats", "DCDDDC", "CCCCDD"),
        ("grim", "CCDCCC", "CCCDDD"),
        ("win-stay-lose-shift", "CDDCC", "CCDCC"),
        ("alternator", "DDDDD", "CDCDC"),
    ],
)
def test_strategies_without_chance_move_as_their_sources_say(name: str, theirs: str, ours: str) -> None:
    assert moves(name, theirs) == ours


def test_a_dozen_strategies_each_tell_their_source() -> None:
    assert len(STRATEGIES) == 12
    assert all(rule.__doc__ for rule in STRATEGIES.values())


@given(st.sampled_from(sorted(STRATEGIES)), st.lists(ROUND, max_size=8), GAMES)
def test_every_strategy_returns_a_probability_whatever_the_game(name: str, rounds: list[Round], game: Payoffs) -> None:
    try:
        kind = game.game
    except UsageError:
        return
    if name in IN_PRISONERS_DILEMMA and kind != "prisoner's dilemma":
        return
    assert 0 <= STRATEGIES[name](rounds, game) <= 1


def test_the_generous_one_lets_a_third_of_defections_pass_in_the_usual_game() -> None:
    assert generosity(Payoffs(5, 3, 1, 0)) == pytest.approx(1 / 3)


def test_the_extortioner_gets_twice_the_surplus_of_whoever_always_cooperates() -> None:
    for game in (PAYOFFS, Payoffs(5, 3, 1, 0), Payoffs(12, 7, 1, -3)):
        # Against an opponent who cooperates always, the states are CC and DC.
        after = extortion(game)
        cooperating = after["D", "C"] / (1 - after["C", "C"] + after["D", "C"])
        own = cooperating * game.reward + (1 - cooperating) * game.temptation
        other = cooperating * game.reward + (1 - cooperating) * game.sucker
        assert own - game.punishment == pytest.approx(2 * (other - game.punishment))


@pytest.mark.parametrize(
    ("payoffs", "wrong"),
    [
        (Payoffs(5, 3, 3, 0), "reward > punishment"),
        (Payoffs(1, 2, 0, 2), "reward > sucker"),
        (Payoffs(9, 3, 0, -1), "2 × reward"),
        (Payoffs(3, 3, 0, 0), "temptation > reward or punishment > sucker"),
    ],
)
def test_a_game_that_is_no_iterated_dilemma_is_refused(payoffs: Payoffs, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        _ = payoffs.game


@pytest.mark.parametrize(
    ("payoffs", "game", "points"),
    [
        (Payoffs(), "prisoner's dilemma", (-1, 5)),
        (Payoffs(4, 3, 0, 1), "chicken", (0, 4)),
        (Payoffs(5, 3, 0, 0), "chicken", (0, 5)),
        (Payoffs(3, 4, 2, 0), "stag hunt", (0, 4)),
        (Payoffs(3, 3), "stag hunt", (-1, 3)),
    ],
)
def test_a_dilemma_has_its_name_and_its_range(payoffs: Payoffs, game: str, points: tuple[int, int]) -> None:
    assert (payoffs.game, payoffs.range) == (game, points)


def test_the_papers_payoffs_are_the_default_and_its_sample_prompts_are_possible() -> None:
    pairs: list[tuple[Action, Action]] = [("C", "C"), ("C", "D"), ("D", "C"), ("D", "D")]
    assert [PAYOFFS.of(*pair) for pair in pairs] == [3, -1, 5, 0]
    assert PAYOFFS.game == Payoffs(5, 3, 1, 0).game == "prisoner's dilemma"


@given(st.lists(ROUND, max_size=20))
def test_a_match_is_seen_from_both_sides(rounds: list[Round]) -> None:
    match = Match(1, ("a", "b"), ("A", "B"), tuple(rounds), "length")
    assert match.seen_by("a") == tuple(rounds)
    assert match.seen_by("b") == turned(rounds)
    assert turned(match.seen_by("b")) == match.seen_by("a")
    assert match.opponent("b") == "a"
    both = PAYOFFS.total(match.seen_by("a")) + PAYOFFS.total(match.seen_by("b"))
    assert both == sum(6 if pair == ("C", "C") else 0 if pair == ("D", "D") else 4 for pair in rounds)
