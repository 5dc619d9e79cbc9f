"""Programs that speak one protocol, and models behind another: both get what they would get from their own kind."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from labmates.budgets.prices import PriceList
from labmates.budgets.tokens import Usage
from labmates.models.entries import Access
from labmates.models.hub import ModelHub
from labmates.models.reply import Reply
from labmates_doors.gateway.upstream import read_upstreams
from labmates_doors.protocols.base import Protocol, RefusedRequestError
from labmates_doors.protocols.chat import CHAT
from labmates_doors.protocols.messages import MESSAGES
from labmates_doors.protocols.responses import RESPONSES
from tests.doors.gateway.conftest import KEY, PRICE, Served, openai_upstream, served
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import Answer, Call, OpenAIServer, fault
from tests.support.thinking import DONE, FAMILIES

SCHEMA: Any = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
LOOK = {"name": "look", "description": "Look somewhere."}
USAGE = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
TOOL: Any = {"type": "function", "function": {**LOOK, "parameters": SCHEMA}}
FORCED: Any = {"type": "function"}
LOOKS = Answer(text="Let me look.", calls=(Call("look", {"where": "here"}, "call_1"),), usage=USAGE)
ENDS = Answer(text="It is here.", usage=USAGE)


def test_models_are_set_up_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[str] = []
    connect = ModelHub._connect

    def watch(hub: ModelHub, model: str) -> None:
        connected.append(model)
        connect(hub, model)

    monkeypatch.setattr(ModelHub, "_connect", watch)
    with OpenAIServer(ENDS) as server:
        access = Access(base_url=server.base_url)
        upstream = replace(openai_upstream(server.base_url), access=access)
        unusable = replace(upstream, name="unusable", provider="nobody", model="n")
        with served(upstream, unusable) as gateway:
            assert connected == ["openai:m", "nobody:n"]
            body = {"model": "m", "messages": [{"role": "user", "content": "Where?"}], "max_tokens": 9}
            assert gateway.ask("/v1/messages", body)[0] == 200
            status, reply = gateway.ask("/v1/messages", body | {"model": "n"})
            assert (status, "nobody" in str(reply)) == (501, True)


class ChatProgram:
    """Asks by chat completions, and says what came back as its protocol has it."""

    def __init__(self, gateway: Served, model: str, stream: bool) -> None:
        self.client = gateway.openai()
        self.model, self.stream = model, stream
        self.messages: list[Any] = [{"role": "system", "content": "Be brief."}]
        self.tools: Any = [{"type": "function", "function": {**LOOK, "parameters": SCHEMA}}]

    def ask(self, question: str) -> tuple[str, list[Any]]:
        self.messages.append({"role": "user", "content": question})
        return self._turn()

    def result(self, text: str, call: str = "call_1") -> tuple[str, list[Any]]:
        self.messages.append({"role": "tool", "tool_call_id": call, "content": text})
        return self._turn()

    def _turn(self) -> tuple[str, list[Any]]:
        asked: dict[str, Any] = {"model": self.model, "messages": self.messages, "tools": self.tools, "max_tokens": 300}
        if self.stream:
            with self.client.chat.completions.stream(**asked) as events:
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = self.client.chat.completions.create(**asked).choices[0].message
        said = {"role": "assistant", "content": message.content}
        calls = [call.model_dump(exclude={"function": {"parsed_arguments"}}) for call in message.tool_calls or ()]
        self.messages.append({**said, "tool_calls": calls} if calls else said)
        return message.content, [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
        ]


class ResponsesProgram(ChatProgram):
    """Asks by responses."""

    def __init__(self, gateway: Served, model: str, stream: bool) -> None:
        super().__init__(gateway, model, stream)
        self.messages = []
        self.tools = [{"type": "function", **LOOK, "parameters": SCHEMA}]

    def result(self, text: str, call: str = "call_1") -> tuple[str, list[Any]]:
        self.messages.append({"type": "function_call_output", "call_id": call, "output": text})
        return self._turn()

    def _turn(self) -> tuple[str, list[Any]]:
        asked: dict[str, Any] = {"model": self.model, "input": self.messages, "tools": self.tools}
        asked |= {"instructions": "Be brief.", "max_output_tokens": 300}
        if self.stream:
            with self.client.responses.stream(**asked) as events:
                response: Any = events.get_final_response()
        else:
            response = self.client.responses.create(**asked)
        items = [item.model_dump(exclude_none=True) for item in response.output]
        self.messages += [{k: v for k, v in item.items() if k != "parsed_arguments"} for item in items]
        calls = [(one["name"], json.loads(one["arguments"])) for one in items if one["type"] == "function_call"]
        return response.output_text, calls


class MessagesProgram(ChatProgram):
    """Asks by Anthropic's messages."""

    def __init__(self, gateway: Served, model: str, stream: bool) -> None:
        self.asking = gateway.anthropic()
        self.model, self.stream = model, stream
        self.messages = []
        self.tools = [{**LOOK, "input_schema": SCHEMA}]

    def result(self, text: str, call: str = "call_1") -> tuple[str, list[Any]]:
        block = {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": text}]}
        self.messages.append({"role": "user", "content": [block]})
        return self._turn()

    def _turn(self) -> tuple[str, list[Any]]:
        asked: dict[str, Any] = {"model": self.model, "messages": self.messages, "tools": self.tools}
        asked |= {"system": "Be brief.", "max_tokens": 300}
        if self.stream:
            with self.asking.messages.stream(**asked) as events:
                message: Any = events.get_final_message()
        else:
            message = self.asking.messages.create(**asked)
        content = [block.to_dict() for block in message.content]
        self.messages.append({"role": "assistant", "content": content})
        text = "".join(block["text"] for block in content if block["type"] == "text")
        return text, [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]


@contextmanager
def translating(
    provider: str, monkeypatch: pytest.MonkeyPatch, looks: Answer = LOOKS
) -> Iterator[tuple[Served, list[Any]]]:
    """A gateway before a server that looks once; the transcripts that it gets, as chat completions have them."""
    sent: list[Any] = []

    def behave(request: Any, _number: int) -> Answer:
        sent.append(request["messages"])
        return looks if len(sent) == 1 else ENDS

    monkeypatch.setenv("SERVER_KEY", KEY)
    with (AnthropicServer if provider == "anthropic" else OpenAIServer)(behave) as server:
        named = f"{provider}:m?base_url={server.base_url}&api_key_env=SERVER_KEY"
        upstreams = read_upstreams([named], PriceList(default=PRICE), os.environ)
        with served(*upstreams) as gateway:
            yield gateway, sent


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("program", "provider"),
    [
        (ChatProgram, "anthropic"),
        (ResponsesProgram, "anthropic"),
        (MessagesProgram, "openai"),
        (ResponsesProgram, "openai"),  # a server without responses
    ],
)
def test_a_program_uses_a_model_behind_another_protocol(
    program: type[ChatProgram], provider: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with translating(provider, monkeypatch) as (gateway, sent):
        asking = program(gateway, "m", stream)
        assert asking.ask("Where is it?") == ("Let me look.", [("look", {"where": "here"})])
        assert asking.result("found at x") == ("It is here.", [])
        asking.ask("Sure?")
        paid = [exchange.cost for exchange in gateway.exchanges if exchange.cost]
    assert paid == [40 + 90] * 3
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"where": "here"}'}}
    looked = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    assert sent[-1] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is it?"},
        looked,
        {"role": "tool", "tool_call_id": "call_1", "content": "found at x"},
        {"role": "assistant", "content": "It is here."},
        {"role": "user", "content": "Sure?"},
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("program", "family"),
    [(ChatProgram, "anthropic"), (ResponsesProgram, "anthropic"), (MessagesProgram, "deepseek")],
)
def test_a_program_gets_by_with_a_model_that_thinks_behind_another_protocol(
    program: type[ChatProgram], family: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    thinking = FAMILIES[family]
    with thinking.serve() as server:
        at = thinking.model.format(url=server.base_url).removesuffix("&thinking_budget=2048")
        [upstream] = read_upstreams([f"{at}&api_key_env=SERVER_KEY"], PriceList(default=PRICE), os.environ)
        with served(upstream) as gateway:
            asking = program(gateway, upstream.name, stream)
            assert asking.ask("Note 7.")[1] == [("note_number", {"number": 7})]
            assert asking.result("noted", "call_7") == (DONE, [])
    assert thinking.returned(server.requests[1].body) == [thinking.wanted]


@pytest.mark.parametrize("stream", [False, True])
def test_translated_errors_have_the_form_of_the_protocol(stream: bool) -> None:
    wrong = fault(429, {"error": {"message": f"slow down, {KEY}"}})
    with OpenAIServer(wrong) as server:
        upstreams = read_upstreams([f"openai:m?base_url={server.base_url}"], PriceList(default=PRICE), os.environ)
        with served(*upstreams) as gateway:
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
            status, body = gateway.ask("/v1/messages", asked)
            [exchange] = gateway.settled()
    assert status == exchange.status == 429
    assert body["error"]["type"] == "rate_limit_error"
    assert (exchange.cost, exchange.note) == (0, "not billed")
    assert KEY not in json.dumps(body) + str(exchange)


@pytest.mark.parametrize("answer", [Answer(cut="before"), Answer(cut="within"), Answer(silent=True)])
def test_a_translated_call_that_is_lost_is_charged_in_full(answer: Answer) -> None:
    with OpenAIServer(answer) as server:
        upstreams = read_upstreams([f"openai:m?base_url={server.base_url}"], PriceList(default=PRICE), os.environ)
        with served(*upstreams, timeout=1.0) as gateway:
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
            status, _ = gateway.ask("/v1/messages", asked)
            [exchange] = gateway.settled()
    assert status == 502
    assert exchange.note.startswith("may be billed")
    assert exchange.usage is not None
    assert exchange.usage.output_tokens == 300


@pytest.mark.parametrize(
    ("protocol", "body", "message"),
    [
        (CHAT, {"messages": [], "tool_choice": "required"}, "'tool_choice' wants 'required', and the tools are: none"),
        (CHAT, {"messages": [], "tools": [TOOL], "tool_choice": FORCED | {"name": "y"}}, "wants 'y', and the tools"),
        (RESPONSES, {"input": "x", "tool_choice": {"type": "allowed_tools"}}, "of type 'allowed_tools' is not supp"),
        (CHAT, {"messages": [], "logprobs": True}, "not supported by this model.*: logprobs"),
        (MESSAGES, {"messages": [], "top_k": 5}, "not supported by this model.*: top_k"),
        (CHAT, {"messages": [{"role": "king", "content": "x"}]}, "the request is malformed: Unexpected message type"),
        (CHAT, {"messages": "x"}, "'messages' must be a list"),
        (RESPONSES, {"model": "m"}, "the request is malformed: no 'input'"),
        (RESPONSES, {"input": [{"type": "computer_call"}]}, "takes no items of type 'computer_call'"),
        (RESPONSES, {"input": "x", "tools": [{"type": "custom", "name": "y"}]}, "has no tools of type 'custom'"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "no blocks of type 'document'"),
        (MESSAGES, {"messages": [{"role": "user"}]}, "the request is malformed: no 'content'"),
        (MESSAGES, {"messages": [7]}, "the request is malformed"),
        (MESSAGES, {"messages": [], "tools": [{}]}, "the request is malformed: no 'name'"),
    ],
)
def test_requests_that_another_protocol_can_not_express_are_refused(
    protocol: Protocol, body: dict[str, Any], message: str
) -> None:
    with pytest.raises(RefusedRequestError, match=message):
        protocol.prompt(body)


@pytest.mark.parametrize(
    ("protocol", "choice", "meant"),
    [
        (CHAT, "required", "required"),
        (CHAT, {"type": "function", "function": {"name": "look"}}, "look"),
        (CHAT, "auto", ""),
        (RESPONSES, {"type": "function", "name": "look"}, "look"),
        (MESSAGES, {"type": "any"}, "required"),
        (MESSAGES, {"type": "tool", "name": "look", "disable_parallel_tool_use": True}, "look"),
    ],
)
def test_every_protocol_forces_a_tool(protocol: Protocol, choice: Any, meant: str) -> None:
    tools = {CHAT: TOOL, RESPONSES: {"type": "function", **LOOK, "parameters": SCHEMA}}
    tool = tools.get(protocol, {**LOOK, "input_schema": SCHEMA})
    prompt = protocol.prompt({"messages": [], "input": "x", "tools": [tool], "tool_choice": choice, "top_p": 1})
    assert prompt.tool_choice == meant
    assert prompt.one_call == ("disable_parallel_tool_use" in choice)


@pytest.mark.parametrize(("provider", "name"), [("anthropic", "look"), ("openai", "look"), ("openai", "required")])
def test_a_forced_tool_reaches_the_model_as_its_protocol_has_it(
    provider: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    with (AnthropicServer if provider == "anthropic" else OpenAIServer)(LOOKS) as server:
        named = f"{provider}:m?base_url={server.base_url}&api_key_env=SERVER_KEY"
        with served(*read_upstreams([named], PriceList(default=PRICE), os.environ)) as gateway:
            if provider == "anthropic":
                choice: Any = {"type": "function", "function": {"name": name}}
                asked: Any = {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL]}
                path = "/v1/chat/completions"
            else:
                choice = {"type": "any"} if name == "required" else {"type": "tool", "name": name}
                asked = {"messages": [{"role": "user", "content": "x"}], "tools": [{**LOOK, "input_schema": SCHEMA}]}
                path = "/v1/messages"
            status, _ = gateway.ask(path, {**asked, "model": "m", "max_tokens": 300, "tool_choice": choice})
    sent = server.requests[0].body["tool_choice"]
    forced = {"type": "function", "function": {"name": name}}
    assert status == 200
    assert sent == (
        {"type": "tool", "name": name} if provider == "anthropic" else name if name == "required" else forced
    )


def test_a_model_that_can_not_be_forced_says_so() -> None:
    with served(*read_upstreams(["scripted:diligent"], PriceList(default=PRICE), os.environ)) as gateway:
        asked = {"model": "diligent", "max_tokens": 300, "messages": [{"role": "user", "content": "x"}]}
        asked |= {"tools": [TOOL], "tool_choice": "required"}
        status, body = gateway.ask("/v1/chat/completions", asked)
        [exchange] = gateway.settled()
    assert (status, exchange.cost) == (400, 0)
    assert "can't be made to call a tool" in body["error"]["message"]


@pytest.mark.parametrize(("provider", "events"), [("anthropic", 8), ("openai", 6)])
def test_a_translated_stream_comes_in_parts(provider: str, events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    is_chat, go_on = provider == "anthropic", threading.Event()
    with translating(provider, monkeypatch, replace(LOOKS, held=(events, go_on))) as (gateway, _):
        tools = (ChatProgram if is_chat else MessagesProgram)(gateway, "m", True).tools
        asked: Any = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "x"}], "stream": True}
        with gateway.asked("/v1/chat/completions" if is_chat else "/v1/messages", asked | {"tools": tools}) as reply:
            begun = b""
            while b"whe" not in begun:  # the server holds back the rest of the call
                begun += reply.read1()
            go_on.set()
            rest = reply.read()
        [exchange] = gateway.settled()
    assert (reply.status, exchange.cost) == (200, 130)
    assert b"Let" in begun
    assert b"here" not in begun
    assert b"here" in rest


def test_tools_of_namespaces_are_tools_with_longer_names() -> None:
    inner = {"type": "function", **LOOK, "parameters": SCHEMA}
    used = {"type": "function_call", "call_id": "a", "namespace": "mcp__lab", "name": "look", "arguments": "{}"}
    body = {"input": [used], "tools": [{"type": "namespace", "name": "mcp__lab", "tools": [inner]}]}
    prompt = RESPONSES.prompt(body)
    [message] = prompt.messages
    assert [tool["function"]["name"] for tool in prompt.tools] == ["mcp__lab__look"]
    assert isinstance(message, AIMessage)
    assert message.tool_calls[0]["name"] == "mcp__lab__look"
    assert prompt.placed("mcp__lab__look") == "mcp__lab/look"


@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}])
def test_a_message_that_only_calls_tools_needs_no_text(content: dict[str, Any]) -> None:
    asked = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = {"messages": [{"role": "assistant", "tool_calls": [asked], **content}]}
    [message] = CHAT.prompt(body).messages
    assert isinstance(message, AIMessage)
    assert (message.content, message.tool_calls[0]["name"]) == ("", "look")


def test_results_of_tools_come_before_the_words_beside_them() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    used = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    ]
    came = [{"type": "text", "text": "And?"}, picture, {"type": "tool_result", "tool_use_id": "a", "content": "x"}]
    body = {"messages": [{"role": "assistant", "content": used}, {"role": "user", "content": came}]}
    call, result, words = MESSAGES.prompt(body).messages
    assert (call.content, result.type, result.content) == ("", "tool", "x")
    assert words.content == [
        {"type": "text", "text": "And?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_every_protocol_names_the_format_of_a_reply() -> None:
    form = {"name": "reply", "schema": SCHEMA}
    asked = {"type": "json_schema", "json_schema": form}
    user: Any = {"messages": [{"role": "user", "content": "x"}]}
    assert CHAT.prompt({**user, "response_format": asked}).response_format == asked
    assert (
        RESPONSES.prompt({"input": "x", "text": {"format": {"type": "json_schema", **form}}}).response_format == asked
    )
    assert RESPONSES.prompt({"input": "x", "text": {"format": {"type": "text"}}}).response_format is None
    config = {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert MESSAGES.prompt({**user, "output_config": config}).response_format == asked


def test_a_text_that_ends_a_reply_ends_it() -> None:
    prompt = CHAT.prompt({"messages": [{"role": "user", "content": "x"}], "stop": ["END", "OBS"]})
    reply = Reply("first OBS then END", (), (), AIMessage(""), "stop", Usage(1, 1))
    assert prompt.ended(reply).text == "first "
    assert MESSAGES.prompt({"messages": [], "stop_sequences": ["."]}).stop == (".",)
