"""What a server reports (its cost, cached tokens, reasoning) is the same in every format."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.budgets.money import parse_dollars
from labmates.records.store import Store
from labmates.studies.result import Run
from labmates_doors.exports.atif import write_trajectories
from labmates_doors.exports.inspect_log import write_inspect_log
from labmates_doors.exports.recorded import MICRO, Recorded
from labmates_doors.exports.spans import Spans
from tests.support.openai_server import Answer, OpenAIServer

USAGE = {
    "prompt_tokens": 90,
    "completion_tokens": 30,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 20},
    "cost": 0.000007,
}


@pytest.fixture
async def billed(store: Store) -> Run:
    """A game whose model reports what it costs."""
    answer = Answer('{"contribution": 5}', reasoning="Others give as well.", usage=USAGE)
    with OpenAIServer(answer) as server:
        [run] = await arun(
            "game",
            store=store.url,
            game="public-goods",
            model=f"openai:test-model?base_url={server.base_url}",
            group_size=2,
            groups=1,
            rounds=2,
        )
    return run


async def test_costs_and_reasoning_are_those_of_the_server(billed: Run, store: Store, tmp_path: Path) -> None:
    calls = billed.usage.llm_calls
    assert calls > 0
    assert billed.bill is not None
    assert parse_dollars(billed.bill) == 7 * calls

    write_inspect_log(store, str(tmp_path / "x.eval"), store.runs)
    with zipfile.ZipFile(tmp_path / "x.eval") as file:
        sample = json.loads(file.read(f"samples/{billed.id}_epoch_1.json"))
    [usage] = sample["model_usage"].values()
    assert round(usage["total_cost"] * MICRO) == parse_dollars(billed.bill)
    assert (usage["input_tokens"], usage["input_tokens_cache_read"]) == (50 * calls, 40 * calls)
    assert usage["reasoning_tokens"] == billed.usage.reasoning_tokens == 20 * calls

    write_trajectories(store, str(tmp_path / "atif"), store.runs)
    trajectory = json.loads((tmp_path / "atif" / f"{billed.id}.json").read_text())
    assert round(trajectory["final_metrics"]["total_cost_usd"] * MICRO) == parse_dollars(billed.bill)
    assert trajectory["final_metrics"]["total_cached_tokens"] == billed.usage.cached_tokens == 40 * calls
    steps = [step for seat in trajectory["subagent_trajectories"] for step in seat["steps"]]
    assert {step["reasoning_content"] for step in steps if step["source"] == "agent"} == {"Others give as well."}

    told: list[dict[str, Any]] = [dict(span.attributes or {}) for span in Spans(Recorded(store, billed))]
    chats = [each for each in told if each["gen_ai.operation.name"] == "chat"]
    assert sum(chat["labmates.cost_micro_dollars"] for chat in chats) == parse_dollars(billed.bill)
    assert sum(chat["gen_ai.usage.cache_read.input_tokens"] for chat in chats) == billed.usage.cached_tokens
    assert json.loads(chats[0]["gen_ai.output.messages"])[0]["parts"][0] == {
        "type": "reasoning",
        "content": "Others give as well.",
    }
