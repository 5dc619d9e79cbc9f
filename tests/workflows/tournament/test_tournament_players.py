from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from labmates.errors import MissingExtraError
from labmates.games.iterated import library
from labmates.games.iterated.match import LABELS, Payoffs, Round
from labmates.games.iterated.questions import questions
from labmates.games.iterated.strategies import STRATEGIES
from labmates.models.scripted import BASELINES, describe
from labmates.models.scripted.base import Heard, ScriptedModel
from labmates.workflows.tournament.briefs import Briefing, View
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.players import read
from tests.support.orders import check_rendered

FIELDS = {"reward", "punishment", "sucker", "temptation", "actions", "action", "who", "round"}
PAYOFFS = Payoffs(9, 6, 2, -3)
CONDITION = TournamentCondition(
    structure="sa", model="scripted:grim", rounds=15, temptation=9, reward=6, punishment=2, sucker=-3
)
BRIEFING = Briefing(CONDITION)
ROUND: st.SearchStrategy[Round] = st.tuples(st.sampled_from(["C", "D"]), st.sampled_from(["C", "D"]))


def view(rounds: Sequence[Round]) -> View:
    return View("P1", (), tuple(rounds), "P4" if rounds else "", 30, "Round 1: you action_b, opponent action_b; no")


def answer(name: str, messages: Sequence[BaseMessage], seed: int = 0) -> str:
    model = BASELINES.get(name)()
    assert isinstance(model, ScriptedModel)
    return str(model.compose(Heard(tuple(messages), seed=seed)).content)


@given(st.lists(ROUND, max_size=14))
def test_players_read_the_rules_and_the_match_from_the_facts(rounds: list[Round]) -> None:
    said = read(Heard(tuple(BRIEFING.move(View("P1", (), tuple(rounds), "P4" if rounds else "", 30, "")))))
    assert (said.step, said.payoffs, said.length, said.rounds) == ("move", PAYOFFS, 15, tuple(rounds))


@given(st.lists(ROUND, min_size=1, max_size=14), st.integers(0, 1000))
def test_the_text_renders_all_facts(rounds: list[Round], seed: int) -> None:
    known, asked = view(rounds), questions(rounds, PAYOFFS, seed=seed)
    for messages in (
        BRIEFING.move(known),
        BRIEFING.plan(known),
        BRIEFING.critique(known, "x"),
        BRIEFING.improve(known, "x", "y"),
        BRIEFING.questions(known, asked),
    ):
        check_rendered(messages, FIELDS)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(rounds=st.lists(ROUND, max_size=14), seed=st.integers(0, 1000))
def test_each_strategy_answers_with_a_move_that_it_may_make(name: str, rounds: list[Round], seed: int) -> None:
    messages = BRIEFING.move(View("P1", (), tuple(rounds), "P4" if rounds else "", 30, ""))
    move = json.loads(answer(name, messages, seed))["move"]
    chance = STRATEGIES[name].rule(rounds, PAYOFFS)
    assert move in {LABELS[letter] for letter, p in (("C", chance), ("D", 1 - chance)) if p > 0}


@given(st.lists(ROUND, min_size=1, max_size=15), st.integers(0, 1000))
def test_players_answer_all_questions_as_the_truth_has_it(rounds: list[Round], seed: int) -> None:
    asked = questions(rounds, PAYOFFS, seed=seed)
    found = json.loads(answer("grim", BRIEFING.questions(view(rounds), asked)))
    assert found == {question.id: question.truth for question in asked}


def test_players_plan_and_criticise_in_words_that_name_no_action() -> None:
    known = view([("C", "D")])
    for messages in (BRIEFING.plan(known), BRIEFING.critique(known, "x"), BRIEFING.improve(known, "x", "y")):
        text = answer("defect", messages)
        assert len(text) > 20
        assert "defect" not in text.lower()


def test_a_remark_on_an_earlier_reply_changes_nothing() -> None:
    messages = BRIEFING.move(View("P1", (), (("C", "D"),), "P4", 30, ""))
    repaired = [
        *messages,
        AIMessage("?"),
        HumanMessage("That can't be used: Round 9: you action_a, opponent action_a;"),
    ]
    assert answer("tit-for-tat", messages) == answer("tit-for-tat", repaired)


def test_every_strategy_is_a_baseline_with_a_description() -> None:
    assert all(name in BASELINES and describe(name) for name in STRATEGIES)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    monkeypatch.setitem(sys.modules, "axelrod", None)
    try:
        with pytest.raises(MissingExtraError, match=r"labmates\[axelrod\]"):
            library.library_action("TitForTat", [])
    finally:
        library.library.cache_clear()
