"""Orders of social dilemmas: the text renders the facts, and players read from them what the mechanism knows."""

from __future__ import annotations

import json
import random
import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.games.dilemmas import get_dilemma
from labmates.mechanisms.base import Question
from labmates.mechanisms.registry import MECHANISMS as MECHANISM_REGISTRY
from labmates.mechanisms.registry import make_mechanisms
from labmates.mechanisms.wording import Answer
from labmates.models.scripted.base import Heard
from labmates.workflows.dilemmas.briefs import Briefing, form_of
from labmates.workflows.dilemmas.players import read
from labmates.workflows.play.wordings import Ablation, Wording, renamed, replaced, word_count
from labmates_author.mechanisms import play_with, random_answer
from tests.support.orders import check_rendered

FIELDS = {"name", "least", "most", "choices", "me", "others", "rounds"}
FIELDS |= {"gives", "keeps", "factor", "kept", "players", "numbers", "bonus"}
MECHANISMS = (
    "none",
    "repetition(rounds=4)",
    "reputation(rounds=4,order=3)",
    "contract",
    "mediation",
    "contract+repetition(rounds=3)",
    "repetition(rounds=3)+mediation",
)


GAMES = ("prisoners", "public-goods", "travellers", "trust")


@pytest.mark.parametrize("ablation", get_args(Ablation))
@pytest.mark.parametrize("wording", get_args(Wording))
@settings(max_examples=20, deadline=None)
@given(mechanism=st.sampled_from(MECHANISMS), name=st.sampled_from(GAMES), seed=st.integers(0, 999))
def test_every_text_renders_all_facts_and_players_read_them(
    wording: Wording, ablation: Ablation, mechanism: str, name: str, seed: int
) -> None:
    table, parts, rng = get_dilemma(name), make_mechanisms(mechanism), random.Random(seed)
    game = table.game()
    briefing = Briefing(table, parts, wording=wording, ablation=ablation)
    meanings = table.meanings() if ablation == "real-words" else {}

    def answer(question: Question) -> Answer:
        messages = briefing.ask(question, "none")
        check_rendered(messages, FIELDS, apart={"rounds"} if wording == "paper" else ())
        said = read(Heard(tuple(messages)))
        seen = game.seen_by(question.seat)
        assert said.view.labels == renamed(seen.labels, meanings)
        assert (said.view.payoffs == seen.payoffs).all()
        assert (said.stage, said.seat) == (question.stage, question.seat)
        assert [(one.name, one.allowed) for one in said.sheet.blanks] == [
            (renamed(one.name, meanings), renamed(one.allowed, meanings)) for one in question.sheet.blanks
        ]
        for fact in question.facts.keys() - {"past"}:
            assert said.facts[fact] == renamed(question.facts[fact], meanings)
        wanted = random_answer(question, rng)
        reply = json.loads(said.reply(renamed(wanted, meanings)))
        assert briefing.meant(form_of(briefing.sheet(question)).model_validate(reply).values) == wanted
        return wanted

    play_with(parts, game, answer, seed=seed, words=briefing.words)


def prompts(mechanism: str, game: str = "prisoners", **wording: Any) -> tuple[str, dict[str, str]]:
    """The system prompt, and player 1's last question of each stage when all take what is first."""
    table, parts = get_dilemma(game), make_mechanisms(mechanism)
    briefing = Briefing(table, parts, **wording)
    texts: dict[str, str] = {}

    def answer(question: Question) -> Answer:
        system, asked = briefing.ask(question, "none")
        if question.seat == 0:
            texts["system"], texts[question.stage] = str(system.content), str(asked.content)
        if question.stage == "propose":
            return random_answer(question, random.Random(1))
        if question.stage in ("vote", "sign"):
            return {one.name: True for one in question.sheet.blanks}
        if question.stage == "choose":
            return {one.name: 100 if place == 0 else 0 for place, one in enumerate(question.sheet.blanks)}
        return question.sheet.fallback

    play_with(parts, table.game(), answer, words=briefing.words)
    return texts.pop("system"), texts


def test_the_papers_wording_has_what_its_prompts_have() -> None:
    system, asked = prompts("repetition(rounds=4)", wording="paper")
    assert "Your objective is to get as many points as possible" in system
    outcome = "If you choose A0 and the other player chooses A1: you get 0 points, the other player gets 3 points"
    assert outcome in asked["choose"]
    assert "another round follows with a probability of 80 %" in system
    assert "[Round 2]\nyou: A0\nplayer 2: A0\n[Round 3]" in asked["choose"]
    assert "gets 1 + (1.5 × k / 3) points" in prompts("none", "public-goods", wording="paper")[1]["choose"]
    assert "- A3: stands for the number 5" in prompts("none", "travellers", wording="paper")[1]["choose"]
    _, asked = prompts("mediation", wording="paper")
    assert "the mediator proposed by player 2" in asked["vote"]
    assert '- "A2": a whole number' in asked["choose"]
    assert "delegate" not in asked["choose"].split("# The game")[0]
    _, asked = prompts("contract", wording="paper")
    assert re.search(r"a player who takes it (receives|pays) \d+ extra points (from|to) the other", asked["sign"])


def test_the_papers_tree_holds_the_earlier_partners_of_the_player_itself() -> None:
    _, asked = prompts("reputation(rounds=4,order=3)", wording="paper")
    assert "Your own matches:\n- [Round 3]" in asked["choose"]
    assert re.search(r"\n  Matches of agent \d before this one:\n  - \[Round 2\]", asked["choose"])
    assert "Matches of agent" not in prompts("reputation(rounds=4)", wording="paper")[1]["choose"].split("\n\n")[1]


@pytest.mark.parametrize("wording", get_args(Wording))
def test_each_ablation_takes_away_what_it_says(wording: Wording) -> None:
    for mechanism in ("contract", "mediation"):
        system, asked = prompts(mechanism, wording=wording, ablation="neutral")
        told = "\n".join([system, *asked.values()])
        assert not re.search("contract|mediator|delegat|agree|cooperat", told, re.IGNORECASE)
    assert "as many points" not in prompts("contract", wording=wording, ablation="no-aim")[0]
    system, asked = prompts("repetition(rounds=3)", wording=wording, ablation="real-words")
    assert "cooperate" in asked["choose"]
    assert '- "defect"' in asked["choose"]
    assert not re.search(r"\bA\d", system + asked["choose"])


@pytest.mark.parametrize("wording", get_args(Wording))
@pytest.mark.parametrize("game", GAMES)
def test_length_matched_prompts_differ_by_a_sentence_at_most(wording: Wording, game: str) -> None:
    names = [name for name in MECHANISM_REGISTRY.names() if MECHANISM_REGISTRY.is_own(name)]
    lengths = [word_count(prompts(name, game, wording=wording, ablation="length-matched")[0]) for name in names]
    # A section's head is not written where fewer words than it has are missing.
    assert max(lengths) - min(lengths) <= 25
    plain = [word_count(prompts(name, game, wording=wording)[0]) for name in names]
    assert max(plain) - min(plain) > 60


def test_words_are_replaced_whole_with_their_capitals() -> None:
    words = {"contract": "schedule", "contracts": "schedules"}
    assert replaced("Contracts, a contract; subcontract", words) == "Schedules, a schedule; subcontract"
