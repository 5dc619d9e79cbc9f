"""Matches of a run that are played again: their moves and payoffs are those of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.api import arun
from labmates.condition_types import Kind
from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from labmates_populations.engine.crew import Crew
from labmates_populations.matches import Replayed, replay_matches
from labmates_populations.outcomes import payoff_events
from tests.support.strategies import library

ONE = {"collective": "return C if random.random() < 0.8 else D", "exploitative": "return D"}
EVOLUTION: dict[str, Any] = {
    "population": 16,
    "elite": 4,
    "games": 2,
    "generations": 13,
    "threshold": 1,
    "mutation": 0.5,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


@pytest.fixture
def crew() -> Iterator[Crew]:
    with closing(Crew(processes=1)) as opened:
        yield opened


async def run(store: Store, folder: Path, kind: str, **condition: Any) -> RunRecord:
    settings = RunSettings(processes=1)
    values = {"game": "common-pool", "strategies": str(library(folder, "common-pool", one=ONE)), "rounds": 4}
    [made] = await arun(Kind(kind), store=store.url, settings=settings, **values, **condition)
    return store.run(made.id)


async def test_matches_of_an_evolution_have_its_payoffs_and_moves(store: Store, crew: Crew, tmp_path: Path) -> None:
    record = await run(store, tmp_path, "evolution", **EVOLUTION)
    events = payoff_events(store, record.id)
    for event in (events[0], events[7], events[-1]):
        matches = list(replay_matches(record, events, crew, event.round))
        assert [one.group for one in matches] == list(range(8))
        assert np.mean([one.match.actions for one in matches]) == event.details["cooperation"]
        earned: dict[str, list[float]] = {}
        for one in matches:
            for seat, payoff in zip(one.seats, one.match.payoffs.mean(axis=0), strict=True):
                earned.setdefault(seat["gene"], []).append(payoff)
        assert {gene: np.mean(own) for gene, own in earned.items()} == pytest.approx(event.payoffs)
        seats = [seat["agent"] for one in matches for seat in one.seats]
        assert sorted(seats) == sorted([*range(16)] * 2)


async def test_one_match_is_the_same_alone_and_among_all(store: Store, crew: Crew, tmp_path: Path) -> None:
    record = await run(store, tmp_path, "evolution", **EVOLUTION)
    events = payoff_events(store, record.id)
    every = list(replay_matches(record, events, crew, 10))
    [alone] = replay_matches(record, events, crew, None, 5)
    assert alone.as_json() == every[5].as_json()
    assert alone.step == 10
    assert sum(row["payoff"] for row in alone.rows()) == pytest.approx(alone.match.payoffs.sum())


async def test_matches_of_a_mixture_have_its_welfare(store: Store, crew: Crew, tmp_path: Path) -> None:
    record = await run(store, tmp_path, "selfplay", samples=6)
    events = payoff_events(store, record.id)
    matches: list[Replayed] = list(replay_matches(record, events, crew, 2))
    [event] = [event for event in events if event.details["selfish"] == 2]
    assert np.mean([one.match.payoffs for one in matches]) == pytest.approx(event.payoffs["welfare"])
    assert np.mean([one.match.actions for one in matches]) == event.details["cooperation"]
    genes = ["one/collective"] * 2 + ["one/exploitative"] * 2
    assert all([seat["gene"] for seat in one.seats] == genes for one in matches)


async def test_a_match_that_is_not_there_is_refused(store: Store, crew: Crew, tmp_path: Path) -> None:
    record = await run(store, tmp_path, "evolution", **EVOLUTION)
    events = payoff_events(store, record.id)
    with pytest.raises(UsageError, match="has no generation 13; it has 0 to 12"):
        list(replay_matches(record, events, crew, 13))
    with pytest.raises(UsageError, match="generation 10 has the groups 0 to 7, not 8"):
        list(replay_matches(record, events, crew, 10, 8))
    with pytest.raises(UsageError, match="has no recorded generation yet"):
        list(replay_matches(record, [], crew))
    changed = tmp_path / "common-pool" / "one.py"
    changed.write_text(changed.read_text() + "# changed")
    with closing(Crew(processes=1)) as later, pytest.raises(UsageError, match="have changed since this run began"):
        list(replay_matches(record, events, later, 10, 0))
