"""Whatever a server answers with status 200, streamed or not, becomes the same safe reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from labmates.budgets.tokens import Usage
from labmates.models.normalise import NO_TEXT
from labmates.models.reply import Reply, ToolCall
from tests.models.conftest import Ask
from tests.support.openai_server import Answer, Call, OpenAIServer

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

USAGE = {
    "prompt_tokens": 31,
    "completion_tokens": 17,
    "total_tokens": 48,
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@tool
def run_code(code: str) -> str:
    """Run code."""
    return code


ANSWERS: dict[str, tuple[Answer, dict[str, Any]]] = {
    "plain text": (Answer(text="Hello"), {"text": "Hello", "finish": "stop"}),
    "reported usage": (Answer(usage=USAGE), {"usage": Usage(31, 17, 5)}),
    "usage in floats": (
        Answer(usage={"prompt_tokens": 31.0, "completion_tokens": 16.2, "total_tokens": None}),
        {"usage": Usage(31, 17)},
    ),
    "reasoning counted apart from the output": (
        Answer(usage={**USAGE, "total_tokens": 53}),
        {"usage": Usage(31, 22, 5)},
    ),
    "null content": (Answer(text=None), {"text": "", "faults": ("empty",)}),
    "empty content": (Answer(text=""), {"text": "", "faults": ("empty",)}),
    "blank content": (Answer(text=" \n "), {"text": "", "faults": ("empty",)}),
    "content in parts": (
        Answer(text=[{"type": "text", "text": "one "}, {"type": "image_url"}, "two", 3]),
        {"text": "one two"},
    ),
    "content of a wrong type": (Answer(text=42), {"text": "", "faults": ("empty",)}),
    "content filter": (
        Answer(text=None, finish="content_filter"),
        {"finish": "content_filter", "faults": ("filtered",)},
    ),
    "unknown finish": (Answer(finish="because"), {"finish": "unknown", "text": "ok"}),
    "cut text": (Answer(text="It goes on and", finish="length"), {"text": "It goes on and", "faults": ("cut",)}),
    "closed thinking": (
        Answer(text="<think>first\nthis</think>\nThe answer."),
        {"text": "The answer.", "reasoning": "first\nthis"},
    ),
    "thinking opened by the prompt": (
        Answer(text="first this\n</think>\n\nThe answer."),
        {"text": "The answer.", "reasoning": "first this"},
    ),
    "thinking that was cut": (
        Answer(text="<think>on and on", finish="length"),
        {"text": "", "reasoning": "on and on", "faults": ("cut", "empty")},
    ),
    "reasoning in a field": (
        Answer(text="The answer.", reasoning="first this"),
        {"text": "The answer.", "reasoning": "first this"},
    ),
    "reasoning in the newer field": (
        Answer(text="The answer.", message={"reasoning": "first this"}),
        {"text": "The answer.", "reasoning": "first this"},
    ),
    "one call": (
        Answer(text=None, calls=(Call("run_code", {"code": "1"}),)),
        {"tool_calls": (ToolCall("call_1", "run_code", {"code": "1"}),), "finish": "tool_calls", "faults": ()},
    ),
    "two calls": (
        Answer(calls=(Call("run_code", {"code": "1"}, "a"), Call("run_code", {"code": "2"}, "b"))),
        {"tool_calls": (ToolCall("a", "run_code", {"code": "1"}), ToolCall("b", "run_code", {"code": "2"}))},
    ),
    "calls with the same id": (
        Answer(calls=(Call("run_code", {"code": "1"}, "a"), Call("run_code", {"code": "2"}, "a"))),
        {"tool_calls": (ToolCall("a", "run_code", {"code": "1"}), ToolCall("call_1_1", "run_code", {"code": "2"}))},
    ),
    "a call without an id": (
        Answer(calls=(Call("run_code", {}, None),)),
        {"tool_calls": (ToolCall("call_1_0", "run_code", {}),)},
    ),
    "a call with a strange id": (
        Answer(calls=(Call("run_code", {}, "x" * 90), Call("run_code", {}, "a b"))),
        {"tool_calls": (ToolCall("call_1_0", "run_code", {}), ToolCall("call_1_1", "run_code", {}))},
    ),
    "a call with a strange name": (
        Answer(calls=(Call("functions.run code", {}),)),
        {"tool_calls": (ToolCall("call_1", "functions_run_code", {}),)},
    ),
    "a call without a name": (Answer(text=None, calls=(Call("", {}),)), {"faults": ("bad_tool_call",)}),
    "a call without arguments": (
        Answer(calls=(Call("run_code", ""), Call("run_code", None, "b"))),
        {"tool_calls": (ToolCall("call_1", "run_code", {}), ToolCall("b", "run_code", {}))},
    ),
    "a cut call after a whole one": (
        Answer(calls=(Call("run_code", {"code": "1"}, "a"), Call("run_code", '{"code": "pri', "b")), finish="length"),
        {
            "tool_calls": (ToolCall("a", "run_code", {"code": "1"}),),
            "faults": ("cut", "cut_tool_call"),
            "cut_call": ToolCall("", "run_code", {"code": "pri"}),
        },
    ),
    "a call cut before its arguments": (
        Answer(text=None, calls=(Call("run_code", ""),), finish="length"),
        {"tool_calls": (), "faults": ("cut", "cut_tool_call"), "cut_call": ToolCall("", "run_code", {})},
    ),
    "text cut after a whole call": (
        Answer(calls=(Call("run_code", {"code": "1"}),), finish="length"),
        {"tool_calls": (ToolCall("call_1", "run_code", {"code": "1"}),), "faults": ("cut",)},
    ),
    "a bad call beside a good one": (
        Answer(calls=(Call("run_code", "[1]", "a"), Call("run_code", {"code": "2"}, "b"))),
        {"tool_calls": (ToolCall("b", "run_code", {"code": "2"}),), "faults": ("bad_tool_call",)},
    ),
    "characters that can't be stored": (
        Answer(text="a\ud800b\x00c\x1b[31md\u2028e\U0001f600"),
        {"text": "a\ufffdb\ufffdc\ufffd[31md\u2028e\U0001f600"},
    ),
    "such characters in arguments": (
        Answer(calls=(Call("run_code", '{"co\\ud800de": ["\\u0000"]}'),)),
        {"tool_calls": (ToolCall("call_1", "run_code", {"co\ufffdde": ["\ufffd"]}),)},
    ),
}


def check_resendable(reply: Reply) -> None:
    """A server takes the message back: UTF-8, whole calls with ids of their own, and something in it."""
    message = reply.message
    sent = [message.content, message.tool_calls, message.additional_kwargs]
    json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
    assert message.invalid_tool_calls == []
    assert message.additional_kwargs.keys() <= {"attached"}
    ids = [call["id"] for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert message.content or message.tool_calls
    assert message.content == (reply.text or ("" if reply.tool_calls else NO_TEXT))


@BOTH
@pytest.mark.parametrize("case", ANSWERS)
async def test_every_answer_becomes_the_same_reply_streamed_or_not(ask: Ask, case: str, stream: bool) -> None:
    answer, expected = ANSWERS[case]
    with OpenAIServer(answer) as server:
        reply = await ask(server, stream=stream)
    assert {name: getattr(reply, name) for name in expected} == expected
    assert reply.attempts == 1
    assert server.requests[0].body["stream"] is stream
    check_resendable(reply)


@BOTH
@pytest.mark.parametrize(
    "arguments",
    [
        '"text"',
        "[]",
        "3",
        "true",
        "NaN",
        '{"x": NaN}',
        '{"x": 1e999}',
        '{"x": ' + "9" * 30 + "}",
        '{"x": ' + "9" * 6000 + "}",
        '{"x": ',
        "{'x': 1}",
        "[" * 5_000,
        '{"x": ' + "[" * 100 + "]" * 100 + "}",
        ["no", "object"],
    ],
    ids=lambda value: str(value)[:20],
)
async def test_arguments_that_are_no_json_object_make_a_bad_tool_call(ask: Ask, arguments: Any, stream: bool) -> None:
    with OpenAIServer(Answer(text="Look:", calls=(Call("run_code", arguments),))) as server:
        reply = await ask(server, stream=stream)
    assert reply.faults == ("bad_tool_call",)
    assert reply.tool_calls == ()
    assert reply.text == "Look:"
    check_resendable(reply)


@BOTH
@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": None, "completion_tokens": None},
        {"prompt_tokens": "many", "completion_tokens": [1]},
        {"prompt_tokens": 1e300, "completion_tokens": 1e12},
        {"prompt_tokens": True, "completion_tokens": {}},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 4, "completion_tokens": 0, "prompt_tokens_details": 3, "completion_tokens_details": []},
    ],
    ids=str,
)
async def test_usage_that_is_missing_or_absurd_is_estimated(ask: Ask, usage: Any, stream: bool) -> None:
    with OpenAIServer(Answer(text="The lead writes a plan of five points.", usage=usage)) as server:
        reply = await ask(server, [HumanMessage("What does the lead write?")], stream=stream)
    assert reply.usage.estimated
    assert 4 <= reply.usage.input_tokens <= 25
    assert 7 <= reply.usage.output_tokens <= 12


async def test_usage_repeated_in_every_event_is_counted_once(ask: Ask) -> None:
    events = [
        {"choices": [{"delta": {"content": "one "}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
        {"choices": [{"delta": {"content": "two"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
    ]
    body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events) + ": ping\n\ndata: [DONE]\n\n"
    with OpenAIServer(Answer(body=body, headers={"content-type": "text/event-stream"})) as server:
        reply = await ask(server, stream=True)
    assert reply.text == "one two"
    assert reply.usage == Usage(9, 3)


async def test_streamed_calls_without_index_are_told_apart(ask: Ask) -> None:
    calls = [Call("run_code", {"code": str(n)}, f"id{n}").on_the_wire() for n in range(2)]
    events = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    with OpenAIServer(Answer(body=body, headers={"content-type": "text/event-stream"})) as server:
        reply = await ask(server, stream=True)
    assert [call.arguments for call in reply.tool_calls] == [{"code": "0"}, {"code": "1"}]


@pytest.mark.parametrize("repeated", [{}, {"id"}, {"id", "name"}], ids=["neither", "id", "id and name"])
@pytest.mark.parametrize("counted", [True, False], ids=["counted", "all at 0"])
async def test_streamed_calls_are_told_apart_however_their_pieces_are_marked(
    ask: Ask, counted: bool, repeated: set[str]
) -> None:
    events = []
    for n in range(2):
        first = {"id": f"id{n}", "index": n if counted else 0, "function": {"name": "run_code", "arguments": '{"code"'}}
        rest: dict[str, Any] = {"index": first["index"], "function": {"arguments": f': "{n}"}}'}}
        if "id" in repeated:
            rest["id"] = first["id"]
        if "name" in repeated:
            rest["function"]["name"] = "run_code"
        events += [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in (first, rest)]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    with OpenAIServer(Answer(body=body, headers={"content-type": "text/event-stream"})) as server:
        reply = await ask(server, stream=True)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("run_code", {"code": "0"}),
        ("run_code", {"code": "1"}),
    ]
    assert reply.faults == ()


async def test_an_emoji_that_a_stream_cuts_in_two_is_put_together(ask: Ask) -> None:
    halves = [{"choices": [{"delta": {"content": half}}]} for half in ("\ud83d", "\ude00")]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in halves) + "data: [DONE]\n\n"
    with OpenAIServer(Answer(body=body, headers={"content-type": "text/event-stream"})) as server:
        reply = await ask(server, stream=True)
    assert reply.text == "\U0001f600"


async def test_a_server_that_knows_no_streaming_is_understood(ask: Ask) -> None:
    whole = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    with OpenAIServer(Answer(body=whole)) as server:
        reply = await ask(server, stream=True)
    assert reply.text == "Hello"


async def test_a_call_in_the_protocol_of_2023_is_understood(ask: Ask) -> None:
    message = {"function_call": {"name": "run_code", "arguments": '{"code": "1"}'}}
    with OpenAIServer(Answer(text=None, message=message)) as server:
        reply = await ask(server)
    assert reply.tool_calls == (ToolCall("call_1_0", "run_code", {"code": "1"}),)


@BOTH
async def test_a_reply_with_a_cut_call_can_be_sent_back(ask: Ask, stream: bool) -> None:
    """A real server answers 500 to its own message with a cut call, so none may be in the second request."""
    cut = Answer(calls=(Call("run_code", {"code": "1"}, "a"), Call("run_code", '{"code": "pri', "b")), finish="length")
    with OpenAIServer([cut, Answer(text="Thanks")]) as server:
        first = await ask(server, tools=[run_code], stream=stream)
        conversation = [HumanMessage("Hi"), first.message, ToolMessage("1", tool_call_id="a")]
        second = await ask(server, conversation, tools=[run_code], stream=stream)
    assert second.text == "Thanks"
    sent = server.requests[1].body["messages"]
    assert [call["id"] for call in sent[1]["tool_calls"]] == ["a"]
    assert sent[2]["tool_call_id"] == "a"


async def test_an_id_that_an_earlier_message_has_is_not_used_again(ask: Ask) -> None:
    with OpenAIServer(Answer(calls=(Call("run_code", {"code": "1"}, "call_0"),))) as server:
        first = await ask(server)
        conversation = [HumanMessage("Hi"), first.message, ToolMessage("1", tool_call_id="call_0")]
        second = await ask(server, conversation)
    assert first.tool_calls[0].id == "call_0"
    assert second.tool_calls[0].id == "call_3_0"


async def test_tools_limit_seed_and_temperature_reach_the_server(ask: Ask) -> None:
    with OpenAIServer() as server:
        await ask(server, tools=[run_code], seed=11, max_output_tokens=55, temperature=0.0)
        await ask(server, tools=[server.requests[0].body["tools"][0]])
    first, second = (request.body for request in server.requests)
    assert (first["seed"], first["max_tokens"], first["temperature"]) == (11, 55, 0.0)
    assert "max_completion_tokens" not in first
    assert first["tools"][0]["function"]["name"] == "run_code"
    assert second["tools"] == first["tools"]
    assert "temperature" not in second


async def test_a_server_that_ignores_the_tools_answers_with_text(ask: Ask) -> None:
    with OpenAIServer(Answer(text="I can't call run_code('1').")) as server:
        reply = await ask(server, tools=[run_code])
    assert reply.tool_calls == ()
    assert reply.text == "I can't call run_code('1')."


async def test_a_prompt_with_characters_that_are_no_utf8_is_sent(ask: Ask) -> None:
    with OpenAIServer() as server:
        await ask(server, [HumanMessage("out\ud800put"), AIMessage("fine")])
    assert server.requests[0].body["messages"][0]["content"] == "out\ufffdput"
