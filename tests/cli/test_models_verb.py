"""``labmates models``: adding, showing and checking named models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.support.anthropic_server import AnthropicServer
from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, Call, Json, OpenAIServer
from tests.support.thinking import FAMILIES


def test_a_model_that_is_added_is_shown_and_listed_with_where_each_figure_is_from(
    labmates: Labmates, tmp_path: Path
) -> None:
    (tmp_path / "models.yaml").write_text("# ours\nbase: {provider: openai, model: b, top_p: 0.5}")
    url = "http://127.0.0.1:8001/v1"
    assert labmates("models", "add", "qwen", f"base?base_url={url}&price.input=1&price.output=2").code == 0
    text = (tmp_path / "models.yaml").read_text()
    assert text.startswith("# ours\nbase:")
    assert yaml.safe_load(text)["qwen"]["top_p"] == 0.5
    shown = labmates("models", "show", "qwen", "--json").records[0]
    assert (shown["name"], shown["address"], shown["key"]) == ("openai:b?top_p=0.5", f"{url} (given)", "none")
    assert shown["price"] == "input 1, output 2 dollars per million tokens (given)"
    hosted = labmates("models", "show", "openai:gpt-5.4-mini", "--json").records[0]
    assert "(shipped table of 2026-" in hosted["price"]
    assert "(shipped table of 2026-" in hosted["context_tokens"]
    assert {"base", "qwen"} <= {record["name"] for record in labmates("models", "list", "--json").records}
    again = labmates("models", "add", "qwen", "openai:other")
    assert (again.code, "already has a model 'qwen'" in again.err) == (2, True)
    assert labmates("models", "add", "a b", "openai:other").code == 2
    assert labmates("models", "add", "c", "openai:other?tempature=1").code == 2
    assert (tmp_path / "models.yaml").read_text() == text


@pytest.mark.parametrize(
    ("name", "known"),
    [("qwen3:14b", "qwen3-14b"), ("phi4", "phi-4"), ("nvidia/Llama-3.1-Nemotron-Nano-8B-v1", "nemotron-nano-8b")],
)
def test_a_known_model_is_shown_by_the_name_that_servers_have(labmates: Labmates, name: str, known: str) -> None:
    assert labmates("models", "show", name, "--json").records[0]["name"] == known


def test_check_tells_what_a_server_can_not_do(labmates: Labmates) -> None:
    with OpenAIServer(Answer(text="ready", usage=None), models=["m"]) as server:
        done = labmates("models", "check", f"openai:m?base_url={server.base_url}", "--json")
    able = {record["what"]: record["able"] for record in done.records}
    assert done.code == 0
    assert able == {
        "answers": True, "usage": False, "reasoning": False, "tools": False, "json": False, "cache": None,
        "context": None,
    }  # fmt: skip
    assert len(server.requests) == 5
    plain = labmates("models", "check", f"openai:m?base_url={server.base_url}")
    assert plain.code == 2  # The server is gone.


def test_check_tells_what_a_server_can_do(labmates: Labmates) -> None:
    def behave(body: Json, n: int) -> Answer:
        if body.get("tools"):
            return Answer(text="", calls=(Call("note_number", {"number": 7}),))
        long = len(str(body["messages"])) > 3000
        cached: Json = {"prompt_tokens": 3000 if long else 20, "completion_tokens": 9}
        cached |= {"prompt_tokens_details": {"cached_tokens": 2900 if long else 0}}
        if body.get("response_format") == {"type": "json_object"}:
            return Answer(text='{"1": "red"}')
        return Answer(text="ready", reasoning="A word is wanted.", usage=cached)

    with OpenAIServer(behave, models=["m"]) as server:
        done = labmates("models", "check", f"openai:m?base_url={server.base_url}")
    assert done.code == 0
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert [name for name, text in lines.items() if text.startswith("yes")] == [
        "answers", "usage", "reasoning", "tools", "loop", "json", "cache",
    ]  # fmt: skip
    assert "2,900 of 3,000 input tokens" in lines["cache"]


def test_check_tells_of_calls_left_in_the_text_and_prompts_that_are_cut(labmates: Labmates) -> None:
    call = json.dumps({"name": "note_number", "arguments": {"number": 7}})
    with OpenAIServer(Answer(text=call, usage={"prompt_tokens": 512, "completion_tokens": 9}), models=["m"]) as server:
        done = labmates("models", "check", f"openai:m?base_url={server.base_url}", "--json")
    told = {record["what"]: record["text"] for record in done.records}
    assert told["tools"] == 'note_number({"number": 7}); a tool call was part of the text'
    assert "the server counted 512 input tokens" in told["cache"]
    assert "it may have cut it" in told["cache"]


@pytest.mark.parametrize("keeps", [True, False])
def test_check_makes_the_second_call_of_a_tool_loop_with_the_thoughts_of_the_first(
    labmates: Labmates, keeps: bool
) -> None:
    family = FAMILIES["deepseek"] if keeps else replace(FAMILIES["deepseek"], wanted="something else")
    with family.serve() as server:
        done = labmates("models", "check", f"openai:deepseek-v4?base_url={server.base_url}", "--json")
    [loop] = [record for record in done.records if record["what"] == "loop"]
    assert loop["able"] is keeps
    sent = "2 calls; the thoughts of the first reply went back to the server"
    assert sent in loop["text"] if keeps else "must be passed back to the API" in loop["text"]


@pytest.mark.parametrize(
    ("kind", "model", "told"),
    [
        (OpenAIServer, "openai:m", {"max_model_len": 32768}),
        (AnthropicServer, "anthropic:m", {"max_input_tokens": 32768}),
    ],
)
def test_check_tells_the_context_that_the_server_tells(
    labmates: Labmates, kind: type[OpenAIServer], model: str, told: Json
) -> None:
    if kind is AnthropicServer:
        pytest.importorskip("langchain_anthropic")
    with kind(Answer(text="ready"), models=["m"], told=told) as server:
        done = labmates("models", "check", f"{model}?base_url={server.base_url}", "--json")
    [context] = [record for record in done.records if record["what"] == "context"]
    assert context["able"] is True
    assert context["text"] == "32,768 tokens"


def test_a_pool_can_charge_what_the_provider_charges(labmates: Labmates) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}}
    with OpenAIServer(Answer(text='{"contribution": 10}', usage=usage)) as server:
        place = f"openai:m?base_url={server.base_url}"
        game = ["run", "game", "--game", "public-goods", "--group-size", "2", "--groups", "1", "--rounds", "1"]
        price = "price.input=2&price.cached=0.2&price.output=5"
        done = labmates(*game, "--model", f"{place}&{price}", "--prices", "bill", "--json")
        unknown = labmates(*game, "--model", place, "--prices", "bill")
    [record] = done.records
    calls = record["usage"]["llm_calls"]
    assert record["usage"]["cached_tokens"] == 900 * calls
    assert float(record["bill"]) * 1e6 == calls * (100 * 2 + 900 * 0.2 + 10 * 5)
    assert record["condition"]["prices"]["models"]["openai:m"]["cached"] == "0.2"
    assert (unknown.code, "the price of openai:m is unknown" in unknown.err) == (2, True)


@pytest.mark.parametrize("name", ["human:ann", "recorded:3f9a2c41d7"])
def test_nothing_is_checked_where_no_model_replies(labmates: Labmates, name: str) -> None:
    done = labmates("models", "check", name)
    assert done.code == 2
    assert f"'{name}' is no model that can be checked" in done.err
