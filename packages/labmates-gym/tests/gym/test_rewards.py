"""Rewards: equal to what the engine measures, and difference rewards to brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from labmates.games.base import Game
from labmates.games.dilemmas import get_dilemma
from labmates.games.registry import make_game
from labmates.mechanisms.base import Question as Asked
from labmates.mechanisms.base import Seats
from labmates.mechanisms.play import around
from labmates.mechanisms.registry import make_mechanisms
from labmates.util.seeds import derive
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.games.condition import GameCondition
from labmates_gym.parallel import LabmatesEnv
from tests.gym.scripted_policy import episode

TOURNAMENT: dict[str, Any] = {
    "teams": 2, "team_size": "2", "rounds": 3, "critique_turns": 0, "comprehension": "skipped",
}  # fmt: skip
SIZE = {"groups": 2, "group_size": 2}


def welfare_of(game: Game, decisions: np.ndarray[Any, Any], tokens: np.ndarray[Any, Any] | None) -> float:
    payoffs = np.asarray(game.payoffs(decisions), dtype=float)
    paid = payoffs if tokens is None else np.asarray(game.sanctioned(payoffs, tokens), dtype=float)
    return float(paid.sum() * float(game.keeps(decisions)))


@pytest.mark.parametrize("name", ["public-goods", "collective-risk", "common-pool", "o-ring", "weakest-link"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_difference_reward_of_a_game_equals_brute_force(name: str, seed: int) -> None:
    env = LabmatesEnv("game", reward="difference", game=name, rounds=2, **SIZE)
    assert isinstance(env.table.condition, GameCondition)
    game, rng = env.table.condition.make_game(), np.random.default_rng(seed)
    possible, rounds = list(game.decisions()), []
    _, infos = env.reset(seed=seed)
    while env.agents:
        drawn = [possible[rng.integers(len(possible))] for _ in env.agents]
        rounds.append(np.array(drawn).reshape(game.groups, game.group_size, -1))
        asked = {each.name for each in game.asked}
        named = [
            {each.name: value for each, value in zip(game.quantities, decision, strict=True) if each.name in asked}
            for decision in drawn
        ]
        *_, infos = env.step(dict(zip(env.agents, map(json.dumps, named), strict=True)))
    decisions = np.stack(rounds)
    whole = welfare_of(game, decisions, None)
    for place, info in enumerate(infos.values()):
        without = decisions.copy()
        without[:, place // game.group_size, place % game.group_size] = game.default_decision
        assert info["rewards"]["welfare"] == pytest.approx(whole)
        assert info["rewards"]["difference"] == pytest.approx(whole - welfare_of(game, without, None))


def test_without_its_seat_nobody_spends_its_tokens() -> None:
    env = LabmatesEnv("game", reward="difference", game="common-pool-sanctions", rounds=1, groups=1, group_size=2)
    game = make_game("common-pool-sanctions", {"rounds": 1, "groups": 1, "group_size": 2})
    _, infos = env.reset(seed=0)
    [extracted] = [each.name for each in game.asked]
    decisions = {"A1": 4, "A2": 9}
    env.step({agent: json.dumps({extracted: number}) for agent, number in decisions.items()})
    *_, infos = env.step({"A1": '{"A2": 2}', "A2": '{"A1": 1}'})
    played, tokens = np.array([[[4], [9]]]), np.array([[[0, 2], [1, 0]]])
    for place, agent in enumerate(decisions):
        without, spent = played.copy(), tokens.copy()
        without[0, place], spent[0, place] = game.default_decision, 0
        whole, left = (welfare_of(game, each[None], sent[None]) for each, sent in ((played, tokens), (without, spent)))
        assert infos[agent]["rewards"]["difference"] == pytest.approx(whole - left)


@pytest.mark.parametrize("name", ["public-goods", "common-pool-sanctions", "collective-risk"])
def test_the_difference_reward_of_a_game_equals_the_game_played_again(name: str) -> None:
    env = LabmatesEnv("game", reward="difference", game=name, rounds=2, deliberation=True, **SIZE)
    by_rules = episode(env, "random", "silent", "cooperate")
    env.table = replace(env.table, kind=replace(env.table.kind, without=None))
    played_again = episode(env, "random", "silent", "cooperate")
    assert {agent: info["rewards"] for agent, info in by_rules.items()} == {
        agent: pytest.approx(info["rewards"]) for agent, info in played_again.items()
    }


@pytest.mark.parametrize("mechanism", ["none", "contract", "mediation", "repetition", "gifting", "cheap-talk"])
def test_the_difference_reward_of_a_dilemma_equals_brute_force(mechanism: str) -> None:
    env = LabmatesEnv("dilemma", reward="difference", game="prisoners", mechanism=mechanism, option_order="fixed")
    assert isinstance(env.table.condition, DilemmaCondition)
    answers: dict[tuple[str, int], dict[str, Any]] = {}
    rng = np.random.default_rng(5)
    _, infos = env.reset(seed=2)
    mechanisms, game = make_mechanisms(mechanism), get_dilemma("prisoners").game()

    def play(answer: Callable[[Asked], dict[str, Any]]) -> float:
        seats = Seats((0, 1), (0, 1), derive(2, "match", "1-1"))
        conversation = around(mechanisms)(game, seats)
        try:
            questions = next(conversation)
            while True:
                questions = conversation.send([answer(question) for question in questions])
        except StopIteration as end:
            return float(sum(end.value.expected))

    def drawn(question: Asked) -> dict[str, Any]:
        key = (question.step, question.agent)
        if question.stage == "choose":
            labels = [blank.name for blank in question.sheet.blanks]
            cuts = np.diff([0, *sorted(rng.integers(0, 101, len(labels) - 1)), 100])
            answers[key] = dict(zip(labels, map(int, cuts), strict=True))
        else:
            answers[key] = {
                blank.name: bool(rng.integers(2)) if blank.allowed is None else blank.allowed[rng.integers(2)]
                for blank in question.sheet.blanks
            }
        return answers[key]

    whole = play(drawn)
    while env.agents:
        actions = {}
        for agent, info in infos.items():
            if (question := info["question"]) is not None:
                # The match, the step within it, the seat and the number of the call; or a shared question.
                step = question.step.split("/")
                inner = f"{step[2]}" if step[0] == "once" else "/".join(step[1:-2])
                [answer] = [each for key, each in answers.items() if key == (inner, int(agent) - 1)]
                actions[agent] = json.dumps(answer)
        *_, infos = env.step(actions)

    def without(me: int) -> Callable[[Asked], dict[str, Any]]:
        def answer(question: Asked) -> dict[str, Any]:
            known = answers.get((question.step, question.agent))
            usable = (
                known is not None
                and question.agent != me
                and known.keys() == {blank.name for blank in question.sheet.blanks}
            )
            return dict(known if usable and known is not None else question.sheet.fallback)

        return answer

    for me, info in enumerate(infos.values()):
        assert info["rewards"]["welfare"] == pytest.approx(whole)
        assert info["rewards"]["difference"] == pytest.approx(whole - play(without(me)))


def test_without_its_player_nobody_gets_the_points_of_its_matches() -> None:
    env = LabmatesEnv("tournament", reward="difference", structure="ri", **TOURNAMENT)
    infos = episode(env, "cooperate", "defect")
    welfare = infos["P1"]["rewards"]["welfare"]
    assert welfare == pytest.approx(sum(info["rewards"]["own"] for info in infos.values()))
    # Each point belongs to one match, of two players.
    assert sum(info["rewards"]["difference"] for info in infos.values()) == pytest.approx(2 * welfare)


@pytest.mark.parametrize(
    ("kind", "condition", "metric"),
    [
        ("game", {"game": "public-goods", "rounds": 2, **SIZE}, "welfare"),
        ("game", {"game": "collective-risk", **SIZE}, "welfare"),
        ("dilemma", {"game": "stag-hunt", "mechanism": "repetition"}, "payoff"),
        ("dilemma", {"game": "prisoners", "mechanism": "reputation"}, "payoff"),
        ("dilemma", {"game": "public-goods", "mechanism": "mediation"}, "payoff"),
    ],
)
def test_own_payoffs_are_those_of_the_experiments_metrics(kind: str, condition: dict[str, Any], metric: str) -> None:
    infos = episode(LabmatesEnv(kind, **condition), "random", "cooperate")
    own = [info["rewards"]["own"] for info in infos.values()]
    assert fmean(own) == pytest.approx(next(iter(infos.values()))["metrics"][metric])


@pytest.mark.parametrize("structure", ["gc", "sa"])
def test_a_team_shares_its_points_where_teams_compete(structure: str) -> None:
    infos = episode(LabmatesEnv("tournament", structure=structure, **TOURNAMENT), "cooperate", "defect")
    own = [info["rewards"]["own"] for info in infos.values()]
    assert (own[0] == own[1]) == (structure == "gc")
    assert sum(own) == pytest.approx(infos["P1"]["rewards"]["welfare"])
