"""Runs to export: a lab with code, a game, and one with hostile replies."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from labmates.api import arun
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.records.store import Store

HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[2J\x00 =1+1 \ud800 {{7*7}} \u202e \U0001f600"


class Hostile(ScriptedModel):
    """Replies with text that no page, terminal, spreadsheet or encoder may take for its own."""

    baseline: ClassVar[str] = "hostile"

    def compose(self, heard: Heard) -> Draft:
        return Draft(HOSTILE)


@pytest.fixture
async def played(store: Store) -> Store:
    """A store with a run of each."""
    BASELINES.register("hostile", Hostile)
    lab: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty", "team_size": 2}
    game: dict[str, Any] = {"game": "public-goods", "group_size": 2, "groups": 1, "rounds": 2}
    await arun("science", store=store.url, settings={"sandbox": "unsafe-local"}, max_turns=3, **lab)
    await arun("game", store=store.url, model="scripted:fair-share", **game)
    await arun("game", store=store.url, model="scripted:hostile", **game)
    return store
