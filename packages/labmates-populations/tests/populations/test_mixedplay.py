"""Chat models and strategies in one group: each sees all moves, and a run replays from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import labmates
from labmates.condition_types import Kind
from labmates.records.events import DecisionEvent, LLMCallEvent, PayoffEvent
from labmates.records.store import Store
from labmates_populations.condition import MixedplayCondition
from labmates_populations.mixedplay import order_of_round
from labmates_populations.mixedplay_players import STRATEGIES
from labmates_populations.repeated import make_repeated
from tests.support.command_line import Labmates
from tests.support.orders import check_rendered
from tests.support.small_model import SMOLLM2
from tests.support.strategies import library

GAMES = get_args(MixedplayCondition.model_fields["game"].annotation)
CONDITIONAL = "last = history.opponent_cooperators[-1:]\nreturn C if not len(last) or last[0] == 3 else D"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Strategies that cooperate until somebody defects."""
    for game in GAMES:
        library(tmp_path / "strategies", game, gpt={"collective": CONDITIONAL})
    return tmp_path


def play(folder: Path, **condition: Any) -> labmates.Run:
    """Play a run of a mixed group of four."""
    given: dict[str, Any] = {"game": "public-goods", "rounds": 5, "groups": 2, **condition}
    [run] = labmates.run(
        Kind("mixedplay"), strategies=str(folder / "strategies"), store=f"sqlite:///{folder}/runs.db", **given
    )
    return run


def events(folder: Path, run: labmates.Run) -> tuple[list[DecisionEvent], list[PayoffEvent]]:
    with Store(f"sqlite:///{folder}/runs.db") as store:
        recorded = list(store.events(run.id))
    decisions = [event for event in recorded if isinstance(event, DecisionEvent)]
    return decisions, [event for event in recorded if isinstance(event, PayoffEvent)]


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("player", "chat", "code"), [("cooperate", 1.0, 1.0), ("defect", 0.0, 0.2), ("grim", 1.0, 1.0)]
)
def test_strategies_and_chat_models_answer_each_other(
    folder: Path, game: str, player: str, chat: float, code: float
) -> None:
    run = play(folder, game=game, model=f"scripted:{player}")
    assert (run.metrics["chat_cooperation"], run.metrics["code_cooperation"]) == (chat, code)
    assert run.metrics["failed_decision_rate"] == run.metrics["error_rate"] == 0


def test_payoffs_are_those_of_the_recorded_moves(folder: Path) -> None:
    run = play(folder, game="common-pool", model="scripted:random", chats=2, rounds=6)
    decisions, payoffs = events(folder, run)
    assert len(decisions) == 2 * 2 * 6
    for group in ("group 1", "group 2"):
        rounds = sorted((each for each in payoffs if each.match == group), key=lambda each: each.round)
        moves = np.array([[action == "C" for action in each.details["actions"]] for each in rounds])
        paid = make_repeated("common-pool", 4, 6).play(moves[None])[0]
        assert np.allclose([list(each.payoffs.values()) for each in rounds], paid)
        chosen = {(each.round, each.agent): each.decision["action"] for each in decisions if each.match == group}
        for each in rounds:
            names = list(each.payoffs)[:2]
            assert [chosen[each.round, name] for name in names] == list(each.details["actions"][:2])
            assert each.details["players"][:2] == ["scripted:random"] * 2
            assert each.details["players"][2].startswith("gpt:Strategy_COLLECTIVE_")


def test_a_run_is_the_same_again_and_its_record_replays(folder: Path) -> None:
    runs = [play(folder, model="scripted:random", chats=2, seed=seed) for seed in (3, 3, 4)]
    assert runs[0].metrics == runs[1].metrics != runs[2].metrics
    replayed = Labmates(folder)("replay", runs[0].id, "--store", f"sqlite:///{folder}/runs.db")
    assert replayed.code == 0, replayed.out + replayed.err


def test_the_text_renders_all_facts() -> None:
    for name in GAMES:
        condition = MixedplayCondition.model_construct(
            game=name, group_size=4, chats=2, groups=1, rounds=3, strategies="", model="scripted:grim"
        )
        game = make_repeated(name, 4, 3)
        played = np.array([[True, False, True, True], [False, False, True, False]])
        for number in range(3):
            before = played[:number]
            check_rendered([order_of_round(condition, game, before, 1).human()], ("own", "others", "payoff"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--chats", "4"], "--chats: must be less than the group size (4)"),
        (["--rule", "noise=0.1"], "--rule: noise is only for groups without chat models"),
        (["--attitudes", "kind"], "'kind'"),
    ],
)
def test_what_cannot_be_played_is_refused(folder: Path, options: list[str], said: str) -> None:
    asked = ["run", "mixedplay", "--game", "public-goods", "--strategies", "strategies", "--model", "scripted:grim"]
    done = Labmates(folder)(*asked, *options)
    assert done.code in (1, 2)
    assert said in done.err


def test_scripted_players_follow_their_rules() -> None:
    facts = {"players": 4, "rounds": [{"own": "C", "others": 1, "payoff": 1.0}]}
    rng: Any = type("Low", (), {"random": staticmethod(lambda: 0.1)})()
    moves = {name: strategy(facts, rng)[-3] for name, strategy in STRATEGIES.items()}
    assert moves == {"cooperate": "C", "defect": "D", "random": "C", "conditional": "D", "grim": "D"}


@pytest.mark.needs("gguf")
@pytest.mark.slow("packages/labmates-populations/tests/populations/test_mixedplay.py")
def test_a_small_real_model_plays_beside_strategies(folder: Path) -> None:
    run = play(folder, model=f"{SMOLLM2}&temperature=0", rounds=2, groups=1, max_output_tokens=64, repair_turns=1)
    decisions, _ = events(folder, run)
    assert len(decisions) == 2
    with Store(f"sqlite:///{folder}/runs.db") as store:
        calls = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    assert len(calls) >= 2
    assert all(each.decision["action"] in "CD" for each in decisions)
