"""Environments for programs in another Python environment."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from labmates_gym.catalog import environments
from labmates_gym.parallel import LabmatesEnv
from labmates_gym.serve import Served

CONDITION = {"game": "public-goods", "groups": 1, "group_size": 3, "rounds": 2}
REPLY = {"content": '{"group": 3, "global": 1}'}


def test_a_process_plays_as_the_environment_does() -> None:
    env = LabmatesEnv("game", reward="difference", **CONDITION)
    env.reset(seed=4)
    while env.agents:
        *_, infos = env.step(dict.fromkeys(env.agents, REPLY["content"]))
    replies = {"do": "step", "replies": dict.fromkeys(env.possible_agents, REPLY)}
    reset = {"do": "reset", "kind": "game", "condition": CONDITION, "seed": 4}
    requests = [{"do": "list", "split": "game"}, {"do": "nothing"}, replies, reset, replies, replies]
    done = subprocess.run(
        [sys.executable, "-m", "labmates_gym.serve"],
        input="".join(f"{json.dumps(request)}\n" for request in requests),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    listed, unknown, early, first, second, end = map(json.loads, done.stdout.splitlines())
    assert [each["name"] for each in listed["environments"]] == [each.name for each in environments("game")]
    assert "list, reset, step" in unknown["error"]
    assert "reset first" in early["error"]
    assert first["seats"] == ["A1", "A2", "A3"] == list(second["asked"])
    roles = [message["role"] for message in first["asked"]["A1"]["messages"]]
    assert roles == ["system", "user"]
    expected = {name: {seat: info["rewards"][name] for seat, info in infos.items()} for name in infos["A1"]["rewards"]}
    assert end == {"rewards": expected, "metrics": infos["A1"]["metrics"]}
    assert expected.keys() == {"own", "welfare", "difference"}


def test_a_reply_may_call_tools() -> None:
    served = Served()
    call: dict[str, Any] = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    served.answer({"do": "reset", "kind": "game", "condition": {**CONDITION, "repair_turns": 0}, "seed": 0})
    reply = {"content": None, "tool_calls": [call]}
    answer = served.answer({"do": "step", "replies": dict.fromkeys(["A1", "A2", "A3"], reply)})
    served.close()
    assert "no valid decision" in answer["asked"]["A1"]["messages"][1]["content"]
