"""Runs as a log of Inspect, read by Inspect itself, in a separate environment: its dependencies differ."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from labmates.api import load, show
from labmates.errors import UsageError
from labmates.records.store import Store
from labmates_doors.exports.inspect_log import write_inspect_log
from tests.support.plugins import ROOT

INSPECT = ROOT / ".venv-inspect" / "bin" / "python"

READ = """
import json, sys
from inspect_ai.event import event_tree
from inspect_ai.log import read_eval_log

def spans(tree):
    return {node.name: spans(node.children) for node in tree if hasattr(node, "children")}

log = read_eval_log(sys.argv[1])
samples = {
    sample.id: {
        "scores": {name: score.value for name, score in sample.scores.items()},
        "reasons": [score.explanation for score in sample.scores.values()],
        "usage": {name: usage.model_dump() for name, usage in sample.model_usage.items()},
        "calls": [[m.text for m in e.input] for e in sample.events if e.event == "model"],
        "replies": [e.output.completion for e in sample.events if e.event == "model"],
        "tools": [[e.function, e.result] for e in sample.events if e.event == "tool"],
        "spans": spans(event_tree(sample.events)),
    }
    for sample in log.samples
}
events = {sample.id: len(sample.events) for sample in log.samples}
means = {score.name: score.metrics["mean"].value for score in log.results.scores}
print(json.dumps({"task": log.eval.task, "samples": samples, "means": means, "events": events}))
"""


@pytest.mark.skipif(not INSPECT.exists(), reason="`make test-all` installs Inspect")
async def test_inspect_reads_the_numbers_texts_and_spans_of_the_record(played: Store, tmp_path: Path) -> None:
    path = tmp_path / "runs.eval"
    assert write_inspect_log(played, str(path), played.runs) == 3
    log = json.loads(await asyncio.to_thread(lambda: subprocess.check_output([INSPECT, "-c", READ, path])))
    dump = [str(INSPECT.with_name("inspect")), "log", "dump", str(path)]
    dumped = json.loads(await asyncio.to_thread(lambda: subprocess.check_output(dump)))
    assert {sample["id"]: len(sample["events"]) for sample in dumped["samples"]} == log["events"]
    messages = load("messages", store=played.url)
    for run in (show(record.id, store=played.url) for record in played.runs()):
        sample, mine = log["samples"][run.id], messages[messages["run"] == run.id]
        judged = {f"{s.judge}/{s.metric}": s.value for s in played.scores(run.id) if s.value is not None}
        assert sample["scores"] == {**run.metrics, **judged}
        assert {s.reason for s in played.scores(run.id)} - {""} <= set(sample["reasons"])
        [usage] = sample["usage"].values()
        assert usage["total_tokens"] == run.usage.input_tokens + run.usage.output_tokens
        replies = mine[mine["finish"].notna()]
        assert sample["replies"] == replies["content"].to_list()
        assert [len(call) for call in sample["calls"]] == replies["place"].to_list()
        sent = {text for call in sample["calls"] for text in call}
        assert set(mine[mine["role"].isin(["system", "user", "tool"])]["content"]) <= sent
        tools = [event for event in played.events(run.id) if event.type == "tool_call"]
        assert [name for name, _ in sample["tools"]] == [event.tool for event in tools]
        agents = {event.agent for event in played.events(run.id) if event.type == "llm_call"}
        teams = {event.team for event in played.events(run.id) if event.type == "llm_call"}
        assert set(sample["spans"]) == teams
        assert {agent for team in sample["spans"].values() for agent in team} == agents
    [lab] = played.runs(kind="science")
    assert log["means"]["verified/skill"] == lab.metrics["skill"]


async def test_an_empty_choice_is_refused_and_leaves_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no started run"):
        write_inspect_log(store, str(tmp_path / "x.eval"), store.runs)
    with pytest.raises(UsageError, match="can't write"):
        write_inspect_log(store, "/dev/null/x.eval", store.runs)
    assert not (tmp_path / "x.eval").exists()
