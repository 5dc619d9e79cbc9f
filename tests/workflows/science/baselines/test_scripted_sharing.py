"""The baseline that hands over keys: a team of it wins where one part alone tells nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from labmates.api import arun
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent
from labmates.records.store import Store
from labmates.tasks.evidence import divide, instruments_of
from labmates.tasks.registry import get_task
from labmates.workflows.science.baselines.cells import restoring
from labmates.workflows.science.baselines.sharing import KEYS

SHARED: dict[str, Any] = {
    "task": "anomaly", "difficulty": "easy", "evidence": "split:1", "model": "scripted:sharing", "budget": "1",
    "code_timeout": 300,
}  # fmt: skip


def test_the_cell_that_restores_tables_does_what_the_module_does() -> None:
    task = get_task("anomaly")
    parts = [part.frame for part in divide(task, 0, "easy", 1.0)]
    names: dict[str, Any] = {}
    exec(compile(restoring().code, "restoring", "exec"), names)
    declared = instruments_of(task)
    keys = [declared.hand_over(part) for part in parts]
    assert [names["hand_over"](part) for part in parts] == keys
    whole = declared.combine(parts[0], keys[1:])
    assert whole is not None
    pd.testing.assert_frame_equal(names["restored"](parts[0], keys[1:]), whole)


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_sharing.py")
@pytest.mark.needs("docker")
async def test_a_team_that_shares_reaches_one_agent_with_everything(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    scores = {}
    with Store(url) as store:
        for arm in ("restricted", "oracle", "mute", "team"):
            team: dict[str, Any] = {"organisation": "decentralised", "team_size": 3} if arm in ("mute", "team") else {}
            crew = team if arm == "team" else {**team, "arm": arm}
            [run] = await arun("science", store=url, **SHARED, **crew)
            assert run.status == "completed"
            scores[arm] = run.metrics["accuracy"]
        events, bodies = store.events(run.id), Bodies(store.bodies(run.id))
    artifacts = [event for event in events if isinstance(event, ArtifactEvent) and event.name.startswith(KEYS)]
    handed = {event.name: json.loads(bodies.text(event.content)) for event in artifacts}
    assert {name: set(keys) for name, keys in handed.items()} == {
        "keys_of_peer_2": {"blocks"},
        "keys_of_peer_3": {"names", "scales"},
    }
    assert run.metrics["hand_overs_used"] == 2  # the keys of both others, by the holder of the readings
    assert scores["restricted"] < 0.2
    assert scores["mute"] == pytest.approx(scores["restricted"], abs=0.05)
    assert scores["oracle"] > 0.7
    assert scores["team"] == pytest.approx(scores["oracle"], abs=0.05)
