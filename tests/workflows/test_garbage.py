from __future__ import annotations

from pathlib import Path

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.api import arun
from labmates.records.events import ChargeEvent, FailedReplyEvent, LLMCallEvent
from labmates.records.store import Store


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")
async def test_runs_of_garbage_count_every_failed_reply_without_overdraft(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    runs = await arun(
        "science",
        store=url,
        settings={"sandbox": "unsafe-local"},
        replicates=25,
        task="anomaly",
        difficulty="easy",
        model="scripted:garbage",
        budget="0.10",
        max_turns=3,
        deliberation_rounds=1,
        max_output_tokens=1024,
    )
    assert {run.status for run in runs} <= {"completed", "exhausted"}
    store = Store(url)
    for run in runs:
        events = store.events(run.id)
        charged = sum(event.amount for event in events if isinstance(event, ChargeEvent))
        assert run.budget is not None
        assert charged <= 100_000
        assert float(run.budget["spent"]) == charged / 1e6
        faulty = {event.step for event in events if isinstance(event, LLMCallEvent) and event.faults}
        failed = [event.step for event in events if isinstance(event, FailedReplyEvent)]
        assert faulty <= set(failed)
        assert len(failed) == len(set(failed)) == run.usage.failed_replies > 0
    store.close()
