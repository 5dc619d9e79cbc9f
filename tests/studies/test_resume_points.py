"""A run's record is its only durability: cut off after any event, it goes on to the record that it would have had."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import body_numbers, fields_with_bodies
from labmates.records.run import RunRecord, new_run_id
from labmates.records.store import Store
from labmates.studies.fork import whole_steps
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from tests.support.puppet import puppet
from tests.support.recorded import Recorded, copy_of, other_kinds, storied

POINTS = 12
OTHERS = tuple(other_kinds())
KINDS = ("game", "contract", "repetition", "tournament", "science", *OTHERS)
SETTINGS = RunSettings(sandbox="unsafe-local", processes=1)


@pytest.fixture(scope="module")
def whole(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[str, RunRecord]]]:
    """A store that can be written, and its whole runs."""
    with copy_of(recorded, tmp_path_factory.mktemp("kinds")) as store:
        yield store, {kind: store.run(recorded.ids[kind]) for kind in KINDS}


def told(store: Store, run: RunRecord) -> list[str]:
    """The events of a run, without times and without the order in which parallel members came first."""
    bodies = Bodies(store.bodies(run.id))
    events = [
        {"type": event.type, "step": event.step, **fields_with_bodies(event, bodies)} for event in store.events(run.id)
    ]
    return sorted(repr(untimed(event)) for event in events)


def untimed(data: dict[str, Any]) -> dict[str, Any]:
    """The same without times, also in the record of how strategies were played."""
    told = {name: value for name, value in data.items() if name != "seconds"}
    return {name: untimed(value) if isinstance(value, dict) else value for name, value in told.items()}


def outcome(run: RunRecord) -> tuple[Any, ...]:
    return run.status, run.error, run.invalid, run.metrics, run.usage, run.budget


def cut_off(store: Store, run: RunRecord, count: int) -> RunRecord:
    """A copy of a run as a killed worker leaves it: its first events, their bodies, and nothing else."""
    events = store.events(run.id)[:count]
    last = max((number for event in events for number in body_numbers(event)), default=-1)
    bodies = [body for body in store.bodies(run.id) if body.number <= last]
    killed = replace(run, id=new_run_id(), status="interrupted", metrics={}, budget=None, seconds=0.0)
    store.create(killed, events=events, bodies=bodies)
    return killed


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.slow("tests/studies/test_resume_points.py")] * (kind in OTHERS))
        for kind in KINDS
    ],
)
async def test_a_run_cut_off_anywhere_ends_with_the_same_record(
    kind: str, whole: tuple[Store, dict[str, RunRecord]]
) -> None:
    store, runs = whole
    run = runs[kind]
    events = store.events(run.id)
    chosen = random.Random(kind).sample(range(len(events)), min(POINTS, len(events)))
    points = sorted({whole_steps(events, point) for point in chosen})
    killed = [cut_off(store, run, point) for point in points]
    with puppet(storied):
        ended = await Session(store, SETTINGS).execute([stopped_run(store, each.id) for each in killed])
    for point, each in zip(points, ended, strict=True):
        assert outcome(each) == outcome(run), f"cut off after {point} of {len(events)} events"
        assert told(store, each) == told(store, run), f"cut off after {point} of {len(events)} events"
