"""What is told of runs while they go on."""

from __future__ import annotations

from labmates.records.events import PayoffEvent
from labmates.records.run import RunRecord
from labmates.studies.progress import Lines


def test_the_progress_of_one_run_has_its_latest_step_also_without_calls() -> None:
    run = RunRecord("r1", "selfplay", "key", 0, 0, {}, ["scripted:author"])
    lines = Lines([run], print)
    assert lines.standing().startswith("0 of 1 runs have ended: 0 calls")
    lines.watch(run, PayoffEvent(step="mixture/3", match="mixture/3", payoffs={"welfare": 1.0}))
    assert lines.standing().startswith("step mixture/3: 0 calls, 0 tokens, $0.0000 spent, ")
