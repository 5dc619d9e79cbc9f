"""Runs to export: a lab with code, and a game."""

from __future__ import annotations

from typing import Any

import pytest

from labmates.api import arun
from labmates.records.store import Store


@pytest.fixture
async def played(store: Store) -> Store:
    """A store with a run of each."""
    lab: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty", "team_size": 2}
    game: dict[str, Any] = {"game": "public-goods", "model": "scripted:fair-share", "group_size": 2, "groups": 1}
    await arun("science", store=store.url, settings={"sandbox": "unsafe-local"}, max_turns=3, **lab)
    await arun("game", store=store.url, rounds=2, **game)
    return store
