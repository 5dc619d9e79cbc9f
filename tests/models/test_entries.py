"""Models as entries: one notation, what of it is a condition's, and what reaches the server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.models.entries import read_reference
from labmates.models.errors import EndpointError
from labmates.models.hub import ModelHub
from labmates.models.names import parse_model
from labmates.models.options import ModelOptions
from labmates.workflows.protocol.experiment import make_condition
from tests.support.openai_server import Answer, OpenAIServer, fault

URL = "http://127.0.0.1:8001/v1"
FILE = """
left: {provider: openai, model: qwen3-8b, base_url: "http://127.0.0.1:8001/v1", temperature: 0.6,
       chat_template_kwargs: {enable_thinking: true}, price: {input: 0.1, cached: 0.01, output: 0.4}}
"""


def test_a_key_in_the_query_of_an_address_is_not_shown() -> None:
    with pytest.raises(UsageError, match="must have no query") as error:
        read_reference("openai:x?base_url=http://h/v1?key=SEKRET", {})
    assert "SEKRET" not in str(error.value)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").write_text(FILE)
    return tmp_path


async def asked(reference: str, server: OpenAIServer) -> dict[str, object]:
    """Return the body of the one request that a model named so sends."""
    catalog = Catalog(ModelOptions(max_retries=0), {})
    name = catalog.name_of(f"{reference}{'&' if '?' in reference else '?'}base_url={server.base_url}")
    async with ModelHub(catalog.options()) as hub:
        await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
    return server.requests[-1].body


def test_what_changes_play_is_in_the_name_and_how_a_model_is_reached_is_not() -> None:
    catalog = Catalog(named={})
    name = catalog.name_of(
        f"openai:qwen3-8b?top_p=0.9&base_url={URL}&reasoning_effort=high&price.input=0.1&price.output=1"
    )
    assert name == "openai:qwen3-8b?reasoning_effort=high&top_p=0.9"
    assert str(parse_model(name)) == name
    access = catalog.options().entries[name]
    assert (access.base_url, access.price and access.price.input) == (URL, 100_000)
    assert ModelOptions.model_validate_json(catalog.options().model_dump_json()) == catalog.options()


def test_an_entry_of_the_file_and_its_inline_form_are_one_model(in_folder: Path) -> None:
    catalog = Catalog()
    inline = f"openai:qwen3-8b?temperature=0.6&chat_template_kwargs.enable_thinking=true&base_url={URL}"
    inline += "&price.input=0.1&price.cached=0.01&price.output=0.4"
    assert catalog.name_of("left") == catalog.name_of(inline)
    other = catalog.name_of("left?temperature=0.2")
    assert other == "openai:qwen3-8b?chat_template_kwargs.enable_thinking=true&temperature=0.2"
    assert catalog.options().entries[other].base_url == URL


def test_addresses_are_in_no_key() -> None:
    def key(model: str) -> str:
        return make_condition("game", {"game": "public-goods", "model": model}, catalog=Catalog(named={})).key

    assert key(f"openai:m?base_url={URL}&api_key_env=K&max_concurrent_calls=3") == key("openai:m")
    assert key("openai:m?top_p=0.5") != key("openai:m")


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("openai:m?tempature=1", "unknown setting 'tempature'; known: api_key_env, base_url, "),
        ("openai:m?temperature=9", "temperature: must be at most 2"),
        ("openai:m?temperature", "'temperature' is not NAME=VALUE"),
        ("openai:m?top_p=0.5&top_p=0.6", "'top_p' is given twice"),
        ("openai:m?base_url=ftp://x", "must begin with http:// or https://"),
        ("openai:m?api_key_env=sk-abcdefgh", "must be the name of an environment variable, not a key"),
        ("openai:m?price.input=1", "a price needs input and output"),
        ("openai:m?extra_body.model=x", "model can't be set here"),
        ("nobody?top_p=0.5", "has no provider: write provider:name"),
    ],
)
def test_a_wrong_reference_is_told_what_is_wrong(reference: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)) as error:
        Catalog(named={}).name_of(reference)
    assert "sk-abcdefgh" not in str(error.value)


def test_one_model_at_two_addresses_needs_two_names() -> None:
    catalog = Catalog(named={})
    catalog.name_of(f"openai:m?base_url={URL}")
    with pytest.raises(UsageError, match="the same model with the same settings"):
        catalog.name_of("openai:m?base_url=http://127.0.0.1:9/v1")
    assert catalog.name_of("openai:m?base_url=http://127.0.0.1:9/v1&variant=int4") == "openai:m?variant=int4"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("left: {provider: openai}", "entry 'left': model: this key is missing"),
        ("left: {provider: openai, model: m, sped: 1}", "unknown setting 'sped'"),
        ("- left", "the models file must be a mapping of keys"),
        ("left: [", "models.yaml:1: invalid YAML: expected"),
        ("'a:b': {provider: openai, model: m}", "a name has letters (A-Z and a-z, no accents), digits"),
    ],
)
def test_a_wrong_models_file_is_told_what_is_wrong(in_folder: Path, text: str, told: str) -> None:
    (in_folder / "models.yaml").write_text(text)
    with pytest.raises(UsageError, match=re.escape(told)):
        Catalog()


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ("temperature=0.6&top_p=0.95&seed=7", {"temperature": 0.6, "top_p": 0.95, "seed": 7}),
        ("reasoning_effort=high", {"reasoning_effort": "high"}),
        ("chat_template_kwargs.enable_thinking=false", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("extra_body.top_k=20&extra_body.min_p=0.1", {"top_k": 20, "min_p": 0.1}),
        ("stop=END&stop=a%26b", {"stop": ["END", "a&b"]}),
        ("response_format.type=json_object", {"response_format": {"type": "json_object"}}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_setting_is_in_the_request(settings: str, sent: dict[str, object], stream: bool) -> None:
    with OpenAIServer() as server:
        catalog = Catalog(ModelOptions(stream=stream), {})
        name = catalog.name_of(f"openai:m?{settings}&base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
        assert server.requests[-1].body.items() >= sent.items()
        assert server.requests[-1].body["model"] == "m"


@pytest.mark.parametrize("setting", ["temperature", "top_p", "top_k"])
async def test_a_gateway_that_refuses_a_field_is_told_with_its_name(setting: str) -> None:
    def behave(body: dict[str, object], n: int) -> Answer:
        refusal = {"error": {"message": f"Extra inputs are not permitted: {setting}", "param": setting}}
        return fault(400, refusal) if setting in body else Answer()

    with OpenAIServer(behave) as server:
        name = f"extra_body.{setting}" if setting == "top_k" else setting
        with pytest.raises(EndpointError, match=f"does not take the setting {name}"):
            await asked(f"openai:m?{name}=1", server)
        assert len(server.requests) == 1
        await asked("openai:m", server)


async def test_a_server_of_an_entry_gets_no_key_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-itself")
    monkeypatch.setenv("LAB_KEY", "key-of-the-lab")
    with OpenAIServer() as server:
        await asked("openai:m", server)
        await asked("openai:m?api_key_env=LAB_KEY", server)
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer none", "Bearer key-of-the-lab"]


async def test_usage_and_bill_tell_cached_input_apart() -> None:
    usage = {"prompt_tokens": 10_000, "completion_tokens": 10, "total_tokens": 10_010}
    usage["prompt_tokens_details"] = {"cached_tokens": 9_900}  # type: ignore[assignment]
    with OpenAIServer(Answer(usage=usage)) as server:
        catalog = Catalog(named={})
        price = "price.input=0.5&price.cached=0.05&price.output=3"
        name = catalog.name_of(f"openai:m?base_url={server.base_url}&{price}")
        async with ModelHub(catalog.options()) as hub:
            replies = [
                await hub.call(name, [HumanMessage("Hello " * 2_000)], seed=n, max_output_tokens=100) for n in range(48)
            ]
    assert sum(reply.bill or 0 for reply in replies) == 27_600
    assert {reply.usage.cached_tokens for reply in replies} == {9_900}


async def test_a_chat_model_of_a_program_takes_part_by_a_name_of_its_own() -> None:
    chat = FakeListChatModel(responses=["fine"])
    catalog = Catalog(named={})
    name = catalog.name_of(chat)
    assert re.fullmatch(r"object:FakeListChatModel-[0-9a-f]{8}", name)
    assert catalog.name_of(FakeListChatModel(responses=["other"])) != name
    async with ModelHub(catalog.options()) as hub:
        reply = await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100)
        with pytest.raises(UsageError, match="takes no temperature"):
            await hub.call(name, [HumanMessage("Hello")], seed=1, max_output_tokens=100, temperature=0.5)
    assert reply.text == "fine"
    with pytest.raises(UsageError, match="an object of another program"):
        parse_model("object:nobody")
