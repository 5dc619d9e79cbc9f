"""Trajectories, read by Harbor's own models and validator."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from labmates.api import load, show
from labmates.budgets.money import parse_dollars
from labmates.errors import UsageError
from labmates.records.store import Store
from labmates_doors.exports.atif import write_trajectories
from tests.support.plugins import ROOT

HARBOR = ROOT / ".venv-inspect" / "bin" / "python"

READ = """
import json, sys
from pathlib import Path
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator

read = {}
for path in Path(sys.argv[1]).iterdir():
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.errors
    run = Trajectory.model_validate_json(path.read_text())
    refs = [r.trajectory_id for r in run.steps[0].observation.results[0].subagent_trajectory_ref]
    seats = {seat.trajectory_id: seat for seat in run.subagent_trajectories}
    assert refs == list(seats)
    read[run.session_id] = {
        "totals": run.final_metrics.model_dump(),
        "seats": {seat.agent.name: [s.model_dump() for s in seat.steps] for seat in seats.values()},
    }
print(json.dumps(read))
"""


@pytest.mark.skipif(not HARBOR.exists(), reason="`make test-all` installs Harbor's models")
async def test_harbor_reads_the_numbers_and_texts_of_the_record(played: Store, tmp_path: Path) -> None:
    assert write_trajectories(played, str(tmp_path / "out"), played.runs) == 3
    read = json.loads(await asyncio.to_thread(lambda: subprocess.check_output([HARBOR, "-c", READ, tmp_path / "out"])))
    messages = load("messages", store=played.url)
    for run in (show(record.id, store=played.url) for record in played.runs()):
        totals, seats = read[run.id]["totals"], read[run.id]["seats"]
        assert totals["total_prompt_tokens"] == run.usage.input_tokens
        assert totals["total_completion_tokens"] == run.usage.output_tokens
        if run.budget:
            assert round(totals["total_cost_usd"] * 1e6) == parse_dollars(run.budget["spent"])
        assert totals["extra"]["metrics"] == run.metrics
        steps = [step for seat in seats.values() for step in seat]
        assert sum(step["llm_call_count"] or 0 for step in steps) == run.usage.llm_calls
        mine = messages[messages["run"] == run.id]
        for agent, seat in seats.items():
            prompts = [message.text for message in run.messages(agent) if message.role in ("system", "user")]
            assert [step["message"] for step in seat if step["source"] != "agent"] == prompts
            replies = mine[(mine["agent"] == agent) & mine["finish"].notna()]["content"]
            assert [step["message"] for step in seat if step["source"] == "agent"] == replies.to_list()
        tools = [event for event in played.events(run.id) if event.type == "tool_call"]
        results = [result for step in steps if step["observation"] for result in step["observation"]["results"]]
        assert len(results) == len(tools)
        asked = [tool["function_name"] for step in steps for tool in step["tool_calls"] or []]
        wanted = [tool["name"] for text in mine["tool_calls"].dropna() for tool in json.loads(text)]
        assert sorted(asked) == sorted(wanted)


async def test_an_empty_choice_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no started run"):
        write_trajectories(store, str(tmp_path / "out"), store.runs)
    assert not (tmp_path / "out").exists()


async def test_a_place_that_can_not_be_written_is_told(played: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't write"):
        write_trajectories(played, str(tmp_path / "file" / "out"), played.runs)
