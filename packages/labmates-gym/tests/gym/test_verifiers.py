"""verifiers plays the environments, in a separate Python environment: it needs another openai."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labmates_gym.parallel import LabmatesEnv
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.plugins import ROOT

EVAL = ROOT / ".venv-gym" / "bin" / "vf-eval"
pytestmark = [
    pytest.mark.skipif(not EVAL.exists(), reason="`make test-all` installs verifiers"),
    pytest.mark.slow("packages/labmates-gym/tests/gym/test_serve.py"),
]


def evaluate(behaviour: Any, folder: Path, *options: str) -> tuple[list[dict[str, Any]], OpenAIServer]:
    """The episodes of an evaluation against a server with this behaviour."""
    with OpenAIServer(behaviour) as server:
        done = subprocess.run(
            [
                EVAL, "labmates-gym", "--model", "policy", "--client.base-url", server.base_url,
                "--client.api-key-var", "KEY", "--no-push", "--no-rich", "--output-dir", folder,
                "--env.taskset.python", sys.executable, *options,
            ],
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'packages' / 'labmates-gym'}", "KEY": "none"},
            capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [file] = folder.rglob("traces.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()], server


def test_each_seat_has_a_trace_with_its_rewards(tmp_path: Path) -> None:
    def behaviour(request: Any, _number: int) -> Answer:
        [*_, last] = [line for line in request["messages"][-1]["content"].splitlines() if "You are" in line]
        return Answer(text='{"group": 10, "global": 0}' if "A1" in last else '{"group": 0, "global": 0}')

    episodes, server = evaluate(
        behaviour, tmp_path, "--env.taskset.kinds", '["game"]', "--env.reward", "difference",
        "--select.include.names", '["game/public-goods"]',
    )  # fmt: skip
    [episode] = episodes
    condition = episode["task"]["data"]["condition"]
    env = LabmatesEnv("game", reward="difference", **condition)
    env.reset(seed=episode["task"]["data"]["seed"])
    zero = '{"group": 0, "global": 0}'
    while env.agents:
        *_, infos = env.step({agent: zero if agent != "A1" else '{"group": 10, "global": 0}' for agent in env.agents})
    traces = {trace["task"]["data"]["seat"]: trace for trace in episode["traces"]}
    assert traces.keys() == infos.keys()
    assert len(server.requests) == 3 * len(traces)
    for seat, trace in traces.items():
        assert trace["ok"]
        assert trace["rewards"]["difference"]["score"] == infos[seat]["rewards"]["difference"]
        assert trace["metrics"]["own"] == infos[seat]["rewards"]["own"]
        assert trace["metrics"]["failed_decision_rate"] == 0
        assert sum(node["message"]["role"] == "assistant" for node in trace["nodes"]) == 3


def test_a_seat_whose_model_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    def behaviour(request: Any, _number: int) -> Answer:
        is_first = "You are player 1." in request["messages"][-1]["content"]
        return Answer(status=400, body="refused") if is_first else Answer(text='{"A0": 100, "A1": 0}')

    names = '["dilemma/prisoners/none"]'
    episodes, _ = evaluate(behaviour, tmp_path, "--env.taskset.kinds", '["dilemma"]', "--select.include.names", names)
    [episode] = episodes
    traces = {trace["task"]["data"]["seat"]: trace for trace in episode["traces"]}
    assert {seat: trace["ok"] for seat, trace in traces.items()} == {"1": False, "2": True}
    assert not episode["ok"]
    assert traces["2"]["metrics"]["failed_decision_rate"] == 0.5
