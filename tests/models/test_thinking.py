"""What a provider attached to its reply comes back to it: thoughts, signatures, reasoning items, unknown fields."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import SecretStr

from labmates.budgets.tokens import estimate_messages, token_bound
from labmates.models.attached import attached_to, for_model, with_attachment
from labmates.models.catalog import Catalog
from labmates.models.hub import ModelHub
from labmates.models.names import name_given
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply, listening
from labmates.models.settings import Thoughts
from tests.support.openai_server import Answer, Call, Json, OpenAIServer, fault
from tests.support.thinking import DONE, FAMILIES, NOTE, TOOL, Family

PACKAGES = {"anthropic": "langchain_anthropic", "gemini": "langchain_google_genai", "bedrock": "langchain_aws"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GOOGLE_API_KEY", "AZURE_OPENAI_API_KEY")
    for name in names:
        monkeypatch.setenv(name, "key-of-the-lab")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "")


def named(name: str, server: OpenAIServer) -> tuple[str, ModelOptions]:
    """The model of a family at a server, and the options to call it."""
    if package := PACKAGES.get(name):
        pytest.importorskip(package)
    if name == "responses":
        from langchain_openai import ChatOpenAI

        chat = ChatOpenAI(
            model="gpt-5.4",
            base_url=server.base_url,
            api_key=SecretStr("none"),
            use_responses_api=True,
            store=False,
            include=["reasoning.encrypted_content"],
        )
        return name_given(chat), ModelOptions(max_retries=0)
    if name == "azure":
        os.environ["AZURE_OPENAI_ENDPOINT"] = server.base_url
    catalog = Catalog(ModelOptions(max_retries=0), {})
    return catalog.name_of(FAMILIES[name].model.format(url=server.base_url)), catalog.options()


async def two_turns(hub: ModelHub, model: str, before: Sequence[BaseMessage] = ()) -> tuple[Reply, Reply]:
    """A tool loop of two calls."""
    asked = [*before, HumanMessage("Note the number 7.")]
    first = await hub.call(model, asked, tools=[TOOL], seed=1, max_output_tokens=4096)
    assert [(call.name, call.arguments) for call in first.tool_calls] == [(NOTE.name, NOTE.arguments)]
    answer = ToolMessage("noted", tool_call_id=first.tool_calls[0].id)
    second = await hub.call(model, [*asked, first.message, answer], tools=[TOOL], seed=1, max_output_tokens=4096)
    return first, second


@pytest.mark.parametrize("name", FAMILIES)
async def test_the_second_call_of_a_tool_loop_brings_back_what_the_first_reply_had(name: str) -> None:
    family = FAMILIES[name]
    with family.serve() as server:
        model, options = named(name, server)
        async with ModelHub(options) as hub:
            first, second = await two_turns(hub, model)
    assert second.text == DONE
    assert len(server.requests) == 2
    assert family.returned(server.requests[1].body) == [family.wanted]
    assert first.notes == ()


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "responses"])
async def test_a_watched_reply_brings_back_the_same(name: str) -> None:
    family = FAMILIES[name]
    with family.serve() as server:
        model, options = named(name, server)
        async with ModelHub(options) as hub:
            with listening(lambda _piece: None):
                _, second = await two_turns(hub, model)
    assert second.text == DONE
    assert family.returned(server.requests[1].body) == [family.wanted]


@pytest.mark.parametrize("name", FAMILIES)
async def test_a_server_refuses_a_reply_without_its_attachment(name: str) -> None:
    family: Family = FAMILIES[name]
    call = {"id": NOTE.id, "name": NOTE.name, "args": NOTE.arguments}
    bare = AIMessage("Noting.", tool_calls=[call])
    with family.serve() as server:
        model, options = named(name, server)
        async with ModelHub(options) as hub:
            asked = [HumanMessage("Note."), bare, ToolMessage("noted", tool_call_id=str(NOTE.id))]
            with pytest.raises(Exception, match=r"refused|HTTP 400|\(400\)"):
                await hub.call(model, asked, tools=[TOOL], seed=1, max_output_tokens=4096)


UNSUPPORTED = {
    "cerebras": "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is "
    "unsupported",
    "groq": "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
    "'reasoning_content' is unsupported)]",
    "google": "Invalid JSON payload received. Unknown name \"reasoning_content\" at 'messages[1]': Cannot find field.",
    "deepseek of 2025": "The reasoning_content is an intermediate result for display purposes only, and will not be "
    "included in the context for inference. Please remove the reasoning_content from your message.",
}
LOCS = {"detail": [{"loc": ["body", "messages", 1, "reasoning_content"], "msg": "Extra inputs are not permitted"}]}


@pytest.mark.parametrize("refusal", [*UNSUPPORTED, "mistral"])
async def test_a_field_that_the_server_refuses_is_left_out_from_then_on(refusal: str) -> None:
    first = Answer(text="", calls=(Signed("note_number", {"number": 7}),), reasoning="Hm.")

    def behave(request: Json, number: int) -> Answer:
        said = [message for message in request["messages"] if message["role"] == "assistant"]
        if any("reasoning_content" in message for message in said):
            text = UNSUPPORTED.get(refusal)
            return fault(400, {"error": {"message": text}}) if text else fault(422, LOCS)
        assert all(message["tool_calls"][0]["extra_content"] == {"kept": 1} for message in said)
        return Answer(text=DONE) if said else first

    with OpenAIServer(behave) as server:
        options = ModelOptions(base_url=server.base_url, max_retries=0)
        async with ModelHub(options) as hub:
            for _ in range(2):
                _, second = await two_turns(hub, "openai:m")
                assert second.text == DONE
    assert len(server.requests) == 5, "the second loop does not send it"


class Signed(Call):
    def on_the_wire(self, index: int | None = None) -> Json:
        return {**super().on_the_wire(index), "extra_content": {"kept": 1}}


@pytest.mark.parametrize("name", ["deepseek", "gemini-compatible"])
async def test_replies_of_another_model_get_what_the_server_requires(name: str) -> None:
    wanted = {
        "deepseek": "",
        "gemini-compatible": {"google": {"thought_signature": "skip_thought_signature_validator"}},
    }
    family = replace(FAMILIES[name], wanted=wanted[name])
    call = {"id": NOTE.id, "name": NOTE.name, "args": NOTE.arguments}
    asked = [HumanMessage("Note."), AIMessage("", tool_calls=[call]), ToolMessage("noted", tool_call_id=str(NOTE.id))]
    with family.serve() as server:
        model, options = named(name, server)
        async with ModelHub(options) as hub:
            reply = await hub.call(model, asked, tools=[TOOL], seed=1, max_output_tokens=4096)
    assert (reply.text, reply.attempts) == (DONE, 2)


async def test_another_model_gets_text_and_calls_alone() -> None:
    with FAMILIES["openrouter"].serve() as first, OpenAIServer(Answer(text=DONE)) as second:
        model, _ = named("openrouter", first)
        catalog = Catalog(ModelOptions(max_retries=0), {})
        other = catalog.name_of(f"openai:other?base_url={second.base_url}")
        catalog.name_of(FAMILIES["openrouter"].model.format(url=first.base_url))
        async with ModelHub(catalog.options()) as hub:
            reply, _ = await two_turns(hub, model)
            asked = [HumanMessage("Note."), reply.message, ToolMessage("noted", tool_call_id=reply.tool_calls[0].id)]
            await hub.call(other, asked, tools=[TOOL], seed=1, max_output_tokens=99)
    said = second.requests[0].body["messages"][1]
    assert said.keys() == {"role", "content", "tool_calls"}
    assert "reasoning" not in str(second.requests[0].body)


async def test_a_cached_reply_is_sent_back_like_any_other(tmp_path: Path) -> None:
    kept: dict[str, dict[str, Any]] = {}

    class Kept:
        async def get(self, key: str) -> dict[str, Any] | None:
            return kept.get(key)

        async def put(self, key: str, reply: dict[str, Any]) -> None:
            kept[key] = json.loads(json.dumps(reply, ensure_ascii=False).encode())

    with FAMILIES["anthropic"].serve() as server:
        model, options = named("anthropic", server)
        async with ModelHub(options, cache=Kept()) as hub:
            first, second = await two_turns(hub, model)
            again, _ = await two_turns(hub, model)
    assert (second.text, again.cached, again.message) == (DONE, True, first.message)
    assert len(server.requests) == 2


CALLED = {"name": "f", "args": {}, "id": "c1"}


def thinking(text: str, *, calls: bool = False) -> AIMessage:
    return with_attachment(
        AIMessage(text, tool_calls=[CALLED] if calls else []), {"source": "openai:m", "message": {"reasoning": text}}
    )


TRANSCRIPT = [
    SystemMessage("Rules."),
    *(HumanMessage("one"), thinking("a")),
    *(HumanMessage("two"), thinking("b", calls=True), ToolMessage("r", tool_call_id="c1"), thinking("c")),
    *(HumanMessage("three"), thinking("d", calls=True), ToolMessage("r", tool_call_id="c1"), thinking("e")),
]


@pytest.mark.parametrize(("thoughts", "kept"), [("tools", "bcde"), ("turn", "de"), ("all", "abcde")])
def test_the_condition_says_which_turns_keep_their_thoughts(thoughts: Thoughts, kept: str) -> None:
    sent = for_model(TRANSCRIPT, "openai:m?temperature=0", thoughts)
    assert "".join(str(message.content) for message in sent if attached_to(message)) == kept
    assert [message.content for message in sent] == [message.content for message in TRANSCRIPT]
    assert not any(map(attached_to, for_model(TRANSCRIPT, "openai:other", thoughts)))


def test_thoughts_that_are_sent_back_count() -> None:
    attached = with_attachment(AIMessage("Yes."), {"source": "m", "message": {"reasoning_content": "one two " * 200}})
    bare, full = estimate_messages([AIMessage("Yes.")]), estimate_messages([attached])
    assert 350 < full - bare < 600
    assert token_bound([attached]) >= token_bound([AIMessage("Yes.")]) + 1600
    signed = with_attachment(
        AIMessage("Yes."), {"source": "m", "content": [{"type": "reasoning", "data": "Zx9" * 400}]}
    )
    assert 100 < estimate_messages([signed]) - bare < 600
