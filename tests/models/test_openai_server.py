"""The test server itself: it serves any chat model over HTTP, and says what it saw."""

from __future__ import annotations

import gc
import json
import socket
import sys
from typing import Any

import httpx2
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from labmates.budgets.tokens import Usage
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.sending import Request, per_instance
from tests.models.conftest import Ask
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model

COUNTS = UsageMetadata(input_tokens=21, output_tokens=12, total_tokens=33, output_token_details={"reasoning": 4})


class Clerk(BaseChatModel):
    """Calls the tool that it is offered, then reports what the tool said and what else it was given."""

    limit: int = 0

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        last = messages[-1]
        if isinstance(last, HumanMessage) and kwargs.get("tools"):
            name = kwargs["tools"][0]["function"]["name"]
            call = {"type": "tool_call", "name": name, "args": {"x": [1, "é"]}, "id": "call_a"}
            message = AIMessage("", tool_calls=[call])
        else:
            kinds = " ".join(message.type for message in messages)
            told = f"{kinds} | {last.text} | {kwargs.get('seed')} {kwargs.get('max_tokens')} {self.limit}"
            message = AIMessage(told, usage_metadata=COUNTS)
        return ChatResult(generations=[ChatGeneration(message=message)])


TOOL: Json = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_served_model_answers_as_it_would_directly(ask: Ask, stream: bool) -> None:
    with OpenAIServer(serve_model(Clerk(), latency=0.0)) as server:
        prompt: list[BaseMessage] = [SystemMessage("You are a clerk."), HumanMessage("Look!")]
        first = await ask(server, prompt, tools=[TOOL], stream=stream)
        assert first.tool_calls[0].arguments == {"x": [1, "é"]}
        prompt += [first.message, ToolMessage("a tree", tool_call_id="call_a")]
        second = await ask(server, prompt, tools=[TOOL], stream=stream)
    assert second.text == "system human ai tool | a tree | 7 100 0"
    assert second.usage == Usage(21, 12, 4)


async def test_the_server_lists_its_models_and_knows_no_other_path() -> None:
    with OpenAIServer(models=["a", "b"]) as server:
        async with httpx2.AsyncClient(base_url=server.base_url) as client:
            listed = (await client.get("/models")).json()
            assert [model["id"] for model in listed["data"]] == ["a", "b"]
            assert (await client.get("/elsewhere")).status_code == 404
        assert server.requests == []


async def test_a_behaviour_sees_the_request_and_its_number() -> None:
    def behave(request: Json, number: int) -> Answer:
        return Answer(text=json.dumps([request["messages"][0]["content"], number]))

    with OpenAIServer(behave) as server:
        async with ModelHub(ModelOptions(base_url=server.base_url)) as hub:
            texts = [
                (await hub.call("openai:m", [HumanMessage(word)], seed=1, max_output_tokens=9)).text for word in "ab"
            ]
    assert texts == ['["a", 0]', '["b", 1]']
    assert server.peak == 1


async def test_a_provider_that_takes_the_limit_when_built_gets_one_instance_for_each() -> None:
    built: list[tuple[int, float | None]] = []

    def build(limit: int, temperature: float | None) -> BaseChatModel:
        built.append((limit, temperature))
        return Clerk(limit=limit)

    send = per_instance(build)

    async def told(limit: int, tools: list[Json]) -> BaseMessage:
        request = Request([HumanMessage("Hi")], tools, 1, limit, None, {})
        return await send(request, {"seed": 1, "max_tokens": limit, "temperature": 0.5})

    assert (await told(5, [])).text == "human | Hi | None None 5"
    assert (await told(6, [])).text == "human | Hi | None None 6"
    message = await told(6, [TOOL])
    assert isinstance(message, AIMessage)
    assert message.tool_calls[0]["name"] == "look"
    assert built == [(5, 0.5), (6, 0.5)]


def test_connections_made_while_the_server_ends_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: lost.append(unraisable.exc_value))
    for _ in range(10):
        with OpenAIServer() as server:
            clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
        for client in clients:
            client.close()
    del server
    gc.collect()
    assert lost == []
