"""Tasks of Inspect, run by its own command, in a separate environment: its dependencies differ from ours."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun, replay
from labmates.models.scripted import BASELINES
from labmates.records.store import Store
from labmates.studies.result import Run
from tests.support.openai_server import OpenAIServer, serve_model
from tests.support.plugins import ROOT

BIN = ROOT / ".venv-inspect" / "bin"
pytestmark = pytest.mark.skipif(not BIN.exists(), reason="`make test-all` installs Inspect")

# Inspect's mock model counts tokens by a vocabulary that it downloads.
COMMAND = """
import sys, tiktoken

class Words:
    def encode(self, text, **_):
        return text.split()

tiktoken.get_encoding = lambda name: Words()
from inspect_ai._cli.main import main

try:
    main()
except SystemExit as end:
    if end.code:
        raise

import json
from inspect_ai.event import event_tree
from inspect_ai.log import list_eval_logs, read_eval_log

[info] = list_eval_logs("logs")
log = read_eval_log(info, resolve_attachments=True)
spans = lambda tree: [n for node in tree if hasattr(node, "children") for n in [node, *spans(node.children)]]
print(json.dumps({
    "status": log.status,
    "task": log.eval.task,
    "error": log.error and log.error.message,
    "usage": {name: usage.model_dump() for name, usage in log.stats.model_usage.items()},
    "samples": [{
        "run": sample.metadata.get("labmates"),
        "error": sample.error and sample.error.message,
        "completion": sample.output.completion,
        "scores": {name: value for score in (sample.scores or {}).values() for name, value in score.value.items()},
        "reasons": [score.explanation for score in (sample.scores or {}).values()],
        "prompts": [[m.text for m in e.input] for e in sample.events if e.event == "model"],
        "agents": [node.name for node in spans(event_tree(sample.events)) if node.type == "agent"],
    } for sample in log.samples],
}))
"""


async def evaluated(folder: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run ``inspect eval``, and return its log as Inspect's loader reads it."""

    def work() -> dict[str, Any]:
        command = [str(BIN / "python"), "-c", COMMAND, "eval", *arguments, "--display", "none", "--log-dir", "logs"]
        more = {"LABMATES_STORE": f"sqlite:///{folder}/runs.db", **environment}
        done = subprocess.run(command, env=os.environ | more, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        log: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return log

    return await asyncio.to_thread(work)


@pytest.mark.slow("packages/labmates-doors/tests/doors/exports/test_inspect_log.py")
@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("science", ["task=anomaly", "difficulty=easy", "team_size=2", "max_turns=1", "sandbox=unsafe-local"]),
        ("game", ["game=weakest-link", "rounds=1", "group_size=2", "replicates=2", "seed=5"]),
        ("dilemma", ["game=prisoners", "mechanism=contract"]),
    ],
)
async def test_conditions_run_with_inspects_mock_model(task: str, given: list[str], tmp_path: Path) -> None:
    options = [option for value in given for option in ("-T", value)]
    log = await evaluated(tmp_path, f"labmates/{task}", *options, "--model", "mockllm/model")
    assert (log["status"], log["task"]) == ("success", f"labmates/{task}"), log["error"]
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        runs = {run.id: run for run in store.runs()}
        assert sorted(run.seed for run in runs.values()) == ([5, 6] if task == "game" else [0])
        assert {sample["run"]["id"] for sample in log["samples"]} == set(runs)
        for sample in log["samples"]:
            run = runs[sample["run"]["id"]]
            judged = {f"{s.judge}/{s.metric}": s.value for s in store.scores(run.id) if s.value is not None}
            assert sample["scores"] == run.metrics | judged
            assert run.models == ["inspect:mockllm/model"]
        [usage] = log["usage"].values()
        assert usage["input_tokens"] == sum(run.usage.input_tokens for run in runs.values())
        assert usage["output_tokens"] == sum(run.usage.output_tokens for run in runs.values())


@pytest.mark.slow("packages/labmates-doors/tests/doors/exports/test_inspect_log.py")
async def test_a_lab_with_tools_ends_as_it_does_without_inspect(tmp_path: Path) -> None:
    lab: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "team_size": 2, "max_turns": 3}
    [own] = await arun(
        "science",
        model="scripted:hasty",
        store=f"sqlite:///{tmp_path}/own.db",
        settings={"sandbox": "unsafe-local"},
        **lab,
    )
    options = [option for name, value in lab.items() for option in ("-T", f"{name}={value}")]
    with OpenAIServer(serve_model(BASELINES.get("hasty")(), latency=0.0)) as server:
        log = await evaluated(
            tmp_path,
            *("labmates/science", *options, "-T", "sandbox=unsafe-local", "--model", "openai-api/here/test-model"),
            HERE_API_KEY="none",
            HERE_BASE_URL=server.base_url,
        )
    assert log["status"] == "success", log["error"]
    [sample] = log["samples"]
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        run = Run.of(store.run(sample["run"]["id"]), store)
    assert {name: run.metrics[name] for name in ("accuracy", "skill", "completeness", "worked")} == {
        name: own.metrics[name] for name in ("accuracy", "skill", "completeness", "worked")
    }
    assert run.usage.tool_calls == own.usage.tool_calls > 0
    assert sample["completion"] == run.report == own.report
    calls = [event for event in run.events if event.type == "llm_call"]
    assert len(calls) == len(sample["prompts"]) == run.usage.llm_calls
    assert sorted(sample["agents"]) == sorted(call.agent for call in calls)  # members of a team work at the same time
    prompts = [[run.bodies[number]["content"] for number in call.messages] for call in calls]
    assert sorted(sample["prompts"]) == sorted(prompts)
    [usage] = log["usage"].values()
    assert usage["input_tokens"] == run.usage.input_tokens
    reasons = {score.reason for score in run.scores if score.reason and score.value is not None}
    assert all(reason in sample["reasons"][0] for reason in reasons)
    assert (await asyncio.to_thread(lambda: replay(run.id, store=f"sqlite:///{tmp_path}/runs.db"))).is_same


@pytest.mark.slow("packages/labmates-doors/tests/doors/exports/test_inspect_log.py")
async def test_a_wrong_parameter_is_told(tmp_path: Path) -> None:
    log = await evaluated(tmp_path, "labmates/game", "-T", "game=chess", "--model", "mockllm/model")
    assert log["status"] == "error"
    assert "chess" in json.dumps(log)
