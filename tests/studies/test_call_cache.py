from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.api import arun
from labmates.models.scripted import BASELINES
from labmates.records import schema
from labmates.records.events import ChargeEvent, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.shared_calls import StoredCalls
from labmates.records.store import Store
from labmates.studies.judging import judging_usage
from labmates.studies.replay import replay
from labmates.studies.settings import RunSettings
from tests.judges.conftest import answer
from tests.support.openai_server import Answer, Json, OpenAIServer, serve_model
from tests.support.story import story

KEY = "sk-very-secret-0123456789abcdef"


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """Serve a team that only talks, and a judge called gpt."""
    team = serve_model(BASELINES.get("silent")(), latency=0)

    async def behave(request: Json, number: int) -> Answer:
        if request["model"] == "gpt":
            return Answer(text=answer())
        answered = team(request, number)
        return answered if isinstance(answered, Answer) else await answered

    with OpenAIServer(behave) as server:
        yield server


async def ran(store: Store, server: OpenAIServer, *, cache: bool = True, **given: Any) -> RunRecord:
    settings = RunSettings(
        sandbox="unsafe-local",
        models={"base_url": server.base_url, "max_retries": 0},
        cache=cache,
        judges=given.pop("judges", ()),
    )
    wanted = {"task": "anomaly", "difficulty": "easy", "model": "openai:some-model", **given}
    [run] = await arun("science", store=store.url, settings=settings, **wanted)
    return run


def spent_by(store: Store, run: RunRecord) -> int:
    query = sa.select(schema.runs.c.spent).where(schema.runs.c.id == run.id)
    return int(store.read(lambda connection: connection.execute(query).scalar_one()))


def files_with(text: str, folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.is_file() and text.encode() in path.read_bytes()]


def kept(store: Store) -> list[bytes]:
    query = sa.select(schema.calls.c.reply)
    return list(store.read(lambda connection: connection.execute(query).scalars().all()))


async def test_the_same_run_again_asks_nobody_is_charged_the_same_and_costs_nothing(
    store: Store, server: OpenAIServer
) -> None:
    first = await ran(store, server)
    asked = len(server.requests)
    assert asked >= first.usage.llm_calls > 20
    assert len(kept(store)) == first.usage.llm_calls
    again = await ran(store, server)
    assert sum(request.method == "POST" for request in server.requests[asked:]) == 0
    assert story(store, again.id) == story(store, first.id)
    assert again.usage == replace(first.usage, bill="0")
    assert (again.budget, again.metrics) == (first.budget, first.metrics)
    for run, cached in ((first, False), (again, True)):
        marks = {e.cached for e in store.events(run.id) if isinstance(e, LLMCallEvent | ChargeEvent)}
        assert marks == {cached}
    charged = sum(event.amount for event in store.events(first.id) if isinstance(event, ChargeEvent))
    assert (spent_by(store, first), spent_by(store, again)) == (charged, 0)
    found = await replay(store, again)
    assert found.is_same, found.differences


async def test_a_changed_condition_asks_only_for_what_is_new(store: Store, server: OpenAIServer) -> None:
    await ran(store, server)
    before = len(kept(store))
    run = await ran(store, server, model_for={"writing": "openai:another-model"})
    calls = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    assert {call.cached for call in calls} == {True, False}
    assert all(call.cached == (call.team != "writing") for call in calls)
    assert len(kept(store)) == before + sum(not call.cached for call in calls)
    charges = [event for event in store.events(run.id) if isinstance(event, ChargeEvent)]
    assert spent_by(store, run) == sum(charge.amount for charge in charges if not charge.cached) > 0


async def test_without_the_setting_nothing_is_kept_or_taken(store: Store, server: OpenAIServer) -> None:
    run = await ran(store, server, cache=False)
    assert kept(store) == []
    await ran(store, server)
    again = await ran(store, server, cache=False)
    assert not any(e.cached for e in store.events(again.id) if isinstance(e, LLMCallEvent))
    assert spent_by(store, again) == spent_by(store, run) > 0


async def test_judges_take_replies_from_it_too(store: Store, server: OpenAIServer) -> None:
    first = await ran(store, server, judges=("openai:gpt",))
    again = await ran(store, server, judges=("openai:gpt",))
    for run, cached in ((first, False), (again, True)):
        judged = [event for event in store.events(run.id) if event.type == "judge_call"]
        assert judged
        assert {event.cached for event in judged} == {cached}
        assert all((used.cost == 0) == cached for used in judging_usage(judged))
    scores = [[(s.judge, s.metric, s.value) for s in store.scores(run.id)] for run in (first, again)]
    assert scores[0] == scores[1]


async def test_no_key_stands_in_it(store: Store, server: OpenAIServer, tmp_path: Path) -> None:
    await ran(store, server)
    replies = [zlib.decompress(reply) for reply in kept(store)]
    assert replies
    assert not any(KEY.encode() in reply for reply in replies)
    store.close()
    assert files_with(KEY, tmp_path) == []


async def test_a_reply_that_is_there_already_stays(store: Store) -> None:
    cache = StoredCalls(store)
    assert await cache.get("k") is None
    await cache.put("k", {"text": "\N{SNOWMAN}"})
    await cache.put("k", {"text": "later"})
    assert await cache.get("k") == {"text": "\N{SNOWMAN}"}
