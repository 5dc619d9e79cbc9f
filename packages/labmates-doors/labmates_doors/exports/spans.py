"""Runs as spans of OpenTelemetry, made from the record: run, team, seat, call, tool.

Names of attributes: OpenTelemetry's conventions for generative AI (semantic-conventions-genai 0.1.0) and OpenInference
(openinference-semantic-conventions 0.1). Judges' calls are left out; their scores are events of the run's span.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SpanEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from labmates._version import __version__
from labmates.records.events import (
    HUMAN,
    ChargeEvent,
    Event,
    FailedReplyEvent,
    LLMCallEvent,
    ScoreEvent,
    ToolCallEvent,
)
from labmates_doors.exports.recorded import MICRO, Recorded, arguments_of

_SCOPE: Final = InstrumentationScope("labmates", __version__)
_PROVIDERS: Final = {
    "anthropic_bedrock": "aws.bedrock", "azure_openai": "azure.ai.openai", "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock", "google_genai": "gcp.gemini", "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai", "mistralai": "mistral_ai", "xai": "x_ai",
}  # fmt: skip
"""Where the conventions name a provider otherwise than LangChain."""
_ENDS: Final = {"tool_calls": "tool_call"}
Attributes = dict[str, Any]


class Spans:
    """The spans of one run, a trace; its ids follow from the run's id, so that sending it again adds no other trace."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded, self._run = recorded, recorded.run
        self._resource = Resource({"service.name": "labmates", "service.version": __version__})
        self._trace = int.from_bytes(_digest(self._run.id)[:16], "big")
        self._limits: dict[tuple[str, ...], tuple[float, float]] = {}
        self._notes: dict[tuple[str, ...], list[SpanEvent]] = {}

    def __iter__(self) -> Iterator[ReadableSpan]:
        for number, event in enumerate(self._recorded.events):
            place = (event.team, event.agent)
            if isinstance(event, FailedReplyEvent):
                self._note(place, event.at, "labmates.failed_reply", {"labmates.reason": event.reason})
            elif (made := self._made(event)) is not None:
                seconds, name, kind, attributes, fault = made
                self._cover((), event.at - seconds, event.at)
                self._cover((event.team,), event.at - seconds, event.at)
                self._cover(place, event.at - seconds, event.at)
                attributes |= {"gen_ai.conversation.id": self._run.id, "session.id": self._run.id}
                attributes |= {"gen_ai.agent.name": event.agent, "agent.name": event.agent}
                attributes |= {"labmates.step": event.step, "labmates.team": event.team}
                yield self._span(
                    (*place, f"event {number}"), place, name, event.at - seconds, event.at, attributes, kind, fault
                )
        for path, (start, end) in sorted(self._limits.items(), reverse=True):
            if path and path != ("",):
                what, sort = ("invoke_agent", "AGENT") if len(path) == 2 else ("invoke_workflow", "CHAIN")
                attributes = _named(what, sort, path[-1])
                yield self._span(path, path[:-1], f"{what} {path[-1]}", start, end, attributes)
        yield self._root()

    def _root(self) -> ReadableSpan:
        run = self._run
        start, end = self._limits.get((), (run.started, run.started))
        attributes = _named("invoke_workflow", "CHAIN", run.kind) | {
            "gen_ai.conversation.id": run.id,
            "session.id": run.id,
            "input.value": _json(run.condition),
            "input.mime_type": "application/json",
            "labmates.run": run.id,
        }
        for name in ("kind", "study", "key", "replicate", "seed", "status", "invalid", "digest", "bill"):
            if (value := getattr(run, name)) is not None:
                attributes[f"labmates.{name}"] = value
        for name in ("llm_calls", "input_tokens", "output_tokens", "tool_calls", "failed_replies"):
            attributes[f"labmates.usage.{name}"] = getattr(run.usage, name)
        scores = [(name, value, "", "CODE", end) for name, value in run.metrics.items()]
        scores += [
            (f"{e.judge}/{e.metric}", e.value, e.reason, _annotator(e.judge), e.at)
            for e in self._recorded.events
            if isinstance(e, ScoreEvent) and e.value is not None
        ]
        for number, (name, value, reason, annotator, at) in enumerate(scores):
            told = {"name": name, "score.value": float(value), "explanation": reason}
            self._note((), at, "gen_ai.evaluation.result", _prefixed("gen_ai.evaluation", told))
            told = {"name": name, "score": float(value), "explanation": reason, "annotator_kind": annotator}
            attributes |= _prefixed(f"evaluations.{number}.evaluation", told)
        return self._span(
            (), None, f"invoke_workflow {run.kind}", start, max(end, run.started + run.seconds), attributes,
            fault=run.error,
        )  # fmt: skip

    def _made(self, event: Event) -> tuple[float, str, SpanKind, Attributes, str | None] | None:
        """The seconds, name, kind, attributes and fault of an event's span; None for an event without one."""
        match event:
            case LLMCallEvent() if event.by == "agent":
                _, name = _model(event.model)
                kind = SpanKind.INTERNAL if event.is_outside else SpanKind.CLIENT
                return event.seconds, f"chat {name}", kind, self._call(event) | self._cost(event), None
            case ToolCallEvent():
                fault = None if event.ok else str(self._recorded.bodies[event.result])
                attributes = self._tool(event) | self._cost(event)
                return event.seconds, f"execute_tool {event.tool}", SpanKind.INTERNAL, attributes, fault
            case ChargeEvent(uncertain=True):
                attributes = _named("chat", "LLM") | {"gen_ai.provider.name": "_OTHER"} | self._cost(event)
                return 0.0, "chat", SpanKind.CLIENT, attributes, event.reason
        return None

    def _call(self, call: LLMCallEvent) -> Attributes:
        provider, name = _model(call.model)
        prompt, reply = self._recorded.messages(call), self._recorded.bodies[call.reply]
        reasoning = self._recorded.reasoning(call)
        thought = [] if reasoning is None else [{"type": "reasoning", "content": reasoning}]
        output = {
            "role": "assistant",
            "parts": thought + _parts(reply),
            "finish_reason": _ENDS.get(call.finish, call.finish),
        }
        limit = {} if call.output_limit is None else {"gen_ai.request.max_tokens": call.output_limit}
        return {
            **_named("chat", "LLM"),
            **limit,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name,
            "gen_ai.request.seed": call.seed,
            "gen_ai.response.finish_reasons": [call.finish],
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.cache_read.input_tokens": call.cached_tokens,
            "gen_ai.usage.cache_creation.input_tokens": call.cache_write_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "gen_ai.usage.reasoning.output_tokens": call.reasoning_tokens,
            "gen_ai.input.messages": _json([{"role": said["role"], "parts": _parts(said)} for said in prompt]),
            "gen_ai.output.messages": _json([output]),
            "llm.model_name": name,
            "llm.provider": provider,
            "llm.token_count.prompt": call.input_tokens,
            "llm.token_count.prompt_details.cache_read": call.cached_tokens,
            "llm.token_count.prompt_details.cache_write": call.cache_write_tokens,
            "llm.token_count.completion": call.output_tokens,
            "llm.token_count.completion_details.reasoning": call.reasoning_tokens,
            "llm.token_count.total": call.input_tokens + call.output_tokens,
            **{name: value for at, said in enumerate(prompt) for name, value in _flat("input", at, said)},
            **dict(_flat("output", 0, reply)),
        }

    def _tool(self, event: ToolCallEvent) -> Attributes:
        arguments = _json(arguments_of(self._recorded.bodies[event.arguments]))
        result = str(self._recorded.bodies[event.result])
        return {
            **_named("execute_tool", "TOOL"),
            "gen_ai.tool.name": event.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.step,
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": result,
            "tool.name": event.tool,
            "input.value": arguments,
            "input.mime_type": "application/json",
            "output.value": result,
        }

    def _cost(self, event: Event) -> Attributes:
        cost = self._recorded.costs.get(event.step)
        return {} if cost is None else {"labmates.cost_micro_dollars": cost, "llm.cost.total": cost / MICRO}

    def _cover(self, path: tuple[str, ...], start: float, end: float) -> None:
        first, last = self._limits.get(path, (start, end))
        self._limits[path] = (min(first, start), max(last, end))

    def _note(self, path: tuple[str, ...], at: float, name: str, attributes: Attributes) -> None:
        self._notes.setdefault(path, []).append(SpanEvent(name, _clean(attributes), _nanoseconds(at)))

    def _span(
        self,
        path: tuple[str, ...],
        parent: tuple[str, ...] | None,
        name: str,
        start: float,
        end: float,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        fault: str | None = None,
    ) -> ReadableSpan:
        if fault is not None:
            attributes = attributes | {"error.type": "_OTHER"}
        return ReadableSpan(
            _text(name),
            context=self._context(path),
            parent=None if parent is None else self._context(parent),
            resource=self._resource,
            attributes=_clean(attributes),
            events=self._notes.get(path, ()),
            kind=kind,
            status=Status(StatusCode.UNSET if fault is None else StatusCode.ERROR, fault and _text(fault)),
            start_time=_nanoseconds(start),
            end_time=_nanoseconds(end),
            instrumentation_scope=_SCOPE,
        )

    def _context(self, path: tuple[str, ...]) -> SpanContext:
        path = () if path == ("",) else path  # agents without a team belong to the run
        span = int.from_bytes(_digest(self._run.id, *path)[:8], "big")
        return SpanContext(self._trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _named(operation: str, kind: str, agent: str = "") -> Attributes:
    name = {"gen_ai.agent.name": agent, "agent.name": agent} if agent else {}
    return {"gen_ai.operation.name": operation, "openinference.span.kind": kind, **name}


def _parts(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message's content in the form of the conventions' JSON schemas."""
    if "tool_call_id" in said:
        return [{"type": "tool_call_response", "id": said["tool_call_id"], "response": said["content"]}]
    text = [{"type": "text", "content": said["content"]}] if said["content"] else []
    calls = said.get("tool_calls", [])
    return text + [{"type": "tool_call", "id": c["id"], "name": c["name"], "arguments": c["args"]} for c in calls]


def _flat(side: str, at: int, said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A message as OpenInference's attributes."""
    start = f"llm.{side}_messages.{at}.message"
    yield from ((f"{start}.role", said["role"]), (f"{start}.content", said["content"]))
    if "tool_call_id" in said:
        yield f"{start}.tool_call_id", said["tool_call_id"]
    for number, call in enumerate(said.get("tool_calls", [])):
        place = f"{start}.tool_calls.{number}.tool_call"
        yield f"{place}.id", call["id"]
        yield f"{place}.function.name", call["name"]
        yield f"{place}.function.arguments", _json(call["args"])


def _model(text: str) -> tuple[str, str]:
    provider, _, name = text.partition(":")
    return _PROVIDERS.get(provider, provider), name


def _annotator(judge: str) -> str:
    return "HUMAN" if judge.startswith(HUMAN) else "LLM" if ":" in judge else "CODE"


def _prefixed(prefix: str, values: Mapping[str, Any]) -> Attributes:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _clean(attributes: Attributes) -> Attributes:
    return {_text(name): _text(value) if isinstance(value, str) else value for name, value in attributes.items()}


def _text(text: str) -> str:
    """A text without lone surrogates, which protobuf refuses."""
    return text.encode("utf-8", "replace").decode()


def _nanoseconds(at: float) -> int:
    return round(at * 1_000_000_000)


def _digest(*parts: str) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode()).digest()
