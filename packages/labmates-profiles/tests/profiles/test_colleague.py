"""Baselines whose disposition shows both in how they play and in how they work."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage

from labmates.errors import UsageError
from labmates.games.references import references
from labmates.games.registry import make_game, own_games
from labmates.models.names import parse_model
from labmates.models.scripted import BASELINES, describe
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.games.players import Situation
from labmates.workflows.science.baselines.diligent import Diligent
from labmates_profiles.colleague import Colleague, Disposition, colleague, play
from tests.support.lab_orders import with_facts

SHARE = st.floats(0, 1)
DISPOSITIONS = st.builds(Disposition, SHARE, SHARE, SHARE, SHARE, SHARE)
EXACT = Disposition(generosity=1, trust=1, reciprocity=0, noise=0)
WRITE = """# Step: write the artifact `dataset_description`
Use Markdown with these sections:
- Overview: what the table is
- Variables: its columns
- Quality: what was repaired
- Patterns: what the data show
## Material
"""
WORK = "# Step: work\nYour task: clean the table.\nYou have at most 8 replies."


def situation(name: str, **more: Any) -> Situation:
    game = make_game(name)
    return replace(Situation(game, "decide", round=0, group=0, seat=0, last={}), **more)


def decided(said: Situation, mine: Disposition, seed: int = 0) -> tuple[int, ...]:
    numbers = json.loads(play(said, mine, random.Random(seed)))
    return tuple((said.game.completed(numbers) if said.stage == "decide" else numbers).values())


def heard(order: str, seed: int = 0, tools: Sequence[str] = ("write_artifact", "mark_complete", "run_code")) -> Heard:
    messages = with_facts([SystemMessage("You are an agent."), HumanMessage(order)])
    return Heard(tuple(messages), tuple({"type": "function", "function": {"name": name}} for name in tools), seed)


def lab(order: str, effort: float, seed: int = 0) -> Draft:
    return colleague(f"generosity={effort}/care={effort}")().compose(heard(order, seed))


@pytest.mark.parametrize("name", own_games())
@settings(max_examples=30)
@given(mine=DISPOSITIONS, seed=st.integers(0, 99), data=st.data())
def test_whatever_the_disposition_each_decision_is_one_that_the_game_allows(
    name: str, mine: Disposition, seed: int, data: st.DataObject
) -> None:
    said = situation(name)
    allowed = list(said.game.decisions())
    theirs = data.draw(st.lists(st.sampled_from(allowed), max_size=4))
    said = replace(said, last={f"A{place}": one for place, one in enumerate(theirs, 2)})
    assert decided(said, mine, seed) in allowed
    tokens = decided(replace(said, stage="sanction"), mine, seed)
    assert len(tokens) == len(theirs)
    assert sum(tokens) <= said.game.sanction_limit
    assert play(replace(said, stage="deliberation"), mine, random.Random(seed)).startswith("I am going to play {")


@pytest.mark.parametrize("name", own_games())
def test_full_disposition_plays_the_best_and_none_the_secure_play(name: str) -> None:
    plays = references(make_game(name))
    for mine, wanted in ((EXACT, plays.optimum), (replace(EXACT, generosity=0, trust=0), plays.nash)):
        said = situation(name)
        assert decided(said, mine) == said.game.decision_in(wanted.profile[0][0], 0)


@pytest.mark.parametrize(
    ("name", "shown"), [("weakest-link", "trust"), ("o-ring", "trust"), ("common-pool", "generosity")]
)
@settings(max_examples=30)
@given(one=SHARE, other=SHARE)
def test_trust_shows_where_the_best_is_an_equilibrium_and_generosity_where_it_is_not(
    name: str, shown: str, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    best = references(make_game(name)).optimum.level
    hidden = "generosity" if shown == "trust" else "trust"
    said = situation(name)
    away = [
        abs(said.game.level_of(decided(said, replace(EXACT, **{shown: value, hidden: 0.5}))) - best)
        for value in (low, high)
    ]
    assert away[0] >= away[1]
    moved = [decided(said, replace(EXACT, **{shown: 0.5, hidden: value})) for value in (low, high)]
    assert moved[0] == moved[1]


def test_a_reciprocal_colleague_follows_its_group_punishes_and_fears_punishment() -> None:
    last = {"A2": (8,), "A3": (8,), "A4": (8,), "A5": (4,)}
    said = situation("common-pool-sanctions", last=last)
    mine = replace(EXACT, generosity=0, reciprocity=1)
    assert decided(said, mine) == (7,)
    punish = replace(said, stage="sanction")
    assert decided(punish, mine) == (1, 1, 1, 0)
    assert decided(punish, EXACT) == (0, 0, 0, 0)
    alone = replace(said, last={})
    assert decided(alone, mine) < decided(alone, replace(mine, reciprocity=0))


def test_noise_scatters_decisions_about_the_same_middle() -> None:
    said = situation("weakest-link")
    assert {decided(said, replace(EXACT, trust=0.6), seed) for seed in range(20)} == {(6,)}
    noisy = [decided(said, replace(EXACT, trust=0.6, noise=0.1), seed)[0] for seed in range(400)]
    assert len(set(noisy)) > 3
    assert sum(noisy) / len(noisy) == pytest.approx(6, abs=0.2)


@pytest.mark.parametrize("effort", [0.3, 0.6, 0.9])
def test_sections_are_written_as_often_as_its_effort_says(effort: float) -> None:
    model = colleague(f"generosity={effort}/care={effort}")()
    written = [model.compose(heard(WRITE, seed)).calls[0].arguments.count("## ") for seed in range(200)]
    # One that would write nothing writes its first section.
    assert sum(written) / len(written) == pytest.approx(4 * effort + (1 - effort) ** 4, abs=0.2)


def test_full_effort_works_as_the_diligent_and_none_writes_one_section() -> None:
    for order in (WRITE, WORK, "# Step: plan\n", "# Step: deliberation, round 1\n"):
        assert lab(order, 1) == Diligent().compose(heard(order))
    assert [one.name for one in lab(WORK, 0).calls] == ["mark_complete"]
    assert lab(WRITE, 0).calls[0].arguments.count("## ") == 1
    assert lab("# Step: deliberation, round 1\n", 0).content == "Looks fine to me. Let us go on."


def test_half_of_its_effort_is_what_its_play_does_not_show() -> None:
    assert Disposition(generosity=0.2, care=0.8).effort == Disposition(generosity=0.8, care=0.2).effort == 0.5


def test_colleagues_are_known_by_name_and_refuse_games_that_they_do_not_play() -> None:
    name = "colleague/generosity=0.8/care=0.25"
    assert str(parse_model(f"scripted:{name}")) == f"scripted:{name}"
    made = BASELINES.get(name)()
    assert isinstance(made, Colleague)
    assert made.disposition == Disposition(generosity=0.8, care=0.25)
    assert made.invoke([HumanMessage("Hello?")]).response_metadata["model_name"] == f"scripted:{name}"
    assert made.compose(heard("Hello?")).content == "This is no game that I know."
    assert "generosity=0.8/care=0.25" in describe(name)
    assert len(describe("colleague")) < 120


def test_two_colleagues_differ_by_chance_even_if_they_are_asked_with_the_same_seeds() -> None:
    said = [lab(WRITE, effort, seed=3).calls[0].arguments for effort in (0.5, 0.5001, 0.5002, 0.5003, 0.5004)]
    assert len(set(said)) > 1
    assert said[0] == lab(WRITE, 0.5, seed=3).calls[0].arguments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unknown parameter of a colleague ''"),
        ("generous=1", "Did you mean 'generosity'?"),
        ("care=0.1/care=0.2", "has care twice"),
        ("care", "care must be a number from 0 to 1, not ''"),
        ("care=much", "not 'much'"),
        ("care=1.01", "not '1.01'"),
        ("care=-0.1", "not '-0.1'"),
        ("care=nan", "not 'nan'"),
        ("care=0.1,trust=0.2", "not '0.1,trust=0.2'"),
    ],
)
def test_a_wrong_parameter_is_told(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        parse_model(f"scripted:colleague/{text}")
