"""Models of Google and Amazon Bedrock, through LangChain's packages, against a server that speaks their protocols."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.prefix import mark_continued, mark_shared
from labmates.models.reply import Reply
from tests.support.cloud_server import CloudServer
from tests.support.openai_server import Answer, Call

TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
CALL = (Call("look", {"at": 1}, "tooluse_1"),)


MESSAGES = (SystemMessage("Rules."), HumanMessage("Look."))


async def asked(server: CloudServer, model: str, messages: Sequence[BaseMessage] = MESSAGES) -> Reply:
    catalog = Catalog(named={})
    name = catalog.name_of(f"{model}&base_url={server.base_url}&price.input=1&price.output=5")
    async with ModelHub(catalog.options()) as hub:
        return await hub.call(name, messages, tools=[TOOL], seed=1, max_output_tokens=90, temperature=0.5)


async def test_google_gets_tools_and_settings_and_its_usage_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_google_genai")
    monkeypatch.setenv("LAB_KEY", "key-of-the-lab")
    usage = {"promptTokenCount": 1000, "cachedContentTokenCount": 800, "candidatesTokenCount": 20}
    usage |= {"thoughtsTokenCount": 30, "totalTokenCount": 1050}
    with CloudServer(Answer(text="Hm.", calls=CALL, usage=usage)) as server:
        reply = await asked(server, "google_genai:gemini-x?top_p=0.9&seed=7&thinking_budget=512&api_key_env=LAB_KEY")
    [request] = server.requests
    assert request.path.endswith("/models/gemini-x:generateContent")
    assert request.headers["x-goog-api-key"] == "key-of-the-lab"
    settings = request.body["generationConfig"]
    assert settings.items() >= {"topP": 0.9, "seed": 7, "maxOutputTokens": 90, "temperature": 0.5}.items()
    assert settings["thinkingConfig"] == {"thinking_budget": 512}
    assert request.body["tools"][0]["functionDeclarations"][0]["name"] == "look"
    assert (reply.text, reply.tool_calls[0].name, reply.tool_calls[0].arguments) == ("Hm.", "look", {"at": 1})
    found = reply.usage
    assert (found.input_tokens, found.cached_tokens, found.output_tokens, found.reasoning_tokens) == (1000, 800, 50, 30)
    assert reply.bill == 1000 + 5 * 50


async def test_bedrock_gets_tools_and_settings_and_its_usage_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_aws")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id-of-the-lab")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-of-the-lab")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    usage = {"inputTokens": 200, "outputTokens": 20, "cacheReadInputTokens": 800, "totalTokens": 1020}
    with CloudServer(Answer(text="Hm.", calls=CALL, usage=usage)) as server:
        reply = await asked(server, "bedrock_converse:amazon.nova-x?top_p=0.9&stop=END&extra_body.top_k=7")
    [request] = server.requests
    assert request.path == "/model/amazon.nova-x/converse"
    assert "Credential=id-of-the-lab/" in request.headers["authorization"]
    sent = {"maxTokens": 90, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}
    assert request.body["inferenceConfig"] == sent
    assert request.body["additionalModelRequestFields"] == {"top_k": 7}
    assert (reply.text, reply.tool_calls[0].name, reply.tool_calls[0].arguments) == ("Hm.", "look", {"at": 1})
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == (1000, 800, 20)


@pytest.mark.parametrize(
    ("model", "shared", "end"),
    [("anthropic.claude-x", True, True), ("amazon.nova-x", True, False), ("meta.llama-x", False, False)],
)
async def test_bedrock_gets_cache_points_for_models_that_take_them(
    monkeypatch: pytest.MonkeyPatch, model: str, *, shared: bool, end: bool
) -> None:
    pytest.importorskip("langchain_aws")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id-of-the-lab")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key-of-the-lab")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    usage = {"inputTokens": 100, "outputTokens": 20, "cacheReadInputTokens": 800, "cacheWriteInputTokens": 100}
    opening = [mark_shared(SystemMessage("What all read.\n\nWho you are."), 14), mark_continued(HumanMessage("Look."))]
    result = ToolMessage("much", tool_call_id="tooluse_1")
    read = [AIMessage("", tool_calls=[{"id": "tooluse_1", "name": "look", "args": {}}]), result]
    with CloudServer(Answer(text="Hm.", usage={**usage, "totalTokens": 1020})) as server:
        reply = await asked(server, f"bedrock_converse:{model}?extra_body.top_k=7", [*opening, *read])
    body, point = server.requests[0].body, {"cachePoint": {"type": "default"}}
    whole = [{"text": "What all read.\n\nWho you are."}]
    assert body["system"] == ([{"text": "What all read."}, point, {"text": "\n\nWho you are."}] if shared else whole)
    assert (body["messages"][-1]["content"][-1] == point) == end
    assert str(body).count("cachePoint") == shared + end
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.cache_write_tokens) == (1000, 800, 100)


@pytest.mark.parametrize(
    ("model", "package", "setting"),
    [
        ("google_genai:g", "langchain_google_genai", "extra_body"),
        ("bedrock_converse:b", "langchain_aws", "chat_template_kwargs"),
    ],
)
async def test_a_setting_that_a_cloud_does_not_have_is_an_error(
    monkeypatch: pytest.MonkeyPatch, model: str, package: str, setting: str
) -> None:
    pytest.importorskip(package)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with CloudServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"{model}?{setting}.x=1&base_url={server.base_url}")
        with pytest.raises(UsageError, match=f"takes no {setting}"):
            await check_models([name], catalog.options())
    assert server.requests == []
