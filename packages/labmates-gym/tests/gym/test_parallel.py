"""Environments of PettingZoo: its own test, and what seats see, do and get."""

from __future__ import annotations

from typing import Any

import pytest
from pettingzoo.test import parallel_api_test

from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates_gym.parallel import LabmatesEnv
from tests.gym.scripted_policy import episode

TOURNAMENT = {
    "structure": "ri", "teams": 2, "team_size": "2", "rounds": 3, "critique_turns": 0, "comprehension": "skipped",
}  # fmt: skip
CASES: list[tuple[str, dict[str, Any]]] = [
    ("game", {"game": "public-goods", "group_size": 3, "rounds": 2}),
    ("game", {"game": "common-pool-sanctions", "group_size": 2, "rounds": 1}),
    ("dilemma", {"game": "prisoners", "mechanism": "contract"}),
    ("dilemma", {"game": "prisoners", "mechanism": "reputation", "terms": {"rounds": 2}}),
    ("tournament", TOURNAMENT),
]


@pytest.mark.parametrize(("kind", "condition"), CASES)
def test_pettingzoo_accepts_it(kind: str, condition: dict[str, Any]) -> None:
    env = LabmatesEnv(kind, reward="difference", **condition)
    parallel_api_test(env, num_cycles=60)
    env.close()


@pytest.mark.parametrize(("kind", "condition"), CASES)
def test_an_episode_follows_from_its_seed_and_its_actions(kind: str, condition: dict[str, Any]) -> None:
    env = LabmatesEnv(kind, **condition)
    first, again, other = (episode(env, "random", seed=seed) for seed in (3, 3, 4))
    rewards = [{agent: info["rewards"] for agent, info in infos.items()} for infos in (first, again, other)]
    assert rewards[0] == rewards[1] != rewards[2]


def test_a_seat_sees_the_prompt_of_its_question_and_nothing_while_others_are_asked() -> None:
    env = LabmatesEnv("dilemma", game="prisoners", mechanism="stackelberg")
    observed, infos = env.reset(seed=0)
    [asked] = [agent for agent, text in observed.items() if text]
    question = infos[asked]["question"]
    assert all(text_of(message.content) in observed[asked] for message in question.messages)
    [other] = set(env.agents) - {asked}
    assert infos[other]["question"] is None
    observed, *_ = env.step({asked: '{"A0": 100, "A1": 0}', other: "ignored"})
    assert observed[other]
    env.close()


def test_an_unreadable_reply_is_sent_back_with_the_reason() -> None:
    env = LabmatesEnv("dilemma", game="prisoners", repair_turns=1)
    env.reset(seed=0)
    observed, _, ended, _, infos = env.step(dict.fromkeys(env.agents, "no JSON"))
    assert not any(ended.values())
    assert all("no JSON" in text for text in observed.values())
    *_, infos = env.step(dict.fromkeys(env.agents, "no JSON"))
    assert infos["1"]["metrics"]["failed_decision_rate"] == 1


def test_other_models_play_the_other_seats() -> None:
    env = LabmatesEnv("game", game="public-goods", group_size=3, rounds=1, model_for={"B": "scripted:cooperate"})
    assert env.possible_agents == ["A1", "A2", "A3"]
    infos = episode(env, "defect")
    assert infos["A1"]["metrics"]["level"] == pytest.approx(5)
    assert infos["A1"]["rewards"]["welfare"] > sum(info["rewards"]["own"] for info in infos.values())


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [
        ("evolution", {}, "kind of environment"),
        ("game", {"game": "public-goods", "reward": "mine"}, "difference, own, welfare"),
        ("game", {"game": "public-goods", "model": "scripted:random"}, "no seat is played by the policy"),
        ("game", {"game": "public-good"}, "public-goods"),
        ("dilemma", {"game": "prisoners", "entrants": ["scripted:defect"]}, "leave entrants out"),
        ("dilemma", {"game": "prisoners", "mechanism": "reputation+contract(proposals=once)"}, "proposals"),
    ],
)
def test_what_makes_no_environment_is_refused(kind: str, values: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        LabmatesEnv(kind, **values)


def test_a_step_needs_an_episode_and_an_action_of_every_asked_seat() -> None:
    env = LabmatesEnv("dilemma", game="prisoners")
    with pytest.raises(UsageError, match="call reset first"):
        env.step({})
    env.reset()
    with pytest.raises(UsageError, match="an AIMessage is needed for the open question of 2"):
        env.step({"1": "{}"})
    with pytest.raises(UsageError, match="an AIMessage is needed for the open question of 1"):
        env.step({"1": 1, "2": "{}"})  # type: ignore[dict-item]
    env.close()
