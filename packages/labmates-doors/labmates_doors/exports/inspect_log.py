"""Runs as a log of Inspect (``.eval``, version 2 of its format), for ``inspect view`` and its Python interface.

Each run is a sample: teams and agents are spans, with the exact prompts, replies, tool calls, tokens and cost of their
model calls; metrics and the newest score of each judge are scores, with reasons.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from labmates._version import __version__
from labmates.errors import UsageError
from labmates.records.events import Event, FailedReplyEvent, LLMCallEvent, ScoreEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates_doors.exports.recorded import MICRO, Recorded, arguments_of

_VERSION: Final = 2
_ENDS: Final = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
_Data = dict[str, Any]


def write_inspect_log(store: Store, out: str, runs: Callable[[], Iterable[RunRecord]]) -> int:
    """Write runs as one log and return their number.

    Raises `UsageError` if there is no run, or the file can't be written.
    """
    path = Path(out)
    summaries: list[_Data] = []
    written: list[RunRecord] = []
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for run in runs():
                sample = _Sample(Recorded(store, run)).data()
                file.writestr(f"samples/{run.id}_epoch_1.json", json.dumps(sample))
                summaries.append({name: sample[name] for name in _SUMMARY} | {"completed": True})
                written.append(run)
            if written:
                file.writestr("summaries.json", json.dumps(summaries))
                file.writestr("header.json", json.dumps(_header(written, summaries)))
    except OSError as error:
        raise UsageError(f"can't write '{path}': {error.strerror or error}") from error
    if not written:
        path.unlink()
        raise UsageError("no started run is chosen, so the log would be empty")
    return len(written)


_SUMMARY: Final = (
    "id", "epoch", "input", "target", "metadata", "scores", "model_usage", "started_at", "completed_at", "total_time",
)  # fmt: skip


def _header(runs: list[RunRecord], samples: list[_Data]) -> _Data:
    kinds, models = (list(dict.fromkeys(names)) for names in zip(*((r.kind, _model(r)) for r in runs), strict=True))
    first, last = (min(r.started for r in runs), max(r.started + r.seconds for r in runs))
    usage: dict[str, _Data] = {}
    values: dict[str, list[float]] = {}
    for sample in samples:
        for model, counts in sample["model_usage"].items():
            _add(usage.setdefault(model, {}), counts)
        for name, score in sample["scores"].items():
            values.setdefault(name, []).append(score["value"])
    scores = [
        {"name": name, "scorer": name, "metrics": {"mean": {"name": "mean", "value": fmean(many)}}}
        for name, many in values.items()
    ]
    return {
        "version": _VERSION,
        "status": "success",
        "eval": {
            "eval_id": runs[0].id,
            "run_id": runs[0].id,
            "created": _time(first),
            "task": f"labmates/{'+'.join(kinds)}",
            "task_version": __version__,
            "dataset": {"name": "labmates", "samples": len(runs), "sample_ids": [run.id for run in runs]},
            "model": models[0] if len(models) == 1 else "several",
            "config": {"epochs": 1},
            "packages": {"labmates": __version__},
            "metadata": {"studies": sorted({run.study for run in runs if run.study})},
        },
        "plan": {"name": "labmates", "steps": [], "config": {}},
        "results": {"total_samples": len(runs), "completed_samples": len(runs), "scores": scores},
        "stats": {"started_at": _time(first), "completed_at": _time(last), "model_usage": usage},
    }


class _Sample:
    """A run as a sample of a log."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded, self.run = recorded, recorded.run
        self.events, self.bodies = recorded.events, recorded.bodies
        self.spans: dict[tuple[str, ...], str] = {}

    def data(self) -> _Data:
        run, calls = self.run, self.recorded.calls
        usage: dict[str, _Data] = {}
        for call in calls:
            _add(usage.setdefault(call.model, {}), self._usage(call))
        shown = [item for event in self.events for item in self._shown(event)]
        last = calls[-1] if calls else None
        ended = {"error": _fault(run.error)} if run.error else {}
        return {
            "id": run.id,
            "epoch": 1,
            "input": json.dumps(run.condition, indent=1, ensure_ascii=False),
            "target": "",
            "messages": [*map(_message, self.recorded.messages(last)), self._reply(last)] if last else [],
            "output": self._output(last) if last else {"model": _model(run), "choices": []},
            "scores": self._scores(),
            "metadata": {
                **{name: getattr(run, name) for name in ("kind", "study", "key", "replicate", "seed", "status")},
                **{name: getattr(run, name) for name in ("invalid", "bill", "digest", "version", "origin")},
                "condition": run.condition,
            },
            "store": {},
            "events": [*shown, *(self._event("span_end", self.events[-1].at, id=span) for span in self.spans.values())],
            "model_usage": usage,
            "started_at": _time(run.started),
            "completed_at": _time(run.started + run.seconds),
            "total_time": run.seconds,
            "working_time": run.seconds,
            **ended,
        }

    def _shown(self, event: Event) -> Iterator[_Data]:
        """What a log shows of an event: what a model or a tool did, and why a reply was not used."""
        if isinstance(event, LLMCallEvent) and event.by == "agent":
            yield from self._opened(event)
            yield self._event(
                "model",
                event.at - event.seconds,
                event,
                model=event.model,
                input=[*map(_message, self.recorded.messages(event))],
                tools=[],
                tool_choice="auto",
                config={"max_tokens": event.output_limit, "seed": event.seed},
                output=self._output(event),
                retries=event.attempts - 1,
                completed=_time(event.at),
                working_time=event.seconds,
            )
        elif isinstance(event, ToolCallEvent):
            yield from self._opened(event)
            yield self._event(
                "tool",
                event.at - event.seconds,
                event,
                id=event.step,
                function=event.tool,
                arguments=arguments_of(self.bodies[event.arguments]),
                result=str(self.bodies[event.result]),
                failed=not event.ok,
                completed=_time(event.at),
                working_time=event.seconds,
            )
        elif isinstance(event, FailedReplyEvent):
            yield from self._opened(event)
            yield self._event("info", event.at, event, source="labmates", data=f"unusable reply: {event.reason}")

    def _opened(self, event: Event) -> Iterator[_Data]:
        """The beginning of an event's spans, where they are new: one of its team, and one of its agent."""
        parent = None
        for path in [(event.team,), (event.team, event.agent)][0 if event.team else 1 :]:
            if path not in self.spans:
                self.spans[path] = "/".join(filter(None, (self.run.id, *path)))
                kind = "team" if len(path) == 1 else "agent"
                begin = {"id": self.spans[path], "parent_id": parent, "name": path[-1], "type": kind}
                yield self._event("span_begin", event.at, span_id=self.spans[path], **begin)
            parent = self.spans[path]

    def _event(self, sort: str, at: float, of: Event | None = None, /, **values: Any) -> _Data:
        where = {} if of is None else {"span_id": self.spans[of.team, of.agent], "metadata": {"step": of.step}}
        return (
            {"event": sort, "timestamp": _time(at), "working_start": max(0.0, at - self.run.started)} | where | values
        )

    def _reply(self, call: LLMCallEvent) -> _Data:
        reply = _message(self.bodies[call.reply])
        if (reasoning := self.recorded.reasoning(call)) is None:
            return reply
        thought = {"type": "reasoning", "reasoning": reasoning}
        return {**reply, "content": [thought, {"type": "text", "text": reply["content"]}]}

    def _output(self, call: LLMCallEvent) -> _Data:
        choice = {"message": self._reply(call), "stop_reason": _ENDS.get(call.finish, "unknown")}
        return {"model": call.model, "choices": [choice], "usage": self._usage(call), "time": call.seconds}

    def _usage(self, call: LLMCallEvent) -> _Data:
        return {
            "input_tokens": call.input_tokens - call.cached_tokens - call.cache_write_tokens,
            "input_tokens_cache_read": call.cached_tokens,
            "input_tokens_cache_write": call.cache_write_tokens,
            "output_tokens": call.output_tokens,
            "reasoning_tokens": call.reasoning_tokens,
            "total_tokens": call.input_tokens + call.output_tokens,
            "total_cost": self.recorded.costs.get(call.step, 0) / MICRO,
        }

    def _scores(self) -> _Data:
        scores: _Data = {name: {"value": value} for name, value in self.run.metrics.items()}
        for event in self.events:
            if isinstance(event, ScoreEvent) and event.value is not None:
                metadata = {"judge": event.judge, "version": event.version}
                name = f"{event.judge}/{event.metric}"
                scores[name] = {"value": event.value, "explanation": event.reason or None, "metadata": metadata}
        return scores


def _message(said: Any) -> _Data:
    message = {"role": said["role"], "content": said["content"]}
    if calls := said.get("tool_calls"):
        message["tool_calls"] = [
            {"id": call["id"], "function": call["name"], "arguments": call["args"], "type": "function"}
            for call in calls
        ]
    return message | ({"tool_call_id": said["tool_call_id"]} if "tool_call_id" in said else {})


def _fault(text: str) -> _Data:
    return {"message": text, "traceback": "", "traceback_ansi": ""}


def _model(run: RunRecord) -> str:
    return ";".join(run.models)


def _add(total: _Data, counts: Mapping[str, Any]) -> None:
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
