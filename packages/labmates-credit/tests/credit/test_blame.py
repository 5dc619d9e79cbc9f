"""Blame: the seat that spoiled the findings is told, and what it costs is known before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import labmates
from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, LLMCallEvent
from labmates.workflows.calls.call import recorded_reply
from tests.support.saboteurs import SEATS, sabotaged


@pytest.mark.parametrize(
    ("seat", "how"),
    [
        ("ben", "drop"),
        pytest.param("dan", "corrupt", marks=pytest.mark.slow("packages/labmates-credit")),
    ],
)
def test_a_saboteur_is_told_if_another_model_does_its_work(tmp_path: Path, seat: str, how: str) -> None:
    with sabotaged(tmp_path, 3, seat, how) as run:
        found = labmates.blame(run.id, model="scripted:honest", replicates=6, store=run.store)
        again = labmates.blame(run.id, model="scripted:honest", replicates=6, store=run.store)
    first, *others = found.table("blame").rows
    assert first["seat"] == seat
    assert first["back_low"] > 0
    assert all(other["back"] < first["back"] / 2 for other in others)
    assert {row["seat"] for row in found.table("blame").rows} == {*SEATS}
    assert {row["finding"] for row in found.table("findings").rows if row["seat"] == seat and row["back"] > 0.5}
    assert found.verdict[0].startswith(f"{seat} lost the most: repeating its work regains +")
    assert again.verdict == found.verdict
    with labmates.records.store.Store(run.store) as store:
        forks = [each for each in store.runs() if each.origin]
    assert len(forks) == len({each.id for each in forks})


def test_a_fault_of_chance_is_told_by_a_second_attempt_of_each_seat(tmp_path: Path) -> None:
    with sabotaged(tmp_path, 1, "cho", "waste", once=True) as run:
        found = labmates.blame(run.id, replicates=4, store=run.store)
    assert found.table("blame").rows[0]["seat"] == "cho"


def test_a_better_run_of_the_same_data_tells_the_seat_that_did_worse(tmp_path: Path) -> None:
    with sabotaged(tmp_path, 3, "ben", "drop") as run:
        same = {name: run.condition[name] for name in ("task", "difficulty", "organisation")}
        settings = {"sandbox": "unsafe-local"}
        play = partial(labmates.run, "science", store=run.store, settings=settings, model="scripted:honest", **same)
        [better], [other] = play(seed=3), play(seed=4)
        found = labmates.blame(run.id, model=better.id, store=run.store)
        with labmates.records.store.Store(run.store) as store:
            model = f"recorded:{better.id}"
            taken = [each for each in store.runs() if each.condition.get("model_for") == {"ben": model}]
            own, theirs = (
                [
                    recorded_reply(event, Bodies(store.bodies(one.id))).message.tool_calls
                    for event in store.events(one.id)
                    if isinstance(event, LLMCallEvent) and event.agent == "ben"
                ]
                for one in (taken[0], better)
            )
            events = store.events(taken[0].id)
            charged = {e.amount for e in events if isinstance(e, ChargeEvent) and e.agent == "ben"}
        with pytest.raises(UsageError, match="name another run of the same data"):
            labmates.blame(run.id, model=other.id, store=run.store)
        with pytest.raises(UsageError, match="name another run of the same data"):
            labmates.blame(run.id, model=run.id, store=run.store)
        with pytest.raises(UsageError, match="there is no run 'nobody'"):
            play(seed=3, model_for={"ben": "recorded:nobody"})
        again = labmates.replay(taken[0].id, store=run.store)
    assert len(taken) == 8
    assert own == theirs
    assert charged == {0}
    assert again.is_same
    assert [row["seat"] for row in found.table("blame").rows] == ["ben", "cho", "dan", "ana"]
    assert found.verdict[0].startswith("ben is the first seat whose work in the better run regains credit, +")
    assert (
        found.verdict[1]
        == "Repeating the work of cho, dan regains some, too, but rests on that of earlier seats there."
    )


def test_where_the_other_run_has_no_reply_the_model_of_its_seat_is_asked(tmp_path: Path) -> None:
    values = {"task": "anomaly", "difficulty": "easy", "team_size": 2, "model": "scripted:diligent"}
    settings = {"sandbox": "unsafe-local"}
    play = partial(labmates.run, "science", store=f"{tmp_path}/runs.db", settings=settings, seed=1, **values)
    [short] = play(max_turns=1, deliberation_rounds=0)
    [run] = play(model_for={"data_lead": f"recorded:{short.id}"})
    calls = [event for event in run.events if isinstance(event, LLMCallEvent) and event.agent == "data_lead"]
    asked = {call.step.partition("/model/")[0] for call in calls if call.model == "scripted:diligent"}
    assert asked
    assert asked.isdisjoint(call.step for call in short.events if isinstance(call, LLMCallEvent))
    assert run.usage.llm_calls == sum(not call.is_outside for call in run.events if isinstance(call, LLMCallEvent))
    assert labmates.replay(run.id, store=f"{tmp_path}/runs.db").is_same


def test_the_seats_of_a_study_s_runs_are_told_together(tmp_path: Path) -> None:
    with sabotaged(tmp_path, 3, "ben", "drop") as run, sabotaged(tmp_path, 3, "ben", "drop") as other:
        with closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
            database.execute("UPDATE runs SET study = 'chain', replicate = id = ?", [other.id])
        found = labmates.blame("chain", model="scripted:honest", replicates=3, store=run.store)
    assert run.id != other.id
    first, *_ = found.table("blame").rows
    assert (first["seat"], first["runs"], first["back_n"]) == ("ben", 2, 6)
    assert first["back_low"] > 0
    assert {row["seat"] for row in found.table("blame").rows} == {*SEATS}
    assert "6 continuations" in found.verdict[0]
