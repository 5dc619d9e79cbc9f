"""A run whose promises are known, judged by a model at a real server."""

from __future__ import annotations

import json
import re
from pathlib import Path

from labmates.api import arun
from labmates.models.options import ModelOptions
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import MessageEvent
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from tests.support.openai_server import Answer, Json, OpenAIServer
from tests.support.puppet import agent_of, dutiful, puppet, step_of

PROMISES = {"peer_1": "I will count the columns.", "peer_2": "I will plot the drift."}


def promising(heard: Heard) -> Draft:
    """Promise something in the first talk; the first peer keeps its promise, the second does not."""
    step, agent = step_of(heard), agent_of(heard)
    has_talked = any(PROMISES["peer_1"] in str(message.content) for message in heard.messages)
    if step.startswith("deliberation"):
        return Draft("Nothing is doubtful." if has_talked and agent == "peer_1" else PROMISES[agent])
    if step == "work" and agent == "peer_1" and has_talked and heard.messages[-1].type == "human":
        return Draft("", (call("run_code", code="print('columns:', len(df.columns))"),))
    return dutiful(heard)


def judging(request: Json, before: int) -> Answer:
    """Find the first message of each promise, and code about columns as the deed that keeps the one of peer_1."""
    record = request["messages"][-1]["content"]
    said = {agent: re.findall(rf"\[(\d+)\] {agent} says to \w+: {text}", record) for agent, text in PROMISES.items()}
    kept = re.findall(r"\[(\d+)\] peer_1 runs code: print\('columns", record)
    claims = [
        {"said_in": int(said["peer_1"][0]), "quote": PROMISES["peer_1"], "kept_by": int(kept[-1])},
        {"said_in": int(said["peer_2"][0]), "quote": PROMISES["peer_2"], "kept_by": None},
    ]
    return Answer(text=json.dumps({"promises": claims}))


async def test_one_of_two_promises_is_kept_and_the_run_says_so(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    with OpenAIServer(judging) as server, puppet(promising) as model:
        settings = RunSettings(
            sandbox="unsafe-local",
            models=ModelOptions(base_url=server.base_url),
            judges=("promises:openai:judge",),
        )
        [run] = await arun(
            "science", store=store.url, settings=settings, task="anomaly", difficulty="easy", model=model,
            organisation="decentralised", team_size=2, deliberation_rounds=1,
        )  # fmt: skip
    assert run.status == "completed", run.error
    messages = [event for event in store.events(run.id) if isinstance(event, MessageEvent)]
    assert len(messages) > 2
    assert (run.metrics["promises"], run.metrics["promises_kept"]) == (2, 0.5)
    store.close()
