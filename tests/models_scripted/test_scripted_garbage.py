"""Garbage is varied, repeatable, and always a message that the rest of the path can take."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from labmates.agents.tools import ARGUMENTS, tool_schema
from labmates.budgets.tokens import text_of
from labmates.models.normalise import normalise
from labmates.models.scripted.base import Heard, make_reply
from tests.support.garbage import KINDS, Garbage, spoilt

PROMPT = [SystemMessage("You are a member."), HumanMessage("# Step: work\nYour task: try")]
TOOLS = [tool_schema(name) for name in ARGUMENTS]


def ask(seed: int, max_tokens: int | None = 600) -> AIMessage:
    message = Garbage().invoke(PROMPT, tools=TOOLS, seed=seed, max_tokens=max_tokens)
    assert isinstance(message, AIMessage)
    return message


def shape(message: AIMessage) -> str:
    return repr((message.content, message.tool_calls, message.invalid_tool_calls, message.response_metadata))


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from([1, 30, 600, 4096]))
def test_every_seed_gives_a_message_within_its_limit_that_can_be_made_safe(seed: int, limit: int) -> None:
    message = ask(seed, limit)
    assert message.usage_metadata is not None
    assert 1 <= message.usage_metadata["output_tokens"] <= limit
    safe = normalise(message, sent=PROMPT, tools=TOOLS)
    json.dumps([safe.text, [call.arguments for call in safe.tool_calls]]).encode()
    safe.text.encode()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_the_same_seed_gives_the_same_reply(seed: int) -> None:
    assert shape(ask(seed)) == shape(ask(seed))


def test_other_seeds_and_longer_conversations_give_other_replies() -> None:
    assert len({shape(ask(seed)) for seed in range(60)}) > 30
    longer = [*PROMPT, AIMessage("?"), HumanMessage("Again.")]
    other = [Garbage().invoke(longer, tools=TOOLS, seed=seed, max_tokens=600).content for seed in range(20)]
    assert other != [ask(seed).content for seed in range(20)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_built_into_a_message(kind: str) -> None:
    for seed in range(25):
        heard = Heard(tuple(PROMPT), tuple(TOOLS), seed, 2_000)
        draft = KINDS[kind](random.Random(seed), heard)
        message = spoilt(make_reply(draft, heard, "scripted:garbage"), draft)
        normalise(message, sent=PROMPT, tools=TOOLS)


def test_all_that_can_be_wrong_does_occur() -> None:
    messages = [ask(seed, 2_000) for seed in range(250)]
    texts = [text_of(message.content) for message in messages]
    names = [call["name"] for message in messages for call in message.tool_calls]
    ids = [[call["id"] for call in message.tool_calls] for message in messages]
    assert any(message.invalid_tool_calls for message in messages)
    assert any(message.response_metadata["finish_reason"] == "length" for message in messages)
    assert any(isinstance(message.content, list) for message in messages)
    assert any(name not in ARGUMENTS for name in names)
    assert any(len(set(some)) < len(some) for some in ids)
    assert any(text and not text.strip() for text in texts)
    assert any("\ud83d" in text or "\x00" in text for text in texts)
    assert any(text.startswith("<think>") and "</think>" not in text for text in texts)
    assert any("<html>" in text for text in texts)
    assert any(not text and not message.tool_calls for text, message in zip(texts, messages, strict=True))
    faults = {fault for message in messages for fault in normalise(message, sent=PROMPT, tools=TOOLS).faults}
    assert faults == {"empty", "cut", "cut_tool_call", "bad_tool_call", "filtered"}


def test_now_and_then_a_call_is_right() -> None:
    fine = 0
    for seed in range(200):
        message = ask(seed, 2_000)
        for call in message.tool_calls:
            try:
                ARGUMENTS[call["name"]].model_validate(call["args"])
                fine += 1
            except (KeyError, ValueError):
                continue
    assert 2 < fine < 120
