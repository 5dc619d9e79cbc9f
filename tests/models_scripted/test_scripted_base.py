"""What a server does to a reply (cutting, counting, parsing) is done to every scripted one as well."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.budgets.tokens import estimate_messages, estimate_tokens
from labmates.models.normalise import normalise
from labmates.models.scripted import BASELINES, describe
from labmates.models.scripted.base import Draft, DraftCall, Heard, ScriptedModel, call, cut_to_tokens, make_reply

PROMPT = (HumanMessage("Say something."),)
LONG = "The quick brown fox jumps over the lazy dog. " * 60


class Echo(ScriptedModel):
    """Says what it heard, to see what reaches a baseline."""

    baseline = "echo"
    description = "for tests"

    def compose(self, heard: Heard) -> Draft:
        return Draft(f"{heard.seed} {heard.max_tokens} {list(heard.tool_names())} {heard.messages[-1].content}")


def reply(draft: Draft, max_tokens: int | None = None, tools: tuple[dict[str, Any], ...] = ()) -> AIMessage:
    return make_reply(draft, Heard(PROMPT, tools, 0, max_tokens), "scripted:test")


def test_a_whole_text_is_left_as_it_is_and_counted() -> None:
    message = reply(Draft(LONG))
    assert message.content == LONG
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.usage_metadata == {
        "input_tokens": estimate_messages(PROMPT),
        "output_tokens": estimate_tokens(LONG),
        "total_tokens": estimate_messages(PROMPT) + estimate_tokens(LONG),
    }


def test_a_text_that_is_too_long_is_cut_at_the_limit() -> None:
    message = reply(Draft(LONG), 50)
    assert message.response_metadata["finish_reason"] == "length"
    assert LONG.startswith(str(message.content))
    assert message.usage_metadata is not None
    assert 45 <= message.usage_metadata["output_tokens"] <= 50


def test_a_call_cut_by_the_limit_becomes_invalid_and_those_before_stay_whole() -> None:
    draft = Draft("First.", (call("read_artifact", name="a"), call("run_code", code=LONG), call("list_artifacts")))
    message = reply(draft, 60)
    assert [one["name"] for one in message.tool_calls] == ["read_artifact"]
    assert [one["name"] for one in message.invalid_tool_calls] == ["run_code"]
    assert json.dumps({"code": LONG}).startswith(str(message.invalid_tool_calls[0]["args"]))
    assert message.response_metadata["finish_reason"] == "length"
    assert normalise(message, sent=PROMPT).faults == ("cut", "cut_tool_call")


def test_no_call_is_left_where_the_text_alone_fills_the_limit() -> None:
    message = reply(Draft(LONG, (call("list_artifacts"),)), 40)
    assert not message.tool_calls
    assert not message.invalid_tool_calls


def test_a_whole_call_ends_with_the_reason_tool_calls() -> None:
    message = reply(Draft(calls=(call("run_code", code="print('é')"),)), 100)
    assert message.response_metadata["finish_reason"] == "tool_calls"
    assert message.tool_calls[0]["args"] == {"code": "print('é')"}


@pytest.mark.parametrize("arguments", ['{"a": 1', "null", "[1]", "", "[" * 100_000])
def test_arguments_that_are_no_json_object_become_an_invalid_call(arguments: str) -> None:
    message = reply(Draft(calls=(DraftCall("run_code", arguments),)))
    assert not message.tool_calls
    assert message.invalid_tool_calls[0]["args"] == arguments


def test_even_an_empty_reply_costs_a_token() -> None:
    usage = reply(Draft("")).usage_metadata
    assert usage is not None
    assert usage["output_tokens"] == 1


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_cut_text_is_a_beginning_that_fits_and_one_more_character_would_not(text: str, tokens: int) -> None:
    cut = cut_to_tokens(text, tokens)
    assert text.startswith(cut)
    assert estimate_tokens(cut) <= tokens
    # Not every character adds a token, so the check is for a cut that is clearly too early.
    assert cut == text or estimate_tokens(text) > tokens


ARGUMENTS = st.one_of(st.text(max_size=80), st.dictionaries(st.text(max_size=5), st.integers()).map(json.dumps))
CALLS = st.lists(st.builds(DraftCall, st.text(max_size=12), ARGUMENTS), max_size=4)


@settings(max_examples=150)
@given(st.text(max_size=200), CALLS, st.integers(1, 80))
def test_no_reply_takes_more_than_its_limit_and_its_usage_is_what_is_in_it(
    text: str, calls: list[DraftCall], limit: int
) -> None:
    message = reply(Draft(text, tuple(calls)), limit)
    written = [(one["name"], one["args"]) for one in message.invalid_tool_calls]
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] <= limit
    if not message.tool_calls:
        told = estimate_tokens(str(message.content)) + sum(estimate_tokens(f"{name}{args}") for name, args in written)
        assert message.usage_metadata["output_tokens"] == max(1, told)
    whole = len(message.tool_calls) + len(written) == len(calls) and message.content == text
    assert (message.response_metadata["finish_reason"] == "length") >= (not whole)


def test_seed_limit_and_tools_reach_the_baseline_in_either_way_of_calling() -> None:
    class Look(BaseModel):
        """Look at something."""

        what: str

    model = Echo()
    bound = model.bind_tools([Look])
    sync = bound.invoke("hello", seed=7, max_tokens=90)
    assert sync.content == "7 90 ['Look'] hello"
    assert asyncio.run(bound.ainvoke("hello", seed=7, max_tokens=90)).content == sync.content
    assert asyncio.run(model.ainvoke("hello")).content == "0 None [] hello"


def test_tools_are_part_of_the_prompt_that_is_paid_for() -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}
    plain, with_tool = reply(Draft("a")).usage_metadata, reply(Draft("a"), tools=(tool,)).usage_metadata
    assert plain is not None
    assert with_tool is not None
    assert with_tool["input_tokens"] > plain["input_tokens"]


@pytest.mark.parametrize("name", ["diligent", "hasty", "silent", "garbage", "colleague"])
def test_every_baseline_is_registered_says_what_it_does_and_answers_anything(name: str) -> None:
    assert name in BASELINES
    assert 20 < len(describe(name)) < 120
    message = BASELINES.get(name)().invoke([HumanMessage("What is this?")], max_tokens=50)
    assert isinstance(message, AIMessage)
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] <= 50
    assert message.response_metadata["model_name"] == f"scripted:{name}"
