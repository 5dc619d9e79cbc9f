from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from labmates.models.cache import call_key
from labmates.models.errors import EndpointError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from labmates.models.sending import Request
from tests.support.openai_server import Answer, Call, OpenAIServer, fault

MODEL = "openai:test-model"


@dataclass
class Memory:
    """A cache in memory."""

    kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def get(self, key: str) -> dict[str, Any] | None:
        return self.kept.get(key)

    async def put(self, key: str, reply: dict[str, Any]) -> None:
        self.kept[key] = reply


async def ask(server: OpenAIServer, cache: Memory, text: str = "Hi", **given: Any) -> Reply:
    options = ModelOptions(base_url=server.base_url, max_retries=0, call_timeout=100)
    async with ModelHub(options, cache=cache) as hub:
        return await hub.call(MODEL, [HumanMessage(text)], **{"seed": 7, "max_output_tokens": 100, **given})


async def test_the_same_request_gets_the_same_reply_and_nobody_is_asked() -> None:
    cache = Memory()
    answer = Answer(text="Hello", calls=(Call("look", {"at": [1, {"b": None}]}),), reasoning="I greet.")
    with OpenAIServer(answer) as server:
        fresh = await ask(server, cache)
        again = await ask(server, cache)
        assert len(server.requests) == 1
    assert (fresh.cached, again.cached) == (False, True)
    assert (fresh.attempts, again.attempts) == (1, 0)
    assert replace(again, cached=False, attempts=1, seconds=fresh.seconds) == fresh
    assert again.reasoning == "I greet."


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text=""),
        Answer(text="cut of", finish="length"),
        Answer(text="no", calls=(Call("look", "{'broken"),)),
        Answer(text="I must not", finish="content_filter"),
    ],
)
async def test_a_reply_with_a_fault_is_not_kept(answer: Answer) -> None:
    cache = Memory()
    with OpenAIServer(answer) as server:
        for _ in range(2):
            assert not (await ask(server, cache)).cached
        assert len(server.requests) == 2
    assert cache.kept == {}


async def test_an_error_is_not_kept() -> None:
    cache = Memory()
    with OpenAIServer([fault(500), Answer(text="well")]) as server:
        with pytest.raises(EndpointError):
            await ask(server, cache)
        assert cache.kept == {}
        assert (await ask(server, cache)).text == "well"


async def test_scripted_models_are_not_kept() -> None:
    cache = Memory()
    async with ModelHub(ModelOptions(), cache=cache) as hub:
        await hub.call("scripted:silent", [HumanMessage("Hi")], seed=1, max_output_tokens=100)
    assert cache.kept == {}


async def test_the_key_of_the_server_does_not_enter_the_cache(clean_environment: str) -> None:
    cache = Memory()
    with OpenAIServer(Answer(text="Hello")) as server:
        await ask(server, cache)
        assert clean_environment in server.requests[0].headers["authorization"]
    assert clean_environment not in repr(cache.kept)


CALLED = AIMessage("", tool_calls=[{"type": "tool_call", "id": "a", "name": "look", "args": {"at": 1}}])
REQUEST = Request(
    messages=[HumanMessage("Hi"), CALLED, ToolMessage("seen", tool_call_id="a")],
    tools=[{"type": "function", "function": {"name": "look"}}],
    seed=1,
    max_output_tokens=100,
    temperature=None,
    config={"run_name": "one"},
)


CHANGES: list[dict[str, Any]] = [
    {"messages": [HumanMessage("Ho"), *REQUEST.messages[1:]]},
    {"messages": [AIMessage("Hi"), *REQUEST.messages[1:]]},
    {"messages": [REQUEST.messages[0], AIMessage(""), REQUEST.messages[2]]},
    {"messages": [*REQUEST.messages[:2], ToolMessage("seen", tool_call_id="b")]},
    {"messages": REQUEST.messages[:2]},
    {"tools": []},
    {"seed": 2},
    {"max_output_tokens": 101},
    {"temperature": 0.0},
]


def test_the_key_depends_on_all_that_is_sent_and_on_nothing_else() -> None:
    key = call_key(MODEL, "http://here/v1", REQUEST)
    others = [
        call_key("openai:other", "http://here/v1", REQUEST),
        call_key(MODEL, "http://there/v1", REQUEST),
        *(call_key(MODEL, "http://here/v1", replace(REQUEST, **change)) for change in CHANGES),
    ]
    assert len({key, *others}) == len(CHANGES) + 3
    same = replace(REQUEST, messages=[*REQUEST.messages], config={"run_name": "two", "tags": ["t"]})
    assert call_key(MODEL, "http://here/v1", same) == key
