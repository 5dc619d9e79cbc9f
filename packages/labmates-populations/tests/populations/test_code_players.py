"""Strategies written as code beside chat models and strategies of the library axelrod."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.players.base import StrategyError
from labmates.api import analyze, arun
from labmates.condition_types import Kind
from labmates.errors import UsageError
from labmates.games.iterated.match import Action, Payoffs, Round
from labmates.records.events import DecisionEvent
from labmates.records.store import Store
from labmates.workflows.dilemmas.analyses import RATINGS
from labmates.workflows.protocol.analysis import TooFewRunsError
from labmates_populations.code_players import code_player
from tests.support.strategies import strategy, write

TIT_FOR_TAT = "return C if history.round_number == 0 else (C if history.opponent_cooperators[-1] else D)"
COUNTS = "self.n += 1\nreturn C if self.n == history.round_number + 1 and history.my_actions.sum() % 2 == 0 else D"
FAILS = "return C if history.round_number != 1 else 1 / 0"


@pytest.fixture
def chooses(tmp_path: Path) -> Any:
    file = write(
        tmp_path,
        strategy(TIT_FOR_TAT, name="Strategy_COLLECTIVE_1"),
        strategy(COUNTS, init="self.n = 0"),
        strategy(FAILS, name="Strategy_SELFISH_2"),
        strategy("import os\nreturn C", name="Strategy_SELFISH_3"),
        strategy("return D if history.my_payoffs.sum() == 5 + 3 - 1 else C", name="Strategy_SELFISH_4"),
    )

    def of(name: str) -> partial[Action]:
        made = code_player(f"{file}:{name}").chooses
        assert isinstance(made, partial)
        return made

    return of


def test_a_strategy_decides_by_the_rounds_that_were_played(chooses: Any) -> None:
    cooperated: Round = ("C", "C")
    for rounds in ([], [cooperated], [("C", "D")], [("D", "D"), ("D", "C")]):
        wanted = rounds[-1][1] if rounds else "C"
        assert chooses("Strategy_COLLECTIVE_1")(rounds, Payoffs(), math.inf, 0) == wanted
    # It is asked in each round, and sees what was executed, whatever it chose.
    for rounds, wanted in (([("D", "C")], "C"), ([("C", "C")], "D"), ([("C", "C"), ("C", "D")], "C")):
        assert chooses("Strategy_SELFISH_1")(rounds, Payoffs(), 7, 0) == wanted
    told = chooses("Strategy_SELFISH_4")
    assert told([("D", "C"), ("C", "C"), ("C", "D")], Payoffs(), math.inf, 0) == "D"
    assert told([("D", "C"), ("C", "C")], Payoffs(), math.inf, 0) == "C"


def test_a_strategy_fails_where_it_fails_and_no_later(chooses: Any) -> None:
    fails = chooses("Strategy_SELFISH_2")
    assert fails([], Payoffs(), math.inf, 0) == "C"
    with pytest.raises(StrategyError, match="ZeroDivisionError"):
        fails([("C", "C")], Payoffs(), math.inf, 0)
    assert fails([("C", "C"), ("D", "C")], Payoffs(), math.inf, 0) == "C"
    with pytest.raises(StrategyError, match="imports 'os'"):
        chooses("Strategy_SELFISH_3")([], Payoffs(), math.inf, 0)


def test_a_strategy_is_named_by_file_class_and_digest(tmp_path: Path) -> None:
    file = write(tmp_path, strategy(TIT_FOR_TAT))
    made = code_player(f"{file}:Strategy_SELFISH_1")
    assert code_player(made.baseline.removeprefix("code/")).baseline == made.baseline
    for name, why in (
        ("Strategy_SELFISH_1", "is named scripted:code/FILE.py:CLASS"),
        (f"{file}:Other", "has no class 'Other'"),
        (f"{tmp_path}/none.py:Other", "can't be read"),
        (f"{file}:Strategy_SELFISH_1@0123", "has changed"),
    ):
        with pytest.raises(UsageError, match=why):
            code_player(name)


async def test_models_code_and_classical_strategies_play_one_metagame(tmp_path: Path) -> None:
    file = write(tmp_path, strategy(TIT_FOR_TAT), strategy(FAILS, name="Strategy_SELFISH_2"))
    url = f"sqlite:///{tmp_path}/runs.db"
    names = [f"scripted:code/{file}:Strategy_SELFISH_1", "scripted:axelrod/TitForTat", "scripted:defect"]
    condition: dict[str, Any] = {
        "game": "prisoners",
        "mechanism": "repetition",
        "terms": {"rounds": 4, "memory": 4},
        "entrants": names,
        "reasoning": "none",
    }
    [run] = await arun(Kind("dilemma"), store=url, **condition)
    assert run.status == "completed", run.error
    model = run.condition["entrants"][0]["model"]
    assert model.startswith(f"{names[0]}@")
    with Store(url) as store:
        moves: dict[tuple[str, str], list[Any]] = {}
        for event in store.events(run.id):
            if isinstance(event, DecisionEvent):
                moves.setdefault((event.match, event.agent), []).append(event.decision)
        assert store.run(run.id).bill == "0"
    code, classical = (
        sorted(str(own) for (_, agent), own in moves.items() if agent == name) for name in (model, names[1])
    )
    assert code == classical  # both play tit-for-tat
    rows = analyze("ratings", store=url).json_objects()
    assert [row["failed"] for row in rows] == [0, 0, 0]
    assert rows[0]["mean"] == pytest.approx(rows[1]["mean"])


async def test_models_of_a_tournament_are_rated_beside_those_of_dilemmas(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    names = [
        f"scripted:code/{write(tmp_path, strategy(TIT_FOR_TAT))}:Strategy_SELFISH_1",
        "scripted:axelrod/TitForTat",
        "scripted:defect",
    ]
    condition: dict[str, Any] = {
        "structure": "sa",
        "rounds": 2,
        "rounds_per_player": 9,
        "critique_turns": 0,
        "comprehension": "skipped",
        "model": names[0],
        "model_for": {"P2": names[1], "P5": names[1], "P3": names[2], "P6": names[2]},
    }
    await arun(Kind("tournament"), store=url, **condition)
    await arun("dilemma", store=url, game="prisoners", mechanism="none", entrants="scripted:defect,scripted:cooperate")
    rows = analyze("ratings", store=url).json_objects()
    tournament = [row for row in rows if row["game"] == "tournament"]
    assert {row["game"] for row in rows} == {"prisoners", "tournament"}
    assert {row["mechanism"] for row in tournament} == {"SA"}
    mean = {row["model"]: row["mean"] for row in tournament}
    # Reciprocators lose the first round against a defector alone; the last match of a player may have one round.
    assert all(5 / 3 <= mean[name] <= 5.5 / 3 for name in mean if name != "scripted:defect")
    assert None not in [row["rank"] for row in tournament]
    summed = analyze("ratings", store=url, summary=True).json_objects()
    assert {one["game"] for one in summed} == {"prisoners", "tournament", "all games"}
    await arun(Kind("tournament"), store=url, **{**condition, "model_for": {}})
    with Store(url) as store:
        alone = list(store.runs(kind="tournament"))[-1:]
        with pytest.raises(TooFewRunsError, match="no other to rate it against"):
            RATINGS.shown(store, alone)


async def test_a_strategy_plays_a_tournament(tmp_path: Path) -> None:
    file = write(tmp_path, strategy(TIT_FOR_TAT))
    url = f"sqlite:///{tmp_path}/runs.db"
    condition: dict[str, Any] = {
        "structure": "sa",
        "teams": 2,
        "team_size": "1",
        "rounds": 4,
        "model": f"scripted:code/{file}:Strategy_SELFISH_1",
        "model_for": {"B": "scripted:defect"},
    }
    [run] = await arun(Kind("tournament"), store=url, **condition)
    assert run.status == "completed", run.error
    assert run.metrics["failed_decision_rate"] == 0
    moves = 2 * run.metrics["rounds"]
    assert run.metrics["cooperation"] == pytest.approx(run.metrics["matches"] / moves)  # tit-for-tat cooperates once
