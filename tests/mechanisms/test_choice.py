"""The choice among all proposals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from labmates.games.dilemmas import get_dilemma
from labmates.mechanisms.base import Mechanism, Negotiated, Question
from labmates.mechanisms.contract import Contract
from labmates.mechanisms.mediation import Mediation
from labmates.mechanisms.wording import Answer
from labmates.mechanisms.wording_paper import PaperWording
from labmates_author.mechanisms import play_with

PRISONERS = get_dilemma("prisoners").game()
DESIGNS: Mapping[type[Mechanism], list[Answer]] = {
    Contract: [{"A0": 5, "A1": 0}, {"A0": 6, "A1": 0}],
    Mediation: [{"1": "A1", "2": "A0"}, {"1": "A0", "2": "A0"}],
}


def respond(**answers: Any) -> Any:
    def responded(question: Question) -> Answer:
        answer = answers.get(question.stage, question.sheet.fallback)
        return dict(answer(question) if callable(answer) else answer)

    return responded


@pytest.mark.parametrize("kind", [Contract, Mediation])
@pytest.mark.parametrize(("picks", "winners"), [(("P2", "P2"), (1,)), (("P1", "P2"), ()), (("P1", "none"), ())])
def test_of_all_proposals_the_one_holds_that_all_choose(
    kind: type[Contract | Mediation], picks: tuple[str, str], winners: tuple[int, ...]
) -> None:
    _, log, asked = play_with(
        kind(selection="choice"),
        PRISONERS,
        respond(
            propose=lambda question: DESIGNS[kind][question.seat],
            vote=lambda question: {"choice": picks[question.seat]},
            choose=lambda question: {one.name: 100 * (one.name == "A1") for one in question.sheet.blanks},
        ),
    )
    [agreement] = [one for one in log if isinstance(one, Negotiated)]
    assert agreement.winners == winners
    assert agreement.signed == (((True, True),) if winners and kind is Contract else ())
    assert "sign" not in {question.stage for question in asked}
    assert ("did not all choose the same" in asked[-1].told[-1]) == (not winners)
    assert asked[-1].facts["in_force"] == bool(winners)


def test_the_choice_among_proposals_is_told_in_both_wordings() -> None:
    for mechanism in (Contract(selection="choice"), Mediation(selection="choice")):
        ours, paper = mechanism.rules(PRISONERS), PaperWording().rules(mechanism, PRISONERS)
        assert "then all choose, at the same time, one of the proposals or none" in ours
        assert "After the vote" not in ours
        assert "a proposal is adopted if all choose it." in paper
        assert "approval" not in ours + paper
