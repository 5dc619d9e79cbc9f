from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.games.iterated.questions import QUESTIONS, forgives, marked, plays_tit_for_tat, questions

PAYOFFS = Payoffs()
ROUND: st.SearchStrategy[Round] = st.tuples(st.sampled_from(["C", "D"]), st.sampled_from(["C", "D"]))


def rounds_of(own: str, other: str) -> list[Round]:
    return [(_action(one), _action(two)) for one, two in zip(own, other, strict=True)]


def _action(letter: str) -> Action:
    return "C" if letter == "C" else "D"


def truths(rounds: Sequence[Round], seed: int = 0) -> dict[str, object]:
    return {question.id: question.truth for question in questions(rounds, PAYOFFS, seed=seed)}


@given(st.lists(ROUND, min_size=1, max_size=20), st.integers(0, 100))
def test_every_question_is_asked_once_and_its_truth_is_of_the_right_kind(rounds: list[Round], seed: int) -> None:
    asked = questions(rounds, PAYOFFS, seed=seed)
    assert tuple(question.id for question in asked) == tuple(QUESTIONS)
    for question in asked:
        kind = type(question.truth)
        assert kind is {"number": int, "actions": list}.get(question.kind, str)


def test_truths_of_a_match_agree_with_counting_by_hand() -> None:
    rounds = rounds_of("CCDD", "CDCC")
    found = truths(rounds)
    assert (found["lowest"], found["highest"]) == (-1, 5)
    assert found["actions"] == ["action_a", "action_b"]
    assert found["round"] == 4
    for seed in range(40):
        texts = {question.id: question for question in questions(rounds, PAYOFFS, seed=seed)}
        you = [3, -1, 5, 5], "aabb"
        they = [3, 5, -1, -1], "abaa"
        points, letters = they if "your opponent" in texts["points"].text else you
        number = int(texts["points"].text.rstrip("?").rsplit(" ", 1)[1])
        assert texts["points"].truth == points[number - 1]
        points, letters = they if "your opponent" in texts["action"].text else you
        number = int(texts["action"].text.rstrip("?").rsplit(" ", 1)[1])
        assert texts["action"].truth == f"action_{letters[number - 1]}"
        points, letters = they if "your opponent" in texts["count"].text else you
        wanted = "a" if "action_a" in texts["count"].text else "b"
        assert texts["count"].truth == letters.count(wanted)
        points, letters = they if "your opponent" in texts["total"].text else you
        assert texts["total"].truth == sum(points)


@given(st.lists(ROUND, min_size=1, max_size=20), st.integers(0, 1000))
def test_truths_are_what_the_texts_of_questions_ask_for(rounds: list[Round], seed: int) -> None:
    table = {"aa": 3, "ab": -1, "ba": 5, "bb": 0}
    letters = {"C": "a", "D": "b"}
    you = "".join(letters[own] for own, _ in rounds)
    opponent = "".join(letters[other] for _, other in rounds)
    for question in questions(rounds, PAYOFFS, seed=seed):
        text = question.text
        first, second = (opponent, you) if "did your opponent" in text else (you, opponent)
        points = [table[pair] for pair in map("".join, zip(first, second, strict=True))]
        number = re.search(r"in round (\d+)", text)
        named = re.findall(r"action_([ab])", text)
        answered = [after for before, after in zip(you, opponent[1:], strict=False) if before == "b"]
        copied = sum(move == asked for move, asked in zip(opponent, f"a{you}", strict=False))
        expected: dict[str, object] = {
            "lowest": min(table.values()),
            "highest": max(table.values()),
            "actions": ["action_a", "action_b"],
            "payoff": table["".join(named)] if question.id == "payoff" else None,
            "round": len(you),
            "action": f"action_{first[int(number[1]) - 1]}" if number else None,
            "points": points[int(number[1]) - 1] if number else None,
            "count": first.count(named[0]) if named else None,
            "total": sum(points),
            "tit_for_tat": "yes" if 5 * copied >= 4 * len(you) else "no",
            "forgiving": ("yes" if 2 * answered.count("a") >= len(answered) else "no") if answered else "not decidable",
        }
        assert question.truth == expected[question.id], text


@pytest.mark.parametrize(
    ("own", "other", "follows"),
    [("CCDC", "CDCC", True), ("C", "D", True), ("D", "D", False), ("CCCCC", "CCCDC", True), ("CCCC", "CCDC", False)],
)
def test_tit_for_tat_is_told_by_four_rounds_in_five(own: str, other: str, follows: bool) -> None:
    assert plays_tit_for_tat(rounds_of(own, other), PAYOFFS) is follows


@pytest.mark.parametrize(
    ("own", "other", "forgiving"),
    [("CCC", "CCC", None), ("CCC", "CCD", None), ("CCC", "DDC", True), ("CCD", "DDC", True), ("CDD", "DDC", False)],
)
def test_forgiving_is_told_by_half_of_the_defections_that_could_be_answered(
    own: str, other: str, forgiving: bool | None
) -> None:
    assert forgives(rounds_of(own, other)) is forgiving


def test_the_questions_on_the_opponent_are_about_the_opponent() -> None:
    found = truths(rounds_of("DDDD", "CDDD"))
    assert found["tit_for_tat"] == "yes"
    assert found["forgiving"] == "no"
    assert truths(rounds_of("CCCC", "DDDD"))["forgiving"] == "not decidable"


def test_answers_are_marked_one_by_one_and_missing_ones_are_neither_right_nor_wrong() -> None:
    asked = questions(rounds_of("CD", "CC"), PAYOFFS, seed=1)
    right = {question.id: question.truth for question in asked} | {"actions": ["action_b", "action_a"]}
    assert {one["right"] for one in marked(asked, right).values()} == {True}
    wrong = marked(asked, {**right, "lowest": 7})
    assert [name for name, one in wrong.items() if not one["right"]] == ["lowest"]
    assert wrong["lowest"] == {"answer": 7, "truth": -1, "right": False}
    nothing = marked(asked, None)
    assert {one["right"] for one in nothing.values()} == {None}
