from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from labmates.games.iterated.match import LABELS, Match, Payoffs, Round
from labmates.games.iterated.questions import questions
from labmates.games.iterated.strategies import STRATEGIES
from labmates.models.scripted import BASELINES, describe
from labmates.models.scripted.base import Heard, ScriptedModel
from labmates.workflows.play.wordings import Ablation, Wording, renamed, word_count
from labmates.workflows.tournament.briefs import Briefing, View, move_form
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


@pytest.mark.parametrize("ablation", get_args(Ablation))
@pytest.mark.parametrize("wording", get_args(Wording))
def test_who_is_in_which_team_is_told_once_teams_are_formed(wording: Wording, ablation: Ablation) -> None:
    told = {"wording": wording, "ablation": ablation, "structure": "sa", "team_choice": "wished", "team_size": "2"}
    condition = TournamentCondition.model_validate({"model": "scripted:grim", **told})
    before, introductions = Briefing(condition), {f"P{number}": f"I am team {number}." for number in range(1, 5)}
    for messages in (before.introduction("P1"), before.wishes("P1", introductions)):
        check_rendered(messages, FIELDS)
        text = "\n".join(str(message.content) for message in messages)
        assert " formed before the first match" in text
        assert "of group A" not in text
    assert "Player P3: I am team 3." in text, "what players write stays as it is"
    assert "I am team 1." not in text
    [wanted] = json.loads(answer("grim", messages))["wanted"]
    assert wanted in ("P2", "P3", "P4")
    formed = condition.with_teams({"A": ["P2", "P4"], "B": ["P1", "P3"]})
    assert (formed.key, formed.players["P1"], formed.matches_of("P1")) == (condition.key, "B", 3)
    rules = str(Briefing(formed).move(view([]))[1].content)
    assert re.search(r"With you in your (team|group|set): P3\.", rules)
    assert ("of group B" in rules or "of set B" in rules) == (wording == "paper")


@given(st.lists(ROUND, max_size=14))
def test_players_read_the_rules_and_the_match_from_the_facts(rounds: list[Round]) -> None:
    said = read(Heard(tuple(BRIEFING.move(View("P1", (), tuple(rounds), "P4" if rounds else "", 30, "")))))
    assert (said.step, said.payoffs, said.length, said.rounds) == ("move", PAYOFFS, 15, tuple(rounds))


def worded(wording: Wording, ablation: Ablation, structure: str = "sa") -> Briefing:
    update = {"wording": wording, "ablation": ablation, "structure": structure}
    return Briefing(CONDITION.model_copy(update=update))


@pytest.mark.parametrize("structure", ["ri", "gc", "sa"])
@pytest.mark.parametrize("ablation", get_args(Ablation))
@pytest.mark.parametrize("wording", get_args(Wording))
@settings(max_examples=5)
@given(st.lists(ROUND, min_size=1, max_size=14), st.integers(0, 1000))
def test_every_text_renders_all_facts_and_players_read_them(
    wording: Wording, ablation: Ablation, structure: str, rounds: list[Round], seed: int
) -> None:
    briefing = worded(wording, ablation, structure)
    known, asked = view(rounds), questions(rounds, PAYOFFS, seed=seed)
    for messages in (
        briefing.move(known),
        briefing.message(replace(known, messages=((1, "", "action_a?"),))),
        briefing.plan(known),
        briefing.critique(known, "x"),
        briefing.improve(known, "x", "y"),
        briefing.questions(known, asked),
    ):
        check_rendered(messages, FIELDS)
        said = read(Heard(tuple(messages)))
        assert (said.payoffs, said.length, said.rounds) == (PAYOFFS, 15, tuple(rounds))
    replies = json.loads(answer("grim", briefing.questions(known, asked)))
    meant = renamed(replies, {name: label for label, name in briefing.labels.items()})
    assert meant == {question.id: question.truth for question in asked}
    move_form(said.labels, may_leave=True).model_validate_json(answer("grim", briefing.move(known)))


def told(briefing: Briefing) -> str:
    """What a player is sent in a match whose first round has been played, and before it."""
    match = Match(1, ("P1", "P2"), ("A", "A"), (("C", "D"),), "length", ())
    views = [View("P1", (match,), rounds, "P4" if rounds else "", 30, "") for rounds in ((), (("C", "D"),))]
    return "\n".join(
        str(message.content) for known in views for message in (*briefing.move(known), *briefing.plan(known))
    )


def test_the_papers_wording_has_what_its_prompts_have() -> None:
    text = told(worded("paper", "none"))
    for said in (
        "Your opponent is unknown before the first round has been played.",
        "Your opponent is player P4 of group B.",
        "You are player P1 of group A.",
        "Round 1: you chose action_a, your opponent action_b. Points: -3 for you, +9 for your opponent",
        "highest group score and the highest personal score",
        "The score of a group is the sum",
    ):
        assert said in text
    assert "highest personal score" in told(worded("paper", "none", "ri"))
    assert "group" not in told(worded("paper", "none", "ri"))


@pytest.mark.parametrize("wording", get_args(Wording))
def test_each_ablation_takes_away_what_it_says(wording: Wording) -> None:
    assert not re.search("team|group|opponent|tournament", told(worded(wording, "neutral")), re.IGNORECASE)
    assert re.search(r"goal\b", told(worded(wording, "none")))
    assert "highest" not in told(worded(wording, "no-aim"))
    text = told(worded(wording, "real-words"))
    assert "cooperate" in text
    assert "action_" not in text


@pytest.mark.parametrize("wording", get_args(Wording))
def test_length_matched_rules_differ_by_a_sentence_at_most(wording: Wording) -> None:
    def lengths(ablation: Ablation) -> list[int]:
        briefings = (worded(wording, ablation, structure) for structure in ("ri", "gc", "sa"))
        return [word_count(str(one.move(view(()))[0].content)) for one in briefings]

    matched, plain = lengths("length-matched"), lengths("none")
    assert max(matched) - min(matched) <= 25 < max(plain) - min(plain)


def test_what_players_have_written_is_quoted_as_it_is() -> None:
    known = View("P1", (), (), "", 30, "My opponent may $plan action_a.")
    for briefing in (worded("ours", "neutral"), worded("paper", "real-words")):
        assert known.plan in str(briefing.move(known)[1].content)
        assert known.plan in str(briefing.improve(known, "x", known.plan)[1].content)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
@given(rounds=st.lists(ROUND, max_size=14), seed=st.integers(0, 1000))
def test_each_strategy_answers_with_a_move_that_it_may_make(name: str, rounds: list[Round], seed: int) -> None:
    messages = BRIEFING.move(View("P1", (), tuple(rounds), "P4" if rounds else "", 30, ""))
    move = json.loads(answer(name, messages, seed))["move"]
    chance = STRATEGIES[name](rounds, PAYOFFS)
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
