"""Whatever a chat model returns, normalising it never fails, and its message can be stored and sent back."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata

from labmates.budgets.tokens import MOST_TOKENS, estimate_messages, read_count, read_usage
from labmates.models.attached import restored
from labmates.models.completions import (
    WIRE,
    StreamedReply,
    attached_by_server,
    message_of,
    read_arguments,
    read_completion,
)
from labmates.models.failures import BrokenReplyError
from labmates.models.marks import split_thinking
from labmates.models.normalise import NO_TEXT, normalise, safe_message
from labmates.models.reply import Reply
from labmates.util.safe_text import safe_text

FEW = settings(max_examples=40, deadline=None)
SENT = [HumanMessage("Hi")]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
names = st.none() | st.text(st.characters(), max_size=80)
calls = st.lists(
    st.builds(ToolCall, name=names.map(lambda name: name or ""), args=st.dictionaries(st.text(), anything), id=names),
    max_size=3,
)
broken = st.lists(
    st.builds(InvalidToolCall, name=names, args=st.none() | st.text(st.characters()), id=names, error=st.none()),
    max_size=2,
)
blocks = st.fixed_dictionaries({"type": st.sampled_from(["text", "thinking"]), "text": anything, "thinking": anything})
texts = st.lists(
    st.text(st.characters())
    | st.sampled_from(["<think>", "</think>", "<|channel|>final<|message|>", "<tool_call>", "\ud800", "\x00"])
).map("".join)
content = texts | st.lists(texts | blocks, max_size=4)


def check(reply: Reply) -> None:
    stored = [reply.text, reply.reasoning, [[call.id, call.name, call.arguments] for call in reply.tool_calls]]
    json.dumps([stored, reply.message.content, reply.message.tool_calls], ensure_ascii=False, allow_nan=False).encode()
    ids = [call.id for call in reply.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert [call["id"] for call in reply.message.tool_calls] == ids
    assert all(0 < len(call.name) <= 64 and call.name.isascii() for call in reply.tool_calls)
    assert reply.message.invalid_tool_calls == []
    assert reply.message.content or reply.tool_calls
    assert reply.usage.input_tokens > 0
    assert 0 <= reply.usage.reasoning_tokens <= reply.usage.output_tokens
    assert ("empty" in reply.faults) <= (not reply.text and not reply.tool_calls)


@FEW
@given(content, calls, broken, anything, anything)
def test_any_message_becomes_a_safe_reply(content: Any, calls: Any, broken: Any, finish: Any, usage: Any) -> None:
    message = AIMessage(content, tool_calls=calls, invalid_tool_calls=broken)
    message.response_metadata = {"finish_reason": finish}
    message.additional_kwargs = {"reasoning_content": finish}
    reported: Any = {"input_tokens": usage, "output_tokens": usage, "output_token_details": usage}
    message.usage_metadata = reported
    reply = normalise(message, sent=SENT)
    check(reply)
    # What was made safe stays as it is when it comes back.
    again = normalise(reply.message, sent=SENT)
    assert again.tool_calls == reply.tool_calls
    assert len(reply.tool_calls) + reply.faults.count("bad_tool_call") <= len(calls) + len(broken)


@FEW
@given(anything)
@example({"choices": [{"message": {"tool_calls": [{"function": {"arguments": float("nan")}}]}}]})
@example({"choices": [{"message": {"content": [{"text": 1}], "function_call": {"name": [], "arguments": {"x": 1}}}}]})
@example({"choices": [None], "usage": {"prompt_tokens": "x"}})
def test_any_completion_can_be_read(body: Any) -> None:
    try:
        completion = read_completion(json.dumps(body).encode())
    except BrokenReplyError:
        return
    message = message_of(completion)
    assert isinstance(message.content, str)
    check(normalise(message, sent=SENT))


@FEW
@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "id"]), anything) | anything, max_size=5))
@example([{"choices": [{"delta": {"tool_calls": [{"index": "a", "function": {"name": 1, "arguments": {"x": []}}}]}}]}])
@example([{"choices": [{"delta": {"content": ["a", {"text": "b"}], "reasoning": "c"}}]}])
def test_any_stream_can_be_read(events: Any) -> None:
    reply = StreamedReply()
    try:
        for event in events:
            reply.add(f"data: {json.dumps(event)}".encode())
        reply.add(b"data: [DONE]")
        message = message_of(reply.whole())
    except BrokenReplyError:
        return
    assert isinstance(message.content, str)


@FEW
@given(st.text(st.characters() | st.sampled_from('{}[]":,0123456789')))
@example('{"a": 1}{"b": 2}')
@example('{"a": "\\ud800"}')
@example("-" * 5000)
def test_arguments_are_a_json_object_or_nothing(text: str) -> None:
    arguments = read_arguments(text)
    if arguments is not None:
        again = json.loads(json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode())
        assert again == arguments


@FEW
@given(st.text(), st.text(), st.booleans())
def test_thinking_loses_no_word(before: str, after: str, cut: bool) -> None:
    """Without tags, and around a closed block, the text comes back whole."""
    for text in (before, after):
        if not {"<", "[", "◁"} & {*text}:
            assert split_thinking(text, cut=cut) == (text.strip(), "")
    if not {"<", "[", "◁"} & {*before, *after}:
        said, thought = split_thinking(f"{before}<think>a b</think>{after}", cut=cut)
        assert said == (before + after).strip()
        assert thought == "a b"


@pytest.mark.parametrize(
    ("text", "cut", "said", "thought"),
    [
        ("<think>a</think>b<think>c</think>d", False, "bd", "a\nc"),
        ("<THINKING>a</THINKING>b", False, "b", "a"),
        ("[THINK]a[/THINK]b", False, "b", "a"),
        ("<thought>a</thought>b", False, "b", "a"),
        ("<seed:think>a</seed:think>b", False, "b", "a"),
        ("<|START_THINKING|>a<|END_THINKING|>b", False, "b", "a"),
        ("<|begin_of_thought|>a<|end_of_thought|>b", False, "b", "a"),
        ("◁think▷a◁/think▷b", False, "b", "a"),
        ("a <thoughtful> reply and a </thought", False, "a <thoughtful> reply and a </thought", ""),
        ("a</think>b", False, "b", "a"),
        ("<think>never closed", False, "", "never closed"),
        ("  <think>never closed", True, "", "never closed"),
        ("said <think>cut in thought", True, "said", "cut in thought"),
        ("the tag <think> opens it", False, "the tag <think> opens it", ""),
        ("<think>a</think>the tag <think> opens it", False, "the tag <think> opens it", "a"),
        ("<think></think>b", False, "b", ""),
        ("Close it with `</think>`.", False, "Close it with `</think>`.", ""),
        ('"<think>" opens it, "</think>" closes it', False, '"<think>" opens it, "</think>" closes it', ""),
        ('<think>it said "yes"</think>b', False, "b", 'it said "yes"'),
        ("<think>" * 50_000, False, "", "<think>" * 49_999),
    ],
    ids=lambda value: str(value)[:30],
)
def test_thinking_is_split_off(text: str, cut: bool, said: str, thought: str) -> None:
    assert split_thinking(text, cut=cut) == (said, thought)


def test_a_message_of_another_provider_is_read() -> None:
    message = AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
        ],
        tool_calls=[ToolCall(name="f", args={"x": 1}, id="t1")],
        response_metadata={"stop_reason": "tool_use"},
        usage_metadata={"input_tokens": 9, "output_tokens": 8, "total_tokens": 17},
    )
    reply = normalise(message, sent=SENT)
    assert (reply.text, reply.reasoning, reply.finish) == ("Let me see.", "hm", "tool_calls")
    assert reply.message.content == "Let me see."
    assert reply.tool_calls[0].arguments == {"x": 1}
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.estimated) == (9, 8, False)


def test_an_empty_reply_is_no_empty_message() -> None:
    reply = normalise(AIMessage(""), sent=SENT)
    assert (reply.text, reply.message.content, reply.faults) == ("", NO_TEXT, ("empty",))


def test_reasoning_counts_in_an_estimate() -> None:
    short = normalise(AIMessage("yes"), sent=SENT).usage
    long = normalise(AIMessage("<think>" + "one step and another " * 50 + "</think>yes"), sent=SENT).usage
    assert long.output_tokens == short.output_tokens + long.reasoning_tokens
    assert long.reasoning_tokens > 100
    assert long.estimated


def test_reasoning_that_a_server_shows_but_does_not_count_is_estimated() -> None:
    counts = UsageMetadata(input_tokens=9, output_tokens=300, total_tokens=309)
    message = AIMessage("<think>" + "one step and another " * 50 + "</think>yes", usage_metadata=counts)
    usage = normalise(message, sent=SENT).usage
    assert 100 < usage.reasoning_tokens <= usage.output_tokens == 300
    assert not usage.estimated


@FEW
@given(anything)
def test_a_count_is_a_plausible_integer_or_none(value: Any) -> None:
    count = read_count(value)
    assert count is None or (type(count) is int and 0 <= count <= MOST_TOKENS)


@FEW
@given(st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "total_tokens"]), anything), anything)
def test_any_usage_gives_plausible_tokens(reported: Any, details: Any) -> None:
    found = {**reported, "output_token_details": details}
    usage, _ = read_usage(found, prompt=lambda: 10, output=lambda: 5, reasoning=2)
    assert usage.input_tokens > 0
    assert 0 <= usage.reasoning_tokens <= usage.output_tokens <= 2 * MOST_TOKENS


def test_parts_of_a_prompt_are_never_more_than_the_prompt() -> None:
    parts = {"cache_read": 900, "cache_creation": 50}
    found = {"input_tokens": 100, "output_tokens": 5, "input_token_details": parts}
    usage, _ = read_usage(found, prompt=lambda: 10, output=lambda: 5, reasoning=0)
    assert (usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens) == (100, 100, 0)


@pytest.mark.parametrize(("counted", "is_told"), [(2_048, True), (4_000, False), (40, True), (0, False)])
def test_a_server_that_counts_a_part_of_the_prompt_may_have_cut_it(counted: int, is_told: bool) -> None:
    sent = [HumanMessage("Row 7 has 12 counts.\n" * 600)]
    counts = UsageMetadata(input_tokens=counted, output_tokens=3, total_tokens=counted + 3)
    reply = normalise(AIMessage("yes", usage_metadata=counts), sent=sent)
    assert [note for note in reply.notes if "may have cut it" in note] == list(reply.notes)
    assert len(reply.notes) == is_told
    assert reply.usage.input_tokens == (counted or estimate_messages(sent))


def thinking_message(calls: list[ToolCall], blocks: list[Any], **more: Any) -> AIMessage:
    return AIMessage(blocks, tool_calls=calls, response_metadata={"model_provider": "anthropic"}, **more)


THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "s"}


def test_ids_of_calls_are_the_same_in_what_is_attached() -> None:
    calls = [ToolCall(name="f", args={"x": n}, id="t") for n in range(2)]
    blocks: list[Any] = [THOUGHT, *({"type": "tool_use", "id": "t", "name": "f", "input": {"x": n}} for n in range(2))]
    reply = normalise(thinking_message(calls, blocks, additional_kwargs={"signed": {"t": "s"}}), sent=SENT, source="m")
    ids = [call.id for call in reply.tool_calls]
    assert len(set(ids)) == 2
    [sent] = restored([reply.message])
    assert [block.get("id") for block in sent.content if isinstance(block, dict)] == [None, *ids]
    assert sent.additional_kwargs == {"signed": {ids[0]: "s"}}


def test_broken_calls_and_shortened_text_are_not_restored() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    blocks: list[Any] = [THOUGHT, {"type": "text", "text": "Let me see."}, call]
    whole = normalise(thinking_message([ToolCall(name="f", args={}, id="t")], blocks), sent=SENT, source="m").message
    assert restored([whole])[0].content == blocks
    shorter = whole.model_copy(update={"content": "Let me", "tool_calls": []})
    assert restored([shorter])[0].content == [THOUGHT, {"type": "text", "text": "Let me"}]
    broken = normalise(thinking_message([], blocks), sent=SENT, source="m").message
    assert restored([broken])[0].content == blocks[:2]
    assert restored([whole], dropped={"thinking"})[0].content == blocks[1:]


@pytest.mark.parametrize(
    ("attached", "problem"),
    [({"x": float("nan")}, "a non-finite number"), ({"x": "y" * 400_000}, "it has 400,")],
)
def test_what_cannot_be_stored_is_not_attached_and_noted(attached: dict[str, Any], problem: str) -> None:
    message = AIMessage("Yes.", additional_kwargs={WIRE: {"message": attached, "calls": []}})
    reply = normalise(message, sent=SENT, source="m", limit=100)
    assert reply.message.additional_kwargs == {}
    assert problem in reply.notes[-1]


def test_marked_reasoning_in_the_text_goes_back_as_it_came() -> None:
    raw = "<think>hm</think>Yes."
    reply = normalise(AIMessage(raw), sent=SENT, source="m")
    assert (reply.text, reply.message.content) == ("Yes.", "Yes.")
    assert restored([reply.message])[0].content == raw
    assert restored([reply.message.model_copy(update={"content": "No."})])[0].content == "No."


FIELDS = ("type", "index", "id", "text", "thinking", "reasoning", "reasoning_details", "content", "tool_calls", "extra")


def some_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(8)
    if kind < 2 or depth > 4:
        return chance.choice(["a", "text", "thinking", "\ud800", None, 1, 2, float("nan")])
    inner = [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(FIELDS): value for value in inner} if kind < 5 else inner


def in_stream(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """What a server attached to a reply that it streamed in these pieces."""
    reply = StreamedReply()
    for delta in deltas:
        reply.add(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode())
    reply.add(b'data: {"choices": [{"finish_reason": "stop"}]}')
    return attached_by_server(reply.whole())


@pytest.mark.parametrize("seed", range(300))
def test_whatever_a_server_attaches_can_be_stored_and_sent_back(seed: int) -> None:
    chance = random.Random(seed)
    deltas = [{chance.choice(FIELDS): some_value(chance) for _ in range(3)} for _ in range(chance.randrange(5))]
    for attached in (in_stream(deltas), attached_by_server({"choices": [{"message": delta} for delta in deltas]})):
        message = AIMessage("Yes.", additional_kwargs={WIRE: attached})
        reply = normalise(message, sent=SENT, source="m")
        json.dumps(reply.message.additional_kwargs, ensure_ascii=False, allow_nan=False).encode()
        [sent] = restored([reply.message])
        assert sent.content == "Yes."


def test_pieces_of_what_is_attached_are_put_together() -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "one ", "format": "f"},
        {"type": "reasoning.text", "index": 0, "text": "two", "format": "f"},
        {"type": "reasoning.text", "index": 0, "signature": "s", "format": "f"},
        {"type": "reasoning.encrypted", "index": 1, "data": "d", "id": "r"},
    ]
    found = in_stream([{"reasoning_details": [detail], "extra": n} for n, detail in enumerate(details)])
    assert found["message"] == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "one two", "format": "f", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 1, "data": "d", "id": "r"},
        ],
        "extra": 3,
    }


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (AIMessage(""), NO_TEXT),
        (AIMessage("", tool_calls=[{"id": "a", "name": "f", "args": {}}]), ""),
        (HumanMessage("\x00"), safe_text("\x00")),
    ],
)
def test_a_message_is_sent_without_what_servers_refuse(message: BaseMessage, sent: str) -> None:
    assert safe_message(message).content == sent
