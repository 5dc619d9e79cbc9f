"""Mechanisms that leave a game's equilibria as they are."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.games.dilemmas import get_dilemma
from labmates.games.payoff_table import read_table
from labmates.mechanisms.base import Question
from labmates.mechanisms.correlation import best_correlated
from labmates.mechanisms.registry import make_mechanisms
from labmates.mechanisms.stackelberg import Stackelberg
from labmates.mechanisms.wording import Answer
from labmates_author.mechanisms import check_mechanism, play_with

PRISONERS = get_dilemma("prisoners").game()
CHICKEN = read_table(
    "{name: chicken, players: 2, actions: [swerve, straight], payoffs: {swerve swerve: [6, 6], "
    "swerve straight: [2, 7], straight swerve: [7, 2], straight straight: [0, 0]}}",
    "here",
).game()


def respond(**answers: Any) -> Any:
    def responded(question: Question) -> Answer:
        answer = answers.get(question.stage, question.sheet.fallback)
        return dict(answer(question) if callable(answer) else answer)

    return responded


@pytest.mark.parametrize("name", ["none", "cheap-talk", "stackelberg", "correlation", "gifting"])
def test_no_dilemma_is_resolved_and_a_stag_hunt_needs_no_resolving(name: str) -> None:
    [mechanism] = make_mechanisms(name)
    for dilemma in ("prisoners", "public-goods", "travellers", "trust"):
        assert mechanism.sustains(get_dilemma(dilemma).game()) is False
    assert mechanism.sustains(get_dilemma("stag-hunt").game()) is True
    assert mechanism.sustains(get_dilemma("matching-pennies").game()) is False


def test_where_committing_to_defection_pays_more_a_leader_does_not_cooperate() -> None:
    """Coordination on two plays: both cooperative for the followers, the leader prefers the second."""
    table = (
        "{name: lead, players: 2, actions: [a, b], cooperate: a a, defect: b b, "
        "payoffs: {a a: [3, 3], a b: [0, 0], b a: [0, 0], b b: [4, 1]}}"
    )
    game = read_table(table, "here").game()
    assert Stackelberg(leader=1).sustains(game) is False
    assert Stackelberg(leader=2).sustains(game) is True


def test_announcements_are_read_by_all_and_bind_nobody() -> None:
    [talk] = make_mechanisms("cheap-talk")

    def announce(question: Question) -> Answer:
        return {"announcement": "A0" if question.seat else "nothing"}

    result, _, asked = play_with(talk, PRISONERS, respond(announce=announce, choose={"A0": 0, "A1": 100}))
    assert result.deeds == ("A1", "A1")
    told = [question.told[-1].splitlines()[1:] for question in asked if question.stage == "choose"]
    assert told == [["- you: nothing", "- player 2: A0"], ["- player 1: nothing", "- you: A0"]]


@pytest.mark.parametrize("leader", [1, 2, 3])
def test_the_leader_chooses_first_and_the_others_read_its_distribution(leader: int) -> None:
    game = get_dilemma("public-goods").game()
    _, _, asked = play_with(Stackelberg(leader=leader), game, respond(choose={"A0": 70, "A1": 30}))
    assert [question.seat + 1 for question in asked] == [leader, *({1, 2, 3} - {leader})]
    assert asked[0].told == ()
    assert all(question.told[-1].endswith("A0 with 70 %, A1 with 30 %") for question in asked[1:])
    assert all(question.facts["committed"] == {"A0": 70, "A1": 30} for question in asked[1:])


def test_nobody_leads_a_game_without_the_player() -> None:
    with pytest.raises(UsageError, match="player 3 can't lead a game of 2 players"):
        Stackelberg(leader=3).check(PRISONERS)


def test_gifts_go_from_who_gives_to_whom_it_names() -> None:
    [gifting] = make_mechanisms("gifting")

    def give(question: Question) -> Answer:
        return {blank.name: 3 if blank.name == "player 1" else 0 for blank in question.sheet.blanks}

    game = get_dilemma("public-goods").game()
    result, _, _ = play_with(gifting, game, respond(choose={"A0": 0, "A1": 100}, settle=give))
    assert result.payoffs == (1 + 6, 1 - 3, 1 - 3)


def test_the_device_recommends_by_the_best_correlated_equilibrium() -> None:
    """Of chicken with 6, 7, 2, 0: half on both swerving, a quarter on each of the pure equilibria (Aumann 1974)."""
    assert best_correlated(CHICKEN) == pytest.approx([0.5, 0.25, 0.25, 0])
    assert best_correlated(PRISONERS) == pytest.approx([0, 0, 0, 1])
    [device] = make_mechanisms("correlation")
    drawn = set()
    for seed in range(20):
        _, _, asked = play_with(device, CHICKEN, respond(), seed=seed)
        recommended = tuple(question.facts["recommended"] for question in asked)
        assert [question.told[-1].splitlines()[-1] for question in asked] == list(recommended)
        drawn.add(recommended)
    assert drawn == {("A0", "A0"), ("A0", "A1"), ("A1", "A0")}


@pytest.mark.parametrize("game", ["prisoners", "trust"])
@pytest.mark.parametrize("name", ["cheap-talk", "stackelberg", "correlation", "gifting"])
def test_controls_are_as_they_should_be(name: str, game: str) -> None:
    [mechanism] = make_mechanisms(name)
    assert check_mechanism(mechanism, {game: get_dilemma(game).game()}) == []


@pytest.mark.parametrize(
    "name", ["cheap-talk+contract", "mediation+stackelberg", "reputation+stackelberg", "repetition+gifting"]
)
def test_controls_around_other_mechanisms_are_as_they_should_be(name: str) -> None:
    assert check_mechanism(make_mechanisms(name), {"prisoners": PRISONERS}) == []
