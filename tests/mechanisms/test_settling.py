"""Gifts and fines after play."""

from __future__ import annotations

from typing import ClassVar

import pytest

from labmates.games.dilemmas import get_dilemma
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Blank, Mechanism, Play, Played, Question, Seats, Sheet, Then
from labmates.mechanisms.contract import Contract
from labmates.mechanisms.play import before_settling, settled
from labmates.mechanisms.repetition import Repetition
from labmates.mechanisms.wording import Answer
from labmates_author.mechanisms import check_mechanism, play_with, untested

PRISONERS = get_dilemma("prisoners").game()


class Gifts(Mechanism):
    """A player may give points to the others; of each a part is lost."""

    name: ClassVar[str] = "gifts"
    title: ClassVar[str] = "Gifts"
    summary: ClassVar[str] = "Gifts after play."
    is_theorem: ClassVar[bool] = False
    lost: float = 0.0

    def rules(self, game: NormalForm) -> str:
        return "Gifts."

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        played = yield from before_settling(game, seats, then)
        players = len(seats.agents)
        sheet = Sheet((Blank("gift", range(3)),), {"gift": 0})
        answers = yield seats.ask("settle", ["How much?"] * players, [sheet] * players)
        gifts = [answer["gift"] for answer in answers]
        share = (1 - self.lost) / (players - 1)
        return settled(seats, played, [(sum(gifts) - own) * share - own for own in gifts])


class Burning(Gifts):
    burns: ClassVar[bool] = True


def cooperate_and_give(question: Question) -> Answer:
    if question.stage == "settle":
        return {"gift": 2 if question.seat == 0 else 0}
    own = PRISONERS.labels[question.seat][0]
    return {blank.name: 100 if blank.name == own else 0 for blank in question.sheet.blanks}


@pytest.mark.parametrize("around", [[], [Repetition(rounds=4)]], ids=["once", "after all rounds"])
def test_gifts_change_what_was_played_and_its_result_alike(around: list[Mechanism]) -> None:
    result, log, _ = play_with([Gifts(), *around], PRISONERS, cooperate_and_give)
    assert result.payoffs == pytest.approx((0, 4))
    played = [one for one in log if isinstance(one, Played)]
    assert len(played) == (4 if around else 1)
    assert sum(one.weight * one.payoffs[0] for one in played) == pytest.approx(0)
    assert sum(one.weight * one.expected[1] for one in played) == pytest.approx(4)


@pytest.mark.parametrize("order", [[Gifts()], [Gifts(), Repetition(rounds=3)], [Repetition(rounds=3), Gifts()]])
def test_gifts_pass_the_check_alone_and_with_rounds(order: list[Mechanism]) -> None:
    assert check_mechanism(order, {"prisoners": PRISONERS}) == []


def test_points_may_be_lost_only_where_the_mechanism_says_so() -> None:
    wasteful = {"lost": 1.0}
    assert check_mechanism(Burning(**wasteful), {"prisoners": PRISONERS}) == []
    [problem] = check_mechanism(Gifts(**wasteful), {"prisoners": PRISONERS})
    assert "points are created or lost" in problem
    [made] = check_mechanism(Burning(lost=-1.0), {"prisoners": PRISONERS})
    assert "points are created or lost" in made


def test_where_the_theorem_can_not_be_tested_is_said() -> None:
    pennies = get_dilemma("matching-pennies").game()
    games = {"prisoners": PRISONERS, "pennies": pennies}
    [line] = untested(Contract(), games)
    assert line.startswith("pennies: the theorem is not tested")
    assert untested(Gifts(), games) == []
