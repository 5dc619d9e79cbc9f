"""Profiles as a function: what is played, what is taken from the store, and what is said when it can't be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.api import arun
from labmates.models.scripted.base import Draft, Heard
from labmates.records.store import Store
from tests.support.puppet import puppet

SMALL: dict[str, Any] = {"group_size": 2, "rounds": 1}


def test_a_profile_plays_what_the_store_lacks(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labmates.db"
    asyncio.run(arun("game", store=url, game="o-ring", model="scripted:defect", **SMALL))
    [profile] = labmates.profile(["scripted:defect"], games=["o-ring"], simulations=3, store=url, **SMALL)
    [ring] = profile.games
    assert ring.level is not None
    assert (ring.level.value, ring.simulations, ring.calls) == (0, 3, 4)
    assert ring.cost > 0
    store = Store(url)
    assert sorted(run.replicate for run in store.runs(kind="game")) == [0, 1, 2]
    store.close()


def test_a_simulation_that_failed_is_told_and_gone_on_with_at_the_next_time(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labmates.db"
    gone = True

    def answer(heard: Heard) -> Draft:
        if gone and heard.seed % 3 == 0:
            raise labmates.LabmatesError("the model is gone")
        return Draft('{"effort": 5}')

    with puppet(answer) as model:
        with pytest.raises(labmates.LabmatesError, match=r"of 4 runs failed: the model is gone"):
            labmates.profile([model], games=["weakest-link"], simulations=4, store=url, **SMALL)
        store = Store(url)
        before = {run.id: run.usage.llm_calls for run in store.runs()}
        gone = False
        [profile] = labmates.profile([model], games=["weakest-link"], simulations=4, store=url, **SMALL)
        assert profile.games[0].simulations == 4
        assert {run.id for run in store.runs()} == set(before), "the same runs went on"
        assert {run.usage.llm_calls for run in store.runs()} == {4}
        store.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"simulations": 0}, "simulations must be at least 1"),
        ({"games": ["chess"]}, "unknown game 'chess'"),
        ({"group_size": 1}, "group_size"),
        ({"settings": {"models": {"max_concurrent_calls": 0}}}, "max_concurrent_calls"),
    ],
)
def test_a_wrong_profile_is_told_what_is_wrong(tmp_path: Path, more: dict[str, object], said: str) -> None:
    with pytest.raises(labmates.UsageError, match=said):
        labmates.profile(["scripted:random"], store=f"sqlite:///{tmp_path}/labmates.db", **more)
