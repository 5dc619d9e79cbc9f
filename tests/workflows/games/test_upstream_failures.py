"""Equal failures of a server, in any dress, give equal decisions, counts of failed replies, and bills.

A game of 40 decisions is played with equal seeds; the server fails at first in 30 % of the calls.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.models.connection import Backoff
from labmates.records.events import DecisionEvent
from labmates.records.store import Store
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Json, OpenAIServer, fault, serve_model

SSE = {"content-type": "text/event-stream"}
BEGUN = 'data: {"choices": [{"delta": {"content": "I"}}]}\n\n'
LOST = '{"error": {"message": "upstream lost", "code": 502}}'
DRESSES: dict[str, Answer] = {
    "502": fault(502),
    "429": fault(429, {"error": {"message": "overloaded", "type": "rate_limit_error"}}, retry_after="0.001"),
    "finish error, null usage": Answer(text=None, finish="error", usage=None),
    "finish error after text": Answer(text="I think that", finish="error", usage=None),
    "finish abort": Answer(text="", finish="abort", usage={"prompt_tokens": 0, "completion_tokens": 0}),
    "no finish, no text": Answer(text=None, finish=None, usage=None),
    "error in the choice": Answer(body={"choices": [{**json.loads(LOST), "finish_reason": "error"}], "usage": None}),
    "error in the body": Answer(body=LOST),
    "empty choices": Answer(choices=False, usage=None),
    "null choices": Answer(body={"choices": None, "error": {"message": "no worker"}}),
    "cut body": Answer(text="A long answer", cut="within"),
    "cut stream": Answer(body=BEGUN, headers=SSE, content_length=False),
    "error event": Answer(body=f"data: {LOST}\n\ndata: [DONE]\n\n", headers=SSE),
    "error event after text": Answer(body=f"{BEGUN}data: {LOST}\n\n", headers=SSE),
    "finish error in a stream": Answer(
        body=BEGUN + 'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\n\ndata: [DONE]\n\n', headers=SSE
    ),
}
LOST_ON_THE_WAY = {"cut body", "cut stream"}
"""The provider may bill these: they are charged as uncertain beside the bill."""


class Failing:
    """A server of a player that fails in a dress at the first attempt of 30 % of the calls, the same ones each time."""

    def __init__(self, dress: Answer) -> None:
        self.failed = 0
        self._dress = dress
        self._asked: Counter[int] = Counter()
        self._play = serve_model(FormFiller(), latency=0)

    async def __call__(self, request: Json, number: int) -> Answer:
        call = zlib.crc32(json.dumps([request["seed"], request["messages"]]).encode())
        self._asked[call] += 1
        if self._asked[call] == 1 and call % 10 < 3:
            self.failed += 1
            return self._dress
        answer = self._play(request, number)
        return answer if isinstance(answer, Answer) else await answer


@dataclass(frozen=True)
class Played:
    """What came of a game: its decisions, failed replies, bill, and what is beside the bill."""

    decisions: list[Any]
    failed_decisions: int
    failed_replies: int
    bill: str | None
    calls: int
    failed: int
    uncertain: int
    lost: bool


async def play(store: str, dress: Answer, repair_turns: int) -> Played:
    failing = Failing(dress)
    with OpenAIServer(failing) as server:
        [run] = await labmates.arun(
            "game",
            store=store,
            game="public-goods",
            model=f"openai:m?base_url={server.base_url}&price.input=1&price.output=2",
            rounds=10,
            group_size=4,
            groups=1,
            repair_turns=repair_turns,
            max_output_tokens=128,
        )
    with Store(store) as database:
        events = [event for event in database.events(run.id) if isinstance(event, DecisionEvent)]
    decisions = [(event.step, event.decision, event.failed) for event in events]
    usage = run.usage
    failed = sum(event.failed for event in events)
    replies, lost = usage.failed_replies, usage.uncertain_attempts
    return Played(decisions, failed, replies, run.bill, usage.llm_calls, failing.failed, lost, usage.uncertain > 0)


PLAIN = ("502", "finish error, null usage", "error in the choice", "error in the body", "empty choices", "cut body")


@pytest.mark.parametrize(
    ("repair_turns", "dresses"),
    [
        pytest.param(0, tuple(DRESSES), marks=pytest.mark.slow("tests/models/test_hub_faults.py")),
        (3, (*PLAIN, "error event")),
    ],
)
async def test_a_failure_of_the_server_has_the_same_consequences_in_any_dress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repair_turns: int, dresses: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("labmates.models.hub.Backoff", lambda: Backoff(first=0.001, longest=0.002))
    store = f"sqlite:///{tmp_path}/runs.db"
    games = await asyncio.gather(*(play(store, DRESSES[name], repair_turns) for name in dresses))
    played = dict(zip(dresses, games, strict=True))
    usual = played["502"]
    assert (len(usual.decisions), usual.calls, usual.failed_decisions, usual.failed_replies) == (40, 40, 0, 0)
    assert usual.failed >= 8
    for name, game in played.items():
        assert game.uncertain == (game.failed if name in LOST_ON_THE_WAY else 0)
        assert game.lost == (game.uncertain > 0), name
        assert replace(game, uncertain=0, lost=False) == usual, name


async def test_a_filter_that_blocks_a_prompt_costs_its_player_a_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    blocked = fault(400, {"error": {"message": "no", "code": "content_filter"}})
    answer = serve_model(FormFiller(), latency=0)

    def behave(request: Json, number: int) -> Any:
        return blocked if number == 1 else answer(request, number)

    with OpenAIServer(behave) as server:
        [run] = await labmates.arun(
            "game",
            store=f"sqlite:///{tmp_path}/runs.db",
            game="public-goods",
            model=f"openai:m?base_url={server.base_url}&price.input=1&price.output=2",
            rounds=1,
            group_size=3,
            groups=1,
        )
    assert (run.status, run.usage.llm_calls, run.usage.failed_replies) == ("completed", 4, 1)
    assert run.usage.uncertain_attempts == 0
