"""A gateway's run: every exchange can be read there, whatever its protocol and however it ended."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import time
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from labmates.budgets.tokens import Usage
from labmates.errors import UsageError
from labmates.models.reply import Reply, ToolCall
from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, LLMCallEvent, WarningEvent
from labmates.records.store import Store
from labmates.studies.replay import replay
from labmates_doors.gateway.exchanges import Exchange
from labmates_doors.gateway.recording import GatewayCondition, RunOfGateway
from labmates_doors.gateway.seats import lasting_keys
from labmates_doors.protocols import PROTOCOLS
from labmates_doors.protocols.base import Json
from labmates_doors.protocols.chat import CHAT
from tests.doors.gateway.conftest import KEY, openai_upstream, served
from tests.doors.test_answering import data_of, passed
from tests.support.openai_server import Answer, OpenAIServer, fault
from tests.support.site import served as viewed

USAGE = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
CONDITION = GatewayCondition(budget="1", seats={"alice": None}, upstreams=["openai:m"], max_output_tokens=4096)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("calls", [(), (ToolCall("c1", "look", {"where": "x"}), ToolCall("c2", "look", {}))])
async def test_what_a_model_said_is_read_from_replies_and_streams(protocol: Any, calls: tuple[ToolCall, ...]) -> None:
    reply = Reply("Let me\u2028see.", calls, (), AIMessage(""), "stop", Usage(1, 1))
    for said in (
        protocol.said([protocol.reply(reply, "m")]),
        protocol.said(data_of(await passed(protocol, [], reply))),
    ):
        assert said["content"] == "Let me\u2028see."
        named = [call["function"] for call in said.get("tool_calls", ())]
        assert [(each["name"], json.loads(each["arguments"])) for each in named] == [
            (call.name, call.arguments) for call in calls
        ]


def test_the_words_of_a_responses_stream_that_broke_off_are_read() -> None:
    responses = PROTOCOLS[1]
    parts: list[Json] = [{"type": "response.output_text.delta", "delta": text} for text in ("It ", "is")]
    assert responses.said(parts)["content"] == "It is"


def test_the_page_of_a_run_names_seats_and_shows_dollars(tmp_path: Path) -> None:
    options = CONDITION.model_dump() | {"budget": "1.50", "seats": {"alice": None, "bob": "0.25"}}
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, GatewayCondition.model_validate(options))
        with (
            OpenAIServer(Answer(text="Hello", usage=USAGE)) as server,
            served(openai_upstream(server.base_url), record=record) as gateway,
        ):
            assert gateway.ask("/v1/chat/completions", {"model": "m", "messages": [], "max_tokens": 9})[0] == 200
        with viewed(store) as site:
            overview, story = (site.get(f"/runs/{record.run.id}{tab}").text for tab in ("", "/story"))
    assert "<dt>budget</dt><dd>$1.5</dd>" in overview
    assert "&#34;bob&#34;: &#34;0.25&#34;" in overview
    assert '<a class="word" href="#word-Seat">Seat</a></th>' in overview
    assert "<label>Seat <select" in story
    assert "Team" not in overview + story


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("reported", [{"cost": 0.0125}, {"cost": 0}, {}])
def test_the_bill_is_what_the_provider_reports(tmp_path: Path, reported: Json, streamed: bool) -> None:
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION)
        with (
            OpenAIServer(Answer(usage=USAGE | reported)) as server,
            served(openai_upstream(server.base_url), record=record) as gateway,
        ):
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
            assert gateway.ask_raw(CHAT.path, asked | {"stream": streamed}, key=None)[0] == 200
        (charge,) = [event for event in store.events(record.run.id) if isinstance(event, ChargeEvent)]
    expected = {0.0125: (12_500, "server"), 0: (0, "server"), None: (130, "table")}[reported.get("cost")]
    assert (charge.bill, charge.bill_from) == expected


def test_a_store_that_can_not_be_written_ends_all_calls_with_503_and_says_what_it_lacks(tmp_path: Path) -> None:
    told = list[str]()
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION, tell=told.append)
        with (
            OpenAIServer([Answer(usage=USAGE)]) as server,
            served(openai_upstream(server.base_url), record=record) as gateway,
        ):
            with closing(sqlite3.connect(tmp_path / "runs.db")) as other, other:
                other.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no space'); END")
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
            assert gateway.ask(CHAT.path, asked)[0] == 200
            until = time.monotonic() + 30
            while not record.fault and time.monotonic() < until:
                time.sleep(0.01)
            refused = [gateway.ask(protocol.path, asked) for protocol in PROTOCOLS]
            assert gateway.ask("/budget", method="GET")[1]["spent"] != "0"
    assert record.lacks.startswith("Not in the record, so not counted by --resume: 1 exchanges of $0.0")
    assert told == [f"Calls are refused: {record.fault}"]
    reason = f"exchanges can no longer be recorded: {record.fault.partition(': ')[2]}"
    assert refused == [(503, protocol.error(503, reason)) for protocol in PROTOCOLS]
    assert "no space" in reason
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("total", "limit", "status"),
    [(1_000_000, 300, "interrupted"), (100, None, "exhausted"), (6_000, None, "exhausted")],
)
def test_a_gateway_is_exhausted_when_its_pool_is(tmp_path: Path, total: int, limit: int | None, status: str) -> None:
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION)
        seats = {"alice": limit, "bob": None}
        with (
            OpenAIServer(Answer(usage={**USAGE, "completion_tokens": 300})) as server,
            served(openai_upstream(server.base_url), record=record, total=total, seats=seats) as gateway,
        ):
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
            answers = [gateway.ask(CHAT.path, asked) for _ in range(2 if total == 6_000 else 1)]
            *_, (refused, body) = answers
        assert store.run(record.run.id).status == status
        if status == "exhausted":
            with pytest.raises(UsageError, match="can't be replayed: no experiment 'gateway' is installed here"):
                asyncio.run(replay(store, store.run(record.run.id)))
    assert refused == 402
    whose = "the limit of the seat alice" if limit else "the shared budget"
    assert body["error"]["message"].startswith(f"{whose} can't pay this call: $0.00")


def test_keys_of_a_run_last_and_those_of_another_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keys = [lasting_keys(run, ["alice", "bob"]) for run in ("r1", "r1", "r2")]
    assert keys[0] == keys[1]
    assert len({key for each in keys for key in each.values()}) == 4
    assert (tmp_path / "labmates" / "gateway-secret").stat().st_mode & 0o777 == 0o600


def test_exchanges_are_a_run_of_the_store(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION)
        answers = [Answer(text="money", usage=USAGE), Answer(text="a long text", cut="within"), fault(500)]
        with OpenAIServer(answers) as server, served(openai_upstream(server.base_url), record=record) as gateway:
            asked = {"model": "m", "max_tokens": 300, "messages": [{"role": "user", "content": "Hi"}]}
            assert gateway.ask(CHAT.path, {**asked, "temperature": 0.5})[0] == 200
            gateway.ask_raw(CHAT.path, {**asked, "stream": True})
            assert gateway.ask(CHAT.path, asked)[0] == 500
            assert gateway.ask(CHAT.path, {**asked, "n": 0})[0] == 400
        run = store.run(record.run.id)
        events, bodies = store.events(run.id), Bodies(store.bodies(run.id))
    calls = [event for event in events if isinstance(event, LLMCallEvent)]
    assert [bodies[call.messages[0]] for call in calls] == [{"role": "user", "content": "Hi"}] * 2
    assert bodies[calls[0].reply] == {"role": "assistant", "content": "money"}
    assert "a lon" in bodies[calls[1].reply]["content"]
    assert calls[0].settings is not None
    assert bodies[calls[0].settings] == {"model": "m", "max_tokens": 300, "temperature": 0.5}
    charges = [event for event in events if isinstance(event, ChargeEvent)]
    assert [(charge.team, charge.uncertain) for charge in charges] == [("alice", False), ("alice", True)]
    warnings = [event.text for event in events if isinstance(event, WarningEvent)]
    assert warnings[0].startswith("/v1/chat/completions openai:m: 500 not billed")
    assert "400 'n' must be 1" in warnings[1]
    assert (run.kind, run.status, run.usage.llm_calls) == ("gateway", "interrupted", 2)
    assert run.budget is not None
    assert run.budget["spent"] == f"{sum(charge.amount for charge in charges) / 1e6:f}".rstrip("0")
    assert KEY.encode() not in (tmp_path / "runs.db").read_bytes()


def asked_and_answered(**charged: Any) -> Exchange:
    reply = CHAT.reply(Reply("money", (), (), AIMessage(""), "stop", Usage(3, 4)), "m")
    return Exchange(0.0, 0.1, "alice", CHAT, "openai:m", 200, {"model": "m"}, reply, usage=Usage(3, 4), **charged)


async def test_a_record_has_what_a_pool_could_not_pay_and_a_resumed_one_what_it_paid(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION)
        async with record.opened(dict, bool):
            record.add(asked_and_answered(cost=5, uncovered=7, bill=12))
        [charge] = [event for event in store.events(record.run.id) if isinstance(event, ChargeEvent)]
        assert (charge.amount, charge.uncovered, charge.bill) == (5, 7, 12)
        assert RunOfGateway(store, CONDITION, record.run.id).spent == {"alice": 5}


async def test_an_exchange_that_ends_while_others_are_written_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = asyncio.Event()
    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        record = RunOfGateway(store, CONDITION, tell=lambda _: told.set())
        async with record.opened(dict, bool):
            flush, flushes = record._recorder.flush, iter(range(9))

            async def flush_once() -> None:
                if next(flushes):
                    raise OSError("no space")
                await flush()
                record.add(asked_and_answered(cost=3))

            monkeypatch.setattr(record._recorder, "flush", flush_once)
            record.add(asked_and_answered(cost=2))
            await told.wait()
        assert "1 exchanges of $0.0000" in record.lacks


MOST_KEPT = 1_000_000
"""Bytes of the 4 MB of texts that a test records."""


async def test_what_is_written_is_not_kept_in_memory_and_its_sums_are(tmp_path: Path) -> None:
    def exchange(number: int) -> Exchange:
        asked: Any = {"role": "user", "content": f"question {number} " + "x" * 2_000}
        reply = CHAT.reply(Reply(f"answer {number} " + "y" * 2_000, (), (), AIMessage(""), "stop", Usage(1, 1)), "m")
        request = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, asked]}
        return Exchange(0.0, 0.1, "alice", CHAT, "openai:m", 200, request, reply, cost=2, usage=Usage(3, 4))

    async def record_many(record: RunOfGateway, numbers: range) -> int:
        """The bytes that stay in memory."""
        async with record.opened(dict, bool):
            for number in (0, 1):
                record.add(exchange(number))
            await asyncio.sleep(0.2)
            before, _ = tracemalloc.get_traced_memory()
            for number in numbers:
                record.add(exchange(number))
                if number % 50 == 0:
                    await asyncio.sleep(0.02)
            for _ in range(300):  # what is in the store is forgotten some time after
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
                if len(store.events(record.run.id)) >= 2 * len(numbers) and grown < MOST_KEPT:
                    break
                await asyncio.sleep(0.1)
            return grown

    with Store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        tracemalloc.start()
        record = RunOfGateway(store, CONDITION)
        grown = await record_many(record, range(2, 1002))
        tracemalloc.stop()
        resumed = RunOfGateway(store, CONDITION, record.run.id)
        await record_many(resumed, range(1000, 1010))
        run, bodies = store.run(record.run.id), store.bodies(record.run.id)
        events = store.events(run.id)
    assert grown < MOST_KEPT
    assert resumed.spent["alice"] == 2 * 1002
    assert [event.step for event in events] == [str(2 * (place // 2)) for place in range(len(events))]
    assert len(events) == 2 * (1002 + 12)
    assert run.usage.llm_calls == 1014
    assert (run.usage.input_tokens, run.usage.output_tokens, run.usage.bill) == (3 * 1014, 4 * 1014, "0.002028")
    assert run.budget == {"total": "1", "spent": "0.002028", "remaining": "0.997972"}
    assert len(bodies) == 2 * 1010 + 2  # questions and answers, the system prompt and the settings, once each
