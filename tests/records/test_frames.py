"""Data frames of a store: one row per run, score, player, decision, payoff or event, with the columns that are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from labmates.records.events import (
    ChargeEvent,
    DecisionEvent,
    Event,
    FailedReplyEvent,
    LLMCallEvent,
    PayoffEvent,
    ScoreEvent,
)
from labmates.records.frames import COLUMNS, ROWS, Rows, chosen_runs, frame, rows
from labmates.records.run import RunRecord, Usage
from labmates.records.store import Store


def frame_of(store: Store, what: Rows, **filters: str) -> pd.DataFrame:
    return frame(store, what, chosen_runs(store, **filters))


def a_run(number: int, kind: str = "game", study: str | None = "s", model: str = "m:a") -> RunRecord:
    condition = {"game": "o-ring", "prices": {"default": 1}}
    usage = Usage(llm_calls=2)
    metrics = {"level": number / 10}
    run = RunRecord(f"r{number}", kind, "k", number, number, condition, [model], "completed", study, usage=usage)
    return replace(run, metrics=metrics, started=float(number), version="1.0")


def a_call(agent: str, model: str = "m:a") -> LLMCallEvent:
    more = {"messages": [], "reply": 0, "finish": "stop", "input_tokens": 10, "output_tokens": 5, "seed": 0}
    return LLMCallEvent(team="A", agent=agent, model=model, **more)


EVENTS: list[Event] = [
    a_call("A1"),
    FailedReplyEvent(team="A", agent="A1", reason="no number"),
    a_call("A1"),
    ChargeEvent(team="A", agent="A1", amount=7),
    DecisionEvent(team="A", agent="A1", stage="decide", round=1, decision={"effort": 3}),
    a_call("A2", "m:b"),
    DecisionEvent(team="A", agent="A2", stage="decide", round=1, decision={"effort": 0, "to": {"A1": 2}}, failed=True),
    PayoffEvent(round=1, payoffs={"A1": 1.5, "A2": 2.0}, details={"expected": [1.0, 2.5], "weight": 0.5}),
    PayoffEvent(round=2, payoffs={"A1": 1.0, "A2": 0.0}),
    ScoreEvent(judge="j", version="1", metric="quality", value=0.25, reason="so"),
    ScoreEvent(judge="j", version="1", metric="quality", value=None, reason="no report"),
]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    for run in (a_run(1), a_run(2, study=None), a_run(3, kind="science", model="m:b")):
        store.create(run)
    store.add("r1", list(enumerate(EVENTS)), [])
    yield store
    store.close()


def test_runs_are_rows_with_their_condition_metrics_and_newest_scores(store: Store) -> None:
    found = frame_of(store, "runs")
    assert found["id"].tolist() == ["r1", "r2", "r3"]
    assert found["metrics.level"].tolist() == [0.1, 0.2, 0.3]
    assert found["condition.prices.default"].tolist() == [1, 1, 1]
    assert found["models"].tolist() == ["m:a", "m:a", "m:b"]
    assert found["scores.j.quality"].isna().all()
    assert (found["version"][0], found["started"][0]) == ("1.0", 1.0)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [({"kind": "game"}, ["r1", "r2"]), ({"study": "s"}, ["r1", "r3"]), ({"model": "m:b"}, ["r3"]), ({"kind": "x"}, [])],
)
def test_runs_are_chosen_by_kind_study_and_model(store: Store, filters: dict[str, str], expected: list[str]) -> None:
    assert frame_of(store, "runs", **filters)["id"].tolist() == expected


def test_players_have_what_they_used_decided_and_earned(store: Store) -> None:
    one, two = frame_of(store, "players").to_dict("records")
    assert (one["run"], one["agent"], one["team"], one["model"], two["model"]) == ("r1", "A1", "A", "m:a", "m:b")
    assert (one["calls"], one["input_tokens"], one["failed_replies"], one["spent"]) == (2, 20, 1, 7)
    assert [(row["decisions"], row["failed_decisions"], row["payoff"]) for row in (one, two)] == [
        (1, 0, 2.5),
        (1, 1, 2),
    ]


def test_a_players_payoff_is_the_total_of_each_match_and_not_its_rounds_once_more(store: Store) -> None:
    store.add("r2", list(enumerate([
        a_call("A1"),
        PayoffEvent(round=1, match="m1", payoffs={"A1": 5.0}),
        PayoffEvent(round=2, match="m1", payoffs={"A1": -1.0}),
        PayoffEvent(match="m1", payoffs={"A1": 4.0}),
        PayoffEvent(round=1, match="m2", payoffs={"A1": 9.0}),
        PayoffEvent(match="m2", payoffs={"A1": 0.0}),
        PayoffEvent(round=1, match="m3", payoffs={"A1": 3.0}),
    ])), [])  # fmt: skip
    assert frame_of(store, "players").set_index("run").loc["r2", "payoff"] == 7.0


def test_decisions_and_payoffs_are_rows_with_what_was_decided_and_its_details(store: Store) -> None:
    decided = frame_of(store, "decisions")
    assert decided["agent"].tolist() == ["A1", "A2"]
    assert decided["decision.effort"].tolist() == [3, 0]
    assert decided["decision.to.A1"].tolist()[1] == 2
    assert decided["failed"].tolist() == [False, True]
    paid = frame_of(store, "payoffs")
    assert list(zip(paid["round"], paid["player"], paid["payoff"], strict=True)) == [
        (1, "A1", 1.5), (1, "A2", 2.0), (2, "A1", 1.0), (2, "A2", 0.0)
    ]  # fmt: skip
    assert paid["details.expected"].tolist()[:2] == [1.0, 2.5]
    assert "details.weight" not in paid


def test_scores_are_all_there_and_unscored_ones_have_no_number(store: Store) -> None:
    found = frame_of(store, "scores")
    assert found["value"].isna().tolist() == [False, True]
    assert found["reason"].tolist() == ["so", "no report"]
    assert found["key"].tolist() == ["k", "k"]


def test_events_are_numbered_and_their_data_is_json(store: Store) -> None:
    found = frame_of(store, "events")
    assert found["number"].tolist() == list(range(len(EVENTS)))
    assert json.loads(found["data"][3]) == {"amount": 7}


@pytest.mark.parametrize("what", ROWS)
def test_every_frame_has_its_columns_also_without_rows(store: Store, what: Rows) -> None:
    assert set(frame_of(store, what, kind="absent").columns) == set(COLUMNS[what])
    found = frame_of(store, what)
    assert list(found.columns[: len(COLUMNS[what])]) == list(COLUMNS[what])
    assert len(found)


@pytest.mark.parametrize("what", ["runs", "scores", "players"])
def test_many_runs_take_few_questions_to_the_database(store: Store, what: Rows) -> None:
    for number in range(10, 60):
        store.create(a_run(number))
        store.add(f"r{number}", [(0, EVENTS[0]), (1, EVENTS[-2])], [])
    asked: list[str] = []

    def note(*given: Any) -> None:
        asked.append(given[2])

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        assert len(list(rows(store, what, chosen_runs(store)))) > 50
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert len([one for one in asked if one.lstrip().upper().startswith("SELECT")]) <= 6


def test_columns_of_mixed_types_are_those_of_the_rows_one_by_one(tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [
        {"number": 1.5, "mixed": 1, "rare": "x"},
        {"number": 2.5, "mixed": "text", "flag": True},
        {"number": 3.5, "mixed": None, "flag": False, "nested": {"huge": 2**70, "list": [1, "a"]}},
    ]
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        for at in range(1_300):
            settings = {**(values[at % 3] if at > 600 else values[0]), "late": at} if at > 5 else {}
            store.create(replace(a_run(at), condition=settings))
        found = frame_of(store, "runs")
        expected = list(rows(store, "runs", chosen_runs(store)))
    assert len(found) == len(expected) == 1_300
    assert set(found.columns) >= {"condition.mixed", "condition.flag", "condition.nested.huge", "condition.nested.list"}
    for name in found.columns:
        told = [None if pd.isna(value) else value for value in found[name].tolist()]
        assert told == [row.get(name) for row in expected], name
    assert found["metrics.level"].dtype == float
    assert found["condition.late"].dtype == float, "the first runs have none"
