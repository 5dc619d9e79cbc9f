"""Runs as trajectories of ATIF 1.8, the Agent Trajectory Interchange Format of Harbor and Terminal-Bench.

A run is a file: its trajectory has one step, which refers to an embedded trajectory for each seat. A seat's steps are
the messages of its calls in order, without what a prompt repeats; what a tool returned is the observation of the step
that called it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.records.events import LLMCallEvent, ScoreEvent, ToolCallEvent
from labmates.records.frames import new_messages
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.util.grouping import grouped
from labmates_doors.exports.recorded import MICRO, Recorded, arguments_of

_VERSION: Final = "ATIF-v1.8"
_Data = dict[str, Any]


def write_trajectories(store: Store, out: str, runs: Callable[[], Iterable[RunRecord]]) -> int:
    """Write a file ``RUN.json`` for each run into a folder and return the number of runs.

    Raises `UsageError` if there is no run, or the files can't be written.
    """
    folder, number = Path(out), 0
    try:
        for run in runs():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{run.id}.json").write_text(json.dumps(_trajectory(Recorded(store, run))), encoding="utf-8")
            number += 1
    except OSError as error:
        raise UsageError(f"can't write '{folder}': {error.strerror}") from error
    if not number:
        raise UsageError("no started run is chosen, so there is no trajectory")
    return number


def _trajectory(recorded: Recorded) -> _Data:
    run, seats = recorded.run, _seats(recorded)
    refs = [{"trajectory_id": seat["trajectory_id"], "session_id": run.id} for seat in seats]
    first = {
        "step_id": 1,
        "timestamp": _time(run.started),
        "source": "system",
        "message": json.dumps(run.condition, ensure_ascii=False),
        **({"observation": {"results": [{"subagent_trajectory_ref": refs}]}} if refs else {}),
    }
    scores = {f"{e.judge}/{e.metric}": e.value for e in recorded.events if isinstance(e, ScoreEvent)}
    told = {name: getattr(run, name) for name in ("kind", "study", "key", "replicate", "seed", "status", "invalid")}
    return {
        "schema_version": _VERSION,
        "session_id": run.id,
        "trajectory_id": run.id,
        "agent": {"name": "labmates", "version": __version__},
        "steps": [first],
        "final_metrics": _totals([step for seat in seats for step in seat["steps"]], 1)
        | {"extra": {"metrics": run.metrics, "scores": scores}},
        "extra": told | {"error": run.error, "digest": run.digest},
        **({"subagent_trajectories": seats} if seats else {}),
    }


def _seats(recorded: Recorded) -> list[_Data]:
    seats: dict[tuple[str, str], _Seat] = {}
    for place, calls in grouped(((call.team, call.agent), call) for call in recorded.calls).items():
        seats[place] = seat = _Seat(recorded)
        for call, new in new_messages(calls, recorded.bodies):
            seat.add(call, new)
    return [
        {
            "schema_version": _VERSION,
            "session_id": recorded.run.id,
            "trajectory_id": "/".join(filter(None, (recorded.run.id, team, agent))),
            "agent": {"name": agent, "version": __version__, "extra": {"team": team}},
            "steps": seat.steps,
            "final_metrics": _totals(seat.steps, len(seat.steps)),
        }
        for (team, agent), seat in seats.items()
    ]


class _Seat:
    """The steps of a seat."""

    def __init__(self, recorded: Recorded) -> None:
        self.steps: list[_Data] = []
        self._recorded = recorded
        self._tools = {e.step: e for e in recorded.events if isinstance(e, ToolCallEvent)}
        self._asked: dict[str, _Data] = {}  # the newest step with a tool call of this id

    def add(self, call: LLMCallEvent, new: Iterable[int]) -> None:
        """Add the new messages of a call, and its reply."""
        for number in new:
            self._heard(self._recorded.bodies[number], call.at - call.seconds)
        reply, reasoning = self._recorded.bodies[call.reply], self._recorded.reasoning(call)
        tools = reply.get("tool_calls", [])
        cost = self._recorded.costs.get(call.step)
        step = self._step(
            call.at,
            "agent",
            reply["content"],
            model_name=call.model,
            metrics={
                "prompt_tokens": call.input_tokens,
                "completion_tokens": call.output_tokens,
                "cached_tokens": call.cached_tokens,
                **({} if cost is None else {"cost_usd": cost / MICRO}),
                "extra": {"reasoning_tokens": call.reasoning_tokens, "finish": call.finish, "seed": call.seed},
            },
            llm_call_count=1,
            extra={"step": call.step},
        )
        if reasoning is not None:
            step["reasoning_content"] = reasoning
        if tools:
            step["tool_calls"] = [
                {"tool_call_id": tool["id"], "function_name": tool["name"], "arguments": arguments_of(tool["args"])}
                for tool in tools
            ]
        for place, tool in enumerate(tools):
            self._asked[tool["id"]] = step
            if (used := self._tools.get(f"{call.step}/{place}")) is not None:
                self._observed(step, tool["id"], str(self._recorded.bodies[used.result]))

    def _heard(self, said: _Data, at: float) -> None:
        match said["role"]:
            case "system" | "user" as role:
                self._step(at, role, said["content"])
            case "tool":
                self._observed(self._asked[said["tool_call_id"]], said["tool_call_id"], said["content"])
            case _:  # it stands for a reply that the model did not give
                self._step(at, "agent", said["content"], llm_call_count=0)

    def _observed(self, step: _Data, call: str, text: str) -> None:
        results = step.setdefault("observation", {"results": []})["results"]
        if call not in [result["source_call_id"] for result in results]:
            results.append({"source_call_id": call, "content": text})

    def _step(self, at: float, source: str, message: str, **more: Any) -> _Data:
        step = {"step_id": len(self.steps) + 1, "timestamp": _time(at), "source": source, "message": message, **more}
        self.steps.append(step)
        return step


def _totals(steps: list[_Data], number: int) -> _Data:
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    sums = {name: sum(each.get(name, 0) for each in metrics) for name in ("prompt_tokens", "completion_tokens")}
    return {
        **{f"total_{name}": total for name, total in sums.items()},
        "total_cached_tokens": sum(each["cached_tokens"] for each in metrics),
        "total_cost_usd": round(sum(each.get("cost_usd", 0.0) for each in metrics), 6),
        "total_steps": number,
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
