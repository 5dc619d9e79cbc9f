"""Traces as a collector receives them: a real server of OTLP over HTTP, which decodes protobuf."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from openinference.semconv.trace import EvaluationAttributes, SpanAttributes, ToolCallAttributes
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from labmates.api import show
from labmates.budgets.money import parse_dollars
from labmates.errors import UsageError
from labmates.records.events import ChargeEvent
from labmates.records.store import Store
from labmates.studies.result import Run
from labmates_doors.exports.otlp import send_spans
from tests.studies.ended import ended_run

KNOWN = {value for value in vars(gen_ai_attributes).values() if isinstance(value, str) and value.startswith("gen_ai.")}
INFERENCE = {
    value
    for attributes in (SpanAttributes, EvaluationAttributes, ToolCallAttributes)
    for value in vars(attributes).values()
    if isinstance(value, str)
}


class Collector:
    """A collector of traces in memory."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.headers: list[str | None] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                collector.headers.append(self.headers["x-key"])
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.spans += [span for scope in resource.scope_spans for span in scope.spans]
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def named(self, operation: str) -> list[Span]:
        """The spans of an operation."""
        return [span for span in self.spans if values(span)["gen_ai.operation.name"] == operation]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = Thread(target=collector.server.serve_forever)
    thread.start()
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def plain(value: AnyValue) -> Any:
    """A value of protobuf as Python's."""
    field = str(value.WhichOneof("value"))
    return [plain(each) for each in value.array_value.values] if field == "array_value" else getattr(value, field)


def values(holder: Any) -> dict[str, Any]:
    """The attributes of a span or an event."""
    return {pair.key: plain(pair.value) for pair in holder.attributes}


async def test_a_collector_gets_the_numbers_of_the_record(played: Store, collector: Collector) -> None:
    assert send_spans(played, collector.address, played.runs) == 3
    for run in (show(record.id, store=played.url) for record in played.runs()):
        [root] = [s for s in collector.named("invoke_workflow") if values(s).get("labmates.run") == run.id]
        mine = [span for span in collector.spans if span.trace_id == root.trace_id]
        calls = [values(span) for span in mine if values(span)["gen_ai.operation.name"] == "chat"]
        tools = [values(span) for span in mine if values(span)["gen_ai.operation.name"] == "execute_tool"]
        assert (len(calls), len(tools)) == (run.usage.llm_calls, run.usage.tool_calls)
        for theirs, ours in {
            "gen_ai.usage.input_tokens": run.usage.input_tokens,
            "gen_ai.usage.output_tokens": run.usage.output_tokens,
            "llm.token_count.total": run.usage.input_tokens + run.usage.output_tokens,
        }.items():
            assert sum(call[theirs] for call in calls) == ours
        if run.budget:
            assert sum(s.get("labmates.cost_micro_dollars", 0) for s in [*calls, *tools]) == parse_dollars(
                run.budget["spent"]
            )
        judged = {f"{s.judge}/{s.metric}": s for s in played.scores(run.id) if s.value is not None}
        events = [values(event) for event in root.events if event.name == "gen_ai.evaluation.result"]
        told = {event["gen_ai.evaluation.name"]: event["gen_ai.evaluation.score.value"] for event in events}
        assert told == run.metrics | {name: score.value for name, score in judged.items()}
        assert {s.reason for s in judged.values()} <= {event["gen_ai.evaluation.explanation"] for event in events}
        assert values(root)["evaluations.0.evaluation.score"] == events[0]["gen_ai.evaluation.score.value"]


async def test_spans_nest_as_run_team_seat_and_call_and_hold_the_exact_texts(
    played: Store, collector: Collector
) -> None:
    [record] = played.runs(kind="science")
    send_spans(played, collector.address, lambda: [record])
    run = Run.of(record, played)
    spans = {span.span_id: span for span in collector.spans}
    assert len(spans) == len(collector.spans)
    calls = [event for event in run.events if event.type == "llm_call"]
    for call, span in zip(calls, collector.named("chat"), strict=True):
        seat = spans[span.parent_span_id]
        team = spans[seat.parent_span_id]
        root = spans[team.parent_span_id]
        assert (values(team)["gen_ai.agent.name"], values(seat)["gen_ai.agent.name"]) == (call.team, call.agent)
        assert values(root)["labmates.run"] == run.id
        assert root.parent_span_id == b""
        for outer, inner in ((root, team), (team, seat), (seat, span)):
            assert outer.start_time_unix_nano <= inner.start_time_unix_nano <= inner.end_time_unix_nano
            assert inner.end_time_unix_nano <= outer.end_time_unix_nano
        told = values(span)
        prompt = [run.bodies[number] for number in call.messages]
        sent = json.loads(told["gen_ai.input.messages"])
        assert [message["role"] for message in sent] == [message["role"] for message in prompt]
        assert [told[f"llm.input_messages.{n}.message.content"] for n in range(len(prompt))] == [
            message["content"] for message in prompt
        ]
        asked = [part for part in json.loads(told["gen_ai.output.messages"])[0]["parts"] if part["type"] == "tool_call"]
        assert [part["arguments"] for part in asked] == [
            c["args"] for c in run.bodies[call.reply].get("tool_calls", [])
        ]
    before = sorted(spans)
    send_spans(played, collector.address, lambda: [record])
    assert sorted({span.span_id for span in collector.spans}) == before


async def test_names_of_attributes_are_those_of_the_conventions(played: Store, collector: Collector) -> None:
    send_spans(played, collector.address, played.runs)
    named = {name for span in collector.spans for name in values(span)}
    named |= {name for span in collector.spans for event in span.events for name in values(event)}
    ours = {name for name in named if name.startswith("labmates.")}
    flat = {name for name in named if name.split(".")[0] == "evaluations" or "_messages." in name}
    assert {name for name in named if name.startswith("gen_ai.")} <= KNOWN
    assert named - ours - flat - KNOWN - {"error.type"} <= INFERENCE
    assert {name.split(".", 2)[2] for name in flat if name.startswith("evaluations.")} <= INFERENCE


async def test_hostile_text_stays_text(played: Store, collector: Collector) -> None:
    [run] = [Run.of(run, played) for run in played.runs() if run.models == ["scripted:hostile"]]
    send_spans(played, collector.address, lambda: [run])
    failed = [event for span in collector.spans for event in span.events if event.name == "labmates.failed_reply"]
    assert len(failed) == run.usage.failed_replies > 0
    replies = [run.bodies[event.reply]["content"] for event in run.events if event.type == "llm_call"]
    told = [values(span)["llm.output_messages.0.message.content"] for span in collector.named("chat")]
    assert told == replies
    assert "onerror=alert(1)" in told[0]


async def test_an_attempt_without_a_reply_is_a_call_with_an_error(store: Store, collector: Collector) -> None:
    where: dict[str, Any] = {"team": "data", "agent": "data_lead", "step": "data/0/data_lead/work/9/lost/0"}
    lost = ChargeEvent(**where, amount=1234, uncertain=True, estimated=True, reason="the connection \ud800 was cut")
    ended_run(store, "a paper", more=[lost])
    send_spans(store, collector.address, store.runs)
    [call] = [span for span in collector.named("chat") if values(span)["labmates.step"] == where["step"]]
    assert (call.status.code, call.status.message) == (Status.STATUS_CODE_ERROR, "the connection ? was cut")
    assert (values(call)["labmates.cost_micro_dollars"], values(call)["llm.cost.total"]) == (1234, 0.001234)


async def test_a_collector_that_refuses_is_told(
    played: Store, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    collector.status = 403
    with pytest.raises(UsageError, match=r"the collector does not take run .*403") as refused:
        send_spans(played, collector.address, played.runs)
    assert collector.headers == ["secret"]
    assert "secret" not in str(refused.value)
    with pytest.raises(UsageError, match="is no address of a collector"):
        send_spans(played, "collector", played.runs)
    with pytest.raises(UsageError, match="nothing to send"):
        send_spans(played, collector.address, lambda: played.runs(kind="dilemma"))


def test_nothing_that_sends_spans_is_imported_by_other_formats(tmp_path: Path) -> None:
    code = """
import sys, labmates
labmates.run("game", game="weakest-link", model="scripted:fair-share", rounds=1, store="sqlite:///x.db")
from labmates.cli.main import run_command
assert run_command(["export", "--all", "--out", "x.eval", "--store", "x.db"]) == 0
print([name for name in sys.modules if name.startswith(("opentelemetry.exporter", "labmates_doors.exports.otlp"))])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
