"""A study's runs as a data set: each message once and whole, and a folder that ``datasets`` opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from labmates.api import arun, load
from labmates.errors import UsageError
from labmates.records.bodies import Bodies
from labmates.records.events import LLMCallEvent
from labmates.records.store import Store
from labmates.studies.data_set import export_data_set

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


async def test_a_folder_opens_as_a_data_set(played: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    numbers = export_data_set(played, tmp_path / "runs")
    assert numbers["runs"] == 2
    for what, number in numbers.items():
        opened = load_dataset(str(tmp_path / "runs"), what, split="train", cache_dir=str(tmp_path / "cache"))
        assert opened.num_rows == number, what
        assert set(opened.column_names) == set(load(what, store=played.url).columns), what
    assert "payoffs" in numbers
    assert "`messages`" in (tmp_path / "runs" / "README.md").read_text(encoding="utf-8")


async def test_a_folder_with_content_and_an_empty_choice_are_refused(played: Store, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="no empty folder"):
        export_data_set(played, tmp_path / "full")
    with pytest.raises(UsageError, match="no started run"):
        export_data_set(played, tmp_path / "new", kind="dilemma")
    assert not (tmp_path / "new").exists()
