"""Orders of social dilemmas: the text renders the facts, and players read from them what the mechanism knows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.games.dilemmas import get_dilemma
from labmates.mechanisms.base import Answer, Question
from labmates.mechanisms.conformance import play_with, random_answer
from labmates.mechanisms.registry import make_mechanisms
from labmates.models.scripted.base import Heard
from labmates.workflows.dilemmas.briefs import Briefing
from labmates.workflows.dilemmas.players import read
from tests.support.orders import check_rendered

FIELDS = {"name", "least", "most", "choices", "me", "others", "rounds"}
MECHANISMS = (
    "none",
    "repetition(rounds=4)",
    "reputation(rounds=4,order=3)",
    "contract",
    "mediation",
    "contract+repetition(rounds=3)",
    "repetition(rounds=3)+mediation",
)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=10)
@given(name=st.sampled_from(["prisoners", "public-goods", "travellers"]), seed=st.integers(0, 999))
def test_the_text_renders_all_facts_and_players_read_them(mechanism: str, name: str, seed: int) -> None:
    game, parts, rng = get_dilemma(name).game(), make_mechanisms(mechanism), random.Random(seed)
    briefing = Briefing(game, parts)

    def answer(question: Question) -> Answer:
        messages = briefing.ask(question, "none")
        check_rendered(messages, FIELDS)
        said = read(Heard(tuple(messages)))
        assert said.view.labels == game.seen_by(question.seat).labels
        assert (said.view.payoffs == game.seen_by(question.seat).payoffs).all()
        assert (said.stage, said.seat) == (question.stage, question.seat)
        assert [(one.name, one.allowed) for one in said.sheet.blanks] == [
            (one.name, one.allowed) for one in question.sheet.blanks
        ]
        assert {name: said.facts[name] for name in question.facts} == dict(question.facts)
        return random_answer(question, rng)

    play_with(parts, game, answer, seed=seed)
