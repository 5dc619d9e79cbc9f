"""Rows of messages: each message of a call once and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labmates.api import arun, load
from labmates.records.bodies import Bodies
from labmates.records.events import LLMCallEvent
from labmates.records.store import Store
from tests.support.openai_server import Answer, Json, OpenAIServer

LAB: dict[str, Any] = {
    "task": "anomaly",
    "difficulty": "easy",
    "model": "scripted:hasty",
    "team_size": 2,
    "max_turns": 2,
}
GAME: dict[str, Any] = {
    "game": "public-goods",
    "model": "scripted:fair-share",
    "group_size": 2,
    "groups": 1,
    "rounds": 1,
}


@pytest.fixture
async def played(store: Store) -> Store:
    await arun("science", store=store.url, settings={"sandbox": "unsafe-local"}, **LAB)
    await arun("game", store=store.url, **GAME)
    return store


async def test_messages_are_those_of_the_calls_each_once(played: Store) -> None:
    frame = load("messages", store=played.url)
    for run in played.runs():
        bodies = Bodies(played.bodies(run.id))
        calls = [event for event in played.events(run.id) if isinstance(event, LLMCallEvent) and event.by == "agent"]
        rows = frame[frame["run"] == run.id]
        assert len(rows[rows["finish"].notna()]) == len(calls)
        for agent in {call.agent for call in calls}:
            mine = [call for call in calls if call.agent == agent]
            said = {number for call in mine for number in [*call.messages, call.reply]}
            assert sorted(rows[rows["agent"] == agent]["content"]) == sorted(bodies[n]["content"] for n in said)
        last = calls[-1]
        row = rows[(rows["step"] == last.step) & rows["finish"].notna()].iloc[0]
        assert (row["place"], row["input_tokens"]) == (len(last.messages), last.input_tokens)
        sent = [call for text in rows["tool_calls"].dropna() for call in json.loads(text)]
        tools = [call["name"] for c in calls for call in bodies[c.reply].get("tool_calls", [])]
        assert sorted(call["name"] for call in sent) == sorted(tools)


async def test_a_reply_with_what_its_provider_attached_is_told_once(store: Store) -> None:
    def answer(_: Json, number: int) -> Answer:
        return Answer(text="Yes." if number < 2 else '{"contribution": 5}', reasoning="Others give as well.")

    with OpenAIServer(answer) as server:
        settings = {"models": {"base_url": server.base_url}}
        values = {**GAME, "group_size": 2, "model": "openai:m", "repair_turns": 3}
        [run] = await arun("game", store=store.url, settings=settings, **values)
    agent = next(event.agent for event in run.events if isinstance(event, LLMCallEvent))
    said = [message for message in run.messages(agent) if message.role == "assistant"]
    rows = load("messages", store=store.url)
    rows = rows[(rows["agent"] == agent) & (rows["role"] == "assistant")]
    calls = [event for event in run.events if isinstance(event, LLMCallEvent) and event.agent == agent]
    assert len(calls) >= 2
    assert len(said) == len(rows) == len(calls)
