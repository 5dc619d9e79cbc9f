"""One run whose models sit at several servers of two protocols, named in a file and inline."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from labmates.models.scripted import BASELINES
from labmates.records.events import LLMCallEvent
from labmates.records.store import Store
from tests.support.anthropic_server import AnthropicServer
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, OpenAIServer, serve_model

pytest.importorskip("langchain_anthropic")


@pytest.mark.needs("bubblewrap")
def test_four_teams_work_at_four_servers(labmates: Labmates, tmp_path: Path) -> None:
    hasty = serve_model(BASELINES.get("hasty")(), latency=0)
    with ExitStack() as stack:
        servers: list[OpenAIServer] = [stack.enter_context(OpenAIServer(hasty)) for _ in range(3)]
        servers.append(stack.enter_context(AnthropicServer(hasty)))
        first = {
            "provider": "openai",
            "model": "m0",
            "base_url": servers[0].base_url,
            "price": {"input": 1, "output": 2},
        }
        third = {"provider": "openai", "model": "m2", "base_url": servers[2].base_url, "top_p": 0.5}
        (tmp_path / "models.yaml").write_text(json.dumps({"first": first, "third": third}))
        done = labmates(
            "run", "science", "--task", "anomaly", "--difficulty", "easy", "--budget", "0.50", "--json",
            "--model", "first",
            "--model-for", f"model=openai:m1?base_url={servers[1].base_url}&temperature=0.3",
            "--model-for", "eval=third",
            "--model-for", f"writing=anthropic:m3?base_url={servers[3].base_url}",
        )  # fmt: skip
    assert done.code == 0, done.err
    [record] = done.records
    assert record["models"] == ["openai:m0", "openai:m1?temperature=0.3", "openai:m2?top_p=0.5", "anthropic:m3"]
    assert "127.0.0.1" not in json.dumps(record["condition"])
    assert record["bill"] is None  # Three of them have no price.
    events = Store(f"sqlite:///{tmp_path}/labmates.db", must_exist=True).events(record["id"])
    for place, server in enumerate(servers):
        calls = [
            event for event in events if isinstance(event, LLMCallEvent) and event.model == record["models"][place]
        ]
        assert {request.body["model"] for request in server.requests} == {f"m{place}"}
        assert sum(call.attempts for call in calls) == len(server.requests) > 0
        assert any(request.body.get("tools") for request in server.requests)
    assert [{"cache_control" in str(one.body) for one in server.requests} for server in servers] == [{False}] * 3 + [
        {True}
    ]
    assert {request.body["temperature"] for request in servers[1].requests} == {0.3}
    assert {request.body["top_p"] for request in servers[2].requests} == {0.5}


def test_a_dilemma_seats_models_of_five_servers_and_a_baseline(labmates: Labmates, tmp_path: Path) -> None:
    reply = Answer(text='{"action": "cooperate"}')
    with ExitStack() as stack:
        servers: list[OpenAIServer] = [stack.enter_context(OpenAIServer(reply)) for _ in range(4)]
        servers.append(stack.enter_context(AnthropicServer(reply)))
        entry = {"provider": "openai", "model": "m0", "base_url": servers[0].base_url}
        (tmp_path / "models.yaml").write_text(json.dumps({"first": entry}))
        inline = [f"openai:m{n}?base_url={servers[n].base_url}&temperature=0.{n}" for n in (1, 2, 3)]
        done = labmates(
            "run", "dilemma", "--game", "prisoners", "--reasoning", "none", "--json", "--repair-turns", "0",
            "--models", ",".join(["first", *inline]),
            "--models", f"anthropic:m4?base_url={servers[4].base_url}&reasoning=cot&name=thinker",
            "--models", "scripted:defect",
        )  # fmt: skip
    [record] = done.records
    assert record["status"] == "completed", done.err
    names = ["openai:m0", "openai:m1", "openai:m2", "openai:m3", "anthropic:m4", "scripted:defect"]
    assert record["models"] == names
    for place, server in enumerate(servers):
        assert {request.body["model"] for request in server.requests} == {f"m{place}"}
    assert {request.body["temperature"] for request in servers[3].requests} == {0.3}
    assert record["usage"]["llm_calls"] > sum(len(server.requests) for server in servers)
