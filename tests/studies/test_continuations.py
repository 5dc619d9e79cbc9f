"""Continuations of forks: exact up to the fork, drawn anew after it, and each executed once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.errors import UsageError
from labmates.records.events import DecisionEvent, Event, LLMCallEvent
from labmates.records.store import Store
from labmates.studies.continuations import Continuations, both_arms
from labmates.studies.replay import replay
from labmates.studies.settings import RunSettings

CHANGE = {"model": "scripted:cooperate"}
OF_ROUND_1 = 13
"""Events of the first round: calls and charges, decisions, payoffs."""


def played(folder: Path) -> labmates.Run:
    [run] = labmates.run(
        "game", game="weakest-link", model="scripted:random", group_size=2, rounds=2, store=f"{folder}/runs.db"
    )
    return run


def forked(run: labmates.Run, replicates: int, **changes: Any) -> list[labmates.Run]:
    return labmates.fork(run.id, at="2", changes=changes or CHANGE, replicates=replicates, store=run.store)


def decisions(events: Sequence[Event]) -> list[Any]:
    return [event.decision["effort"] for event in events if isinstance(event, DecisionEvent)]


def seeds(events: Sequence[Event]) -> list[int]:
    return [event.seed for event in events if isinstance(event, LLMCallEvent)]


def test_continuations_have_the_events_before_the_fork_for_nothing_and_draw_the_later_ones_anew(tmp_path: Path) -> None:
    run = played(tmp_path)
    runs = forked(run, 3)
    with Store(run.store) as store:
        costs = {each.id: store.run(each.id).spent for each in runs}
        assert asyncio.run(replay(store, runs[0])).is_same
    for each in runs:
        assert each.events[:OF_ROUND_1] == run.events[:OF_ROUND_1]
        later = [event for event in each.events[OF_ROUND_1:] if event.type == "charge"]
        assert costs[each.id] == sum(event.real_cost for event in later)
        assert seeds(each.events) != seeds(run.events)
    by_arm = {
        model: [each for each in runs if each.condition["model"] == model]
        for model in ("scripted:random", "scripted:cooperate")
    }
    unchanged, changed = by_arm.values()
    assert len({tuple(seeds(each.events)) for each in unchanged}) == 3
    assert [seeds(each.events) for each in unchanged] == [seeds(each.events) for each in changed], "so that they pair"
    assert all(decisions(each.events)[4:] == [10] * 4 for each in changed)


def test_the_same_continuations_of_the_same_run_come_to_the_same_end(tmp_path: Path) -> None:
    ends = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        ends.append([decisions(each.events) for each in forked(played(tmp_path / name), 2)])
    assert ends[0] == ends[1]


def test_a_repeated_command_completes_and_repeats_nothing(tmp_path: Path) -> None:
    run = played(tmp_path)
    with Store(run.store) as store:
        branches = asyncio.run(
            both_arms(store, [run.id], at=OF_ROUND_1, changes=CHANGE, settings=RunSettings.model_validate)
        )
        stopped = Continuations(store, branches, 2)
        assert len(stopped.left) == 4
        stopped.enter()
    first = {each.id: each.started for each in forked(run, 2)}
    assert first.keys() == {each.id for each in stopped.left}
    again = {each.id: (each.started, each.attempt) for each in forked(run, 3)}
    assert len(again) == 6
    assert first.items() <= {run_id: started for run_id, (started, _) in again.items()}.items()


def test_a_continuation_is_forked_and_continued_like_any_run(tmp_path: Path) -> None:
    run = played(tmp_path)
    unchanged = next(each for each in forked(run, 1) if each.key == run.key)
    plain = labmates.fork(unchanged.id, at=OF_ROUND_1, changes={"repair_turns": 5}, store=run.store)
    assert decisions(plain.events) == decisions(unchanged.events), "a single fork draws as its origin did"
    assert plain.origin == f"{unchanged.id}@{OF_ROUND_1}#1"
    again = forked(unchanged, 1, repair_turns=5)
    assert {each.origin for each in again} == {f"{unchanged.id}@{OF_ROUND_1}#1.1"}


def test_a_place_that_is_not_in_the_run_is_refused_with_those_that_are(tmp_path: Path) -> None:
    run = played(tmp_path)
    with pytest.raises(
        UsageError, match=r"unknown step, team or agent of the run .* 'C'.* Known: A, A1, A2, B, B1, B2"
    ):
        labmates.fork(run.id, at="C", changes=CHANGE, store=run.store)
