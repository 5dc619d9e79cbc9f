"""Environments for programs in another Python environment: JSON lines on standard input and output.

    python -m labmates_gym.serve

Requests are ``{"do": "list", "split": …}``, ``{"do": "reset", "kind": …, "condition": {…}, "seed": …}`` and ``{"do":
"step", "replies": {SEAT: MESSAGE}}``; an answer has ``environments``, or ``seats`` and ``asked``, by seat the
``messages`` and ``tools`` in OpenAI's form, or at the end ``rewards`` by name and seat, and ``metrics``; or ``error``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages

from labmates.errors import LabmatesError, UsageError, unknown_name
from labmates_gym.catalog import environments
from labmates_gym.parallel import Infos, LabmatesEnv

Json = dict[str, Any]


class Served:
    """One environment at a time, with the rewards of all names."""

    def __init__(self) -> None:
        self._env: LabmatesEnv | None = None

    def answer(self, request: Mapping[str, Any]) -> Json:
        """The answer to a request."""
        known: dict[str, Callable[..., Json]] = {"list": _listed, "reset": self._reset, "step": self._step}
        fields = dict(request)
        name = fields.pop("do", "")
        try:
            if name not in known:
                raise unknown_name("request", str(name), known)
            return known[name](**fields)
        except LabmatesError as error:
            return {"error": str(error)}

    def close(self) -> None:
        """End the open episode."""
        if self._env is not None:
            self._env.close()

    def _reset(self, kind: str, condition: Mapping[str, Any], seed: int) -> Json:
        self.close()
        self._env = LabmatesEnv(kind, reward="difference", **condition)
        _, infos = self._env.reset(seed)
        return {"seats": self._env.possible_agents, "asked": _asked(infos)}

    def _step(self, replies: Mapping[str, Mapping[str, Any]]) -> Json:
        if self._env is None:
            raise UsageError("no episode is open; reset first")
        *_, infos = self._env.step({seat: _message(reply) for seat, reply in replies.items()})
        if self._env.agents:
            return {"asked": _asked(infos)}
        names = next(iter(infos.values()))["rewards"]
        rewards = {name: {seat: info["rewards"][name] for seat, info in infos.items()} for name in names}
        return {"rewards": rewards, "metrics": next(iter(infos.values()))["metrics"]}


def _listed(split: Any = None) -> Json:
    return {"environments": [{**asdict(listed), "name": listed.name} for listed in environments(split)]}


def _asked(infos: Infos) -> Json:
    questions = {seat: info["question"] for seat, info in infos.items() if info["question"] is not None}
    return {
        seat: {"messages": convert_to_openai_messages(list(question.messages)), "tools": list(question.tools)}
        for seat, question in questions.items()
    }


def _message(reply: Mapping[str, Any]) -> AIMessage:
    [message] = convert_to_messages([{"role": "assistant", "content": reply.get("content") or "", **_calls(reply)}])
    assert isinstance(message, AIMessage)
    return message


def _calls(reply: Mapping[str, Any]) -> Json:
    return {"tool_calls": reply["tool_calls"]} if reply.get("tool_calls") else {}


def main() -> None:
    """Answer requests until the input ends; what libraries print goes to standard error."""
    served = Served()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            out.write(json.dumps(served.answer(json.loads(line))) + "\n")
            out.flush()
    served.close()


if __name__ == "__main__":
    main()
