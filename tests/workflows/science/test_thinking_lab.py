"""Models that think work in the lab: their servers refuse a call without the thoughts of the tool loop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from labmates.api import arun
from labmates.models.scripted import BASELINES
from labmates.records.bodies import Bodies
from labmates.records.events import LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import Answer, Json, OpenAIServer, fault, serve_model
from tests.support.thinking import FAMILIES

SOLO: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "solo": True}


def thought(name: str, arguments: str) -> str:
    return f"I see no other way than {name}, with {len(arguments)} characters."


def thinker(family: str, returned: Callable[[Json], list[tuple[str, str, Any]]], attach: Callable[[str], Json]) -> Any:
    """A server of a scripted team that thinks before each call, and wants these thoughts back."""
    team = serve_model(BASELINES.get("hasty")(), latency=0)
    server = (AnthropicServer if family == "anthropic" else OpenAIServer)()

    async def behave(request: Json, number: int) -> Answer:
        for name, arguments, found in returned(server.requests[number].body):
            if found not in (attach(thought(name, arguments)), {"reasoning_content": ""}):
                return FAMILIES[family].refusal
        answer = await team(request, number)
        if not answer.calls:
            return answer
        arguments = json.dumps(answer.calls[0].arguments)
        message = attach(thought(answer.calls[0].name, arguments))
        return Answer(answer.text, answer.calls, answer.finish, message=message, usage=answer.usage)

    server._behaviour = behave
    return server


def deepseek_returned(body: Json) -> list[tuple[str, str, Any]]:
    found = []
    for message in body["messages"]:
        if message.get("tool_calls"):
            call = message["tool_calls"][0]["function"]
            thoughts = {name: message[name] for name in ("reasoning_content",) if name in message}
            found.append((call["name"], json.dumps(json.loads(call["arguments"])), thoughts))
    return found


def anthropic_returned(body: Json) -> list[tuple[str, str, Any]]:
    found = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message["role"] == "assistant" and (calls := [block for block in blocks if block["type"] == "tool_use"]):
            thoughts = {"blocks": [block for block in blocks if block["type"] == "thinking"]}
            found.append((calls[0]["name"], json.dumps(calls[0]["input"]), thoughts))
    return found


THINKERS = {
    "deepseek": (deepseek_returned, lambda text: {"reasoning_content": text}),
    "anthropic": (
        anthropic_returned,
        lambda text: {"blocks": [{"type": "thinking", "thinking": text, "signature": text[::-1]}]},
    ),
}


def settings(**models: Any) -> RunSettings:
    return RunSettings(sandbox="unsafe-local", models={"max_retries": 0, **models})


def thoughts_kept(store: Store, run: RunRecord) -> int:
    bodies = Bodies(store.bodies(run.id))
    events = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    return sum("attached" in bodies[event.reply] for event in events)


@pytest.mark.parametrize("family", THINKERS)
async def test_a_model_that_thinks_works_in_the_lab_and_its_run_replays(
    store: Store, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if family == "anthropic":
        pytest.importorskip("langchain_anthropic")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-lab")
    with thinker(family, *THINKERS[family]) as server:
        model = FAMILIES[family].model.format(url=server.base_url)
        [run] = await arun("science", store=store.url, settings=settings(), model=model, **SOLO)
        assert (run.status, run.error) == ("completed", None)
        asked = len(server.requests)
        assert thoughts_kept(store, run) >= 3
        found = await replay(store, run)
        assert found.is_same, found.differences
        assert len(server.requests) == asked


async def test_a_broken_off_run_is_resumed_with_its_thoughts_and_forked_without_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-lab")
    with thinker("deepseek", *THINKERS["deepseek"]) as server:
        answers, dies = server._behaviour, 2
        server._behaviour = lambda request, n: fault(401) if n == dies else answers(request, n)
        used = settings(base_url=server.base_url)
        [failed] = await arun("science", store=store.url, settings=used, model="openai:deepseek-v4", **SOLO)
        assert failed.status == "failed"
        [run] = await Session(store, used).execute([failed])
        assert (run.status, run.error) == ("completed", None)
        asked = len(server.requests)
        bodies = Bodies(store.bodies(run.id))
        loops = [
            place
            for place, event in enumerate(store.events(run.id))
            if isinstance(event, LLMCallEvent) and any("attached" in bodies[number] for number in event.messages)
        ]
        forked = await fork(store, run.id, at=loops[0], changes={"model": "openai:deepseek-v5"})
        [forked] = await Session(store, used).execute([forked])
        assert (forked.status, forked.error) == ("completed", None)
        others = [request.body for request in server.requests[asked:] if request.body["model"] == "deepseek-v5"]
    # The first request of the fork is refused: the other model's reply brings no thoughts.
    returned = [[found for _, _, found in deepseek_returned(body)][:1] for body in others[:2]]
    assert returned == [[{}], [{"reasoning_content": ""}]]
