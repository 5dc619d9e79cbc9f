"""Models of Anthropic, through LangChain's package, against a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

import labmates
from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.models.check import check_models, check_thinking
from labmates.models.errors import EndpointError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.prefix import mark_continued, mark_shared
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import Answer, Call, fault

pytest.importorskip("langchain_anthropic")
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
PLACE = "anthropic:claude-x?base_url={url}&api_key_env=LAB_KEY"


async def test_tools_usage_settings_and_key_reach_the_server_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "key-of-the-lab")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-anthropic")
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    usage |= {"cache_read_input_tokens": 800, "cache_creation_input_tokens": 100}
    with AnthropicServer([Answer(text="Hm.", calls=(Call("look", {"at": 1}, "toolu_1"),), usage=usage)]) as server:
        catalog = Catalog(named={})
        price = "price.input=1&price.cached=0.1&price.cache_write=1.25&price.output=5"
        name = catalog.name_of(f"{PLACE.format(url=server.base_url)}&top_p=0.9&stop=END&extra_body.top_k=7&{price}")
        before = [
            SystemMessage("Rules."),
            HumanMessage("Look."),
            AIMessage("", tool_calls=[{"id": "call_1", "name": "look", "args": {}}]),
            ToolMessage("nothing", tool_call_id="call_1"),
        ]
        async with ModelHub(catalog.options()) as hub:
            reply = await hub.call(name, before, tools=[TOOL], seed=1, max_output_tokens=90, temperature=0.5)
    [request] = server.requests
    assert (request.headers["authorization"], request.path) == ("Bearer key-of-the-lab", "/v1/messages")
    sent = {"model": "claude-x", "max_tokens": 90, "temperature": 0.5, "top_p": 0.9, "top_k": 7}
    assert request.body.items() >= {**sent, "stop_sequences": ["END"]}.items()
    assert [tool["name"] for tool in request.body["tools"]] == ["look"]
    assert (reply.text, reply.tool_calls[0].name, reply.tool_calls[0].arguments) == ("Hm.", "look", {"at": 1})
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.cache_write_tokens) == (1000, 800, 100)
    assert reply.bill == 100 + 80 + 125 + 100
    assert not reply.usage.estimated


async def test_a_thinking_budget_is_sent_as_anthropic_has_it() -> None:
    with AnthropicServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}&thinking_budget=2048")
        async with ModelHub(catalog.options()) as hub:
            await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=4096)
    assert server.requests[0].body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert server.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize(("limit", "budget"), [(2049, 2048), (2048, 1536), (1400, 1050), (1024, None)])
async def test_a_thinking_budget_follows_a_lowered_limit(limit: int, budget: int | None) -> None:
    with AnthropicServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}&thinking_budget=2048")
        async with ModelHub(catalog.options()) as hub:
            await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=limit)
    wanted = {"type": "enabled", "budget_tokens": budget} if budget else {"type": "disabled"}
    assert server.requests[0].body["thinking"] == wanted


def test_a_thinking_budget_without_room_for_an_answer_is_an_error() -> None:
    check_thinking("anthropic:claude-x?thinking_budget=2048", 2049)
    check_thinking("anthropic:claude-x", 0)  # an experiment without a limit
    with pytest.raises(UsageError, match=r"2,048 leaves no room for an answer .* raise max_output_tokens"):
        check_thinking("anthropic:claude-x?thinking_budget=2048", 2048)


@pytest.mark.parametrize("setting", ["seed=1", "chat_template_kwargs.a=1", "response_format.type=json_object"])
async def test_a_setting_that_anthropic_does_not_have_is_an_error_before_the_first_call(setting: str) -> None:
    with AnthropicServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}&{setting}")
        told = f"the provider anthropic takes no {setting.partition('=')[0].partition('.')[0]}"
        with pytest.raises(UsageError, match=told):
            await check_models([name], catalog.options())
        assert server.requests == []


def test_two_event_loops_use_one_model_after_another() -> None:
    async def ask(catalog: Catalog, name: str) -> str:
        async with ModelHub(catalog.options()) as hub:
            return (await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=90)).text

    with AnthropicServer(Answer(text="fine")) as server:
        catalog = Catalog(ModelOptions(max_retries=0), {})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}")
        assert [asyncio.run(ask(catalog, name)) for _ in range(3)] == ["fine"] * 3
        ends = time.monotonic() + 10
        while server.connections and time.monotonic() < ends:  # the server, another thread, takes a moment to see it
            time.sleep(0.01)
        assert server.connections == 0, "a hub takes its connections with it"


async def test_notebooks_run_games_of_anthropic_models_again_and_again(tmp_path: Path) -> None:
    with AnthropicServer(Answer(text='{"effort": 3}')) as server:
        model = f"anthropic:claude-x?base_url={server.base_url}"
        game: dict[str, Any] = {"game": "weakest-link", "group_size": 2, "rounds": 1, "model": model}
        for _ in range(2):  # Within a running loop, as in a cell.
            [run] = labmates.run("game", store=f"sqlite:///{tmp_path}/runs.db", **game)
            assert run.status == "completed"


async def test_errors_are_told_and_overload_is_retried() -> None:
    overloaded = fault(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    refused = fault(401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}})
    with AnthropicServer([overloaded, Answer(text="fine"), refused]) as server:
        catalog = Catalog(ModelOptions(max_retries=1), {})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            reply = await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
            with pytest.raises(EndpointError, match="wants a key"):
                await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
    assert (reply.text, reply.attempts) == ("fine", 2)


async def test_a_base_url_for_all_is_refused_beside_anthropic() -> None:
    with pytest.raises(UsageError, match=r"give each model its own, for instance anthropic:claude-x\?base_url=URL"):
        await check_models(["anthropic:claude-x"], ModelOptions(base_url="http://127.0.0.1:9/v1"))


MARK = {"type": "ephemeral"}
OPENING = [mark_shared(SystemMessage("What all read.\n\nWho you are."), 14), mark_continued(HumanMessage("Look."))]
SYSTEM = [
    {"type": "text", "text": "What all read.", "cache_control": MARK},
    {"type": "text", "text": "\n\nWho you are."},
]


async def test_marks_stand_after_what_all_share_and_at_the_end_of_what_goes_on() -> None:
    read = [
        AIMessage("", tool_calls=[{"id": "toolu_1", "name": "look", "args": {}}]),
        ToolMessage("much", tool_call_id="toolu_1"),
    ]
    once = [OPENING[0], HumanMessage("Plan.")]
    with AnthropicServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            for messages in (OPENING, [*OPENING, *read], once, [HumanMessage("Hello")]):
                await hub.call(name, messages, tools=[TOOL], seed=1, max_output_tokens=100)
    first, second, single, plain = (request.body for request in server.requests)
    assert first["system"] == second["system"] == single["system"] == SYSTEM
    assert first["messages"][-1]["content"] == [{"type": "text", "text": "Look.", "cache_control": MARK}]
    assert second["messages"][0]["content"] == "Look."
    [result] = second["messages"][-1]["content"]
    assert (result["type"], result["content"], result["cache_control"]) == ("tool_result", [_text("much")], MARK)
    assert single["messages"] == [{"role": "user", "content": "Plan."}]
    assert "cache_control" not in str(plain)


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def test_a_server_that_refuses_marks_is_asked_without_them() -> None:
    wrong = {"type": "invalid_request_error", "message": "system.0.cache_control: Extra inputs are not permitted"}
    refused = fault(400, {"type": "error", "error": wrong})
    with AnthropicServer([refused, Answer(text="fine")]) as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            for _ in range(2):
                reply = await hub.call(name, OPENING, seed=1, max_output_tokens=100)
    assert reply.text == "fine"
    assert ["cache_control" in str(request.body) for request in server.requests] == [True, False, False]


async def test_a_judge_that_thinks_is_asked_without_the_temperature_that_thinking_forbids() -> None:
    text = "`temperature` may only be set to 1 when thinking is enabled."
    refused = fault(400, {"type": "error", "error": {"type": "invalid_request_error", "message": text}})
    with AnthropicServer([refused, Answer(text="fine")]) as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}&thinking_budget=2048")
        async with ModelHub(catalog.options()) as hub:
            asked = [HumanMessage("Hello")]
            reply = await hub.call(name, asked, seed=1, max_output_tokens=4096, temperature=0.0, insist=False)
    assert reply.text == "fine"
    assert ["temperature" in request.body for request in server.requests] == [True, False]


SPLIT = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0}


@pytest.mark.parametrize("written", [{}, {"cache_creation": SPLIT}])
async def test_what_is_written_to_the_cache_is_billed_however_it_is_told(written: dict[str, object]) -> None:
    usage: dict[str, object] = {"prompt_tokens": 100, "completion_tokens": 20, "cache_read_input_tokens": 800}
    usage |= {"cache_creation_input_tokens": 100, **written}
    with AnthropicServer([Answer(text="fine", usage=usage)]) as server:
        catalog = Catalog(named={})
        price = "price.input=1&price.cached=0.1&price.cache_write=1.25&price.output=5"
        name = catalog.name_of(f"anthropic:claude-x?base_url={server.base_url}&{price}")
        async with ModelHub(catalog.options()) as hub:
            reply = await hub.call(name, OPENING, seed=1, max_output_tokens=100)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.cache_write_tokens) == (1000, 800, 100)
    assert reply.bill == 100 + 80 + 125 + 100
