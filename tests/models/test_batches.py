"""Calls through batch APIs, against servers that delay, reorder, lose, refuse and expire them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from labmates.budgets.budget import CallMeter
from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.budgets.prices import Price
from labmates.budgets.purse import Purse
from labmates.models.batch_protocols import AnthropicBatches, BatchProtocol, OpenAIBatches
from labmates.models.batches import Noted, Waiting, split_into_batches
from labmates.models.catalog import Catalog
from labmates.models.errors import EndpointError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from tests.models.conftest import QUICK
from tests.support.batch_server import AnthropicBatchServer, BatchServer, Fate
from tests.support.openai_server import Answer, Call, Json, Recorded, _send

pytest.importorskip("langchain_anthropic")
SERVERS = [BatchServer, AnthropicBatchServer]
PRICE = "price.input=1&price.output=10"
TEXTS = ("one", "two", "three")


def echo(request: Json, number: int) -> Answer:
    del number
    return Answer(text=f"You said {request['messages'][-1]['content']}")


@dataclass
class Book:
    """A book in memory, which outlives a hub as a store does."""

    noted: dict[str, Noted] = field(default_factory=dict)

    async def find(self, keys: Sequence[str]) -> dict[str, Noted]:
        return {key: self.noted[key] for key in keys if key in self.noted}

    async def plan(self, token: str, keys: Sequence[str]) -> None:
        self.noted |= {key: Noted(token, None, len(keys), 1.0) for key in keys}

    async def name(self, token: str, batch: str) -> None:
        self.noted |= {k: one._replace(batch=batch) for k, one in self.noted.items() if one.token == token}

    async def forget(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.noted.pop(key, None)


def watched_meter() -> tuple[CallMeter, list[str]]:
    """A meter, and the reasons of the attempts that may be billed without a reply."""
    reasons: list[str] = []
    purse = Purse(Ledger(UNLIMITED), "team", {})
    return CallMeter(purse, Price(), "call", 10, 90, lost=lambda attempt: reasons.append(attempt.reason)), reasons


@dataclass
class Lab:
    """A hub that asks one server through batches."""

    server: BatchServer
    book: Book = field(default_factory=Book)
    told: list[str] = field(default_factory=list)
    more: str = ""
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def _tell(self, text: str) -> None:
        self.told.append(text)
        self.waiting.set()

    def open(self, **changes: Any) -> tuple[ModelHub, str]:
        settings = {"batch": True, "batch_window": 0.2, "batch_poll": 0.01, "max_retries": 2, "call_timeout": 20}
        catalog = Catalog(ModelOptions(**{**settings, **changes}), named={})
        provider = "anthropic" if isinstance(self.server, AnthropicBatchServer) else "openai"
        name = catalog.name_of(f"{provider}:m?base_url={self.server.base_url}&{PRICE}{self.more}")
        hub = ModelHub(catalog.options(), backoff=QUICK, book=self.book, notify=self._tell)
        return hub, name

    async def ask(self, texts: Sequence[str] = TEXTS, **changes: Any) -> list[Reply | BaseException]:
        hub, name = self.open(**changes)
        seeds = count(1)
        async with hub:
            calls = [hub.call(name, [HumanMessage(text)], seed=next(seeds), max_output_tokens=90) for text in texts]
            return await asyncio.gather(*calls, return_exceptions=True)


def texts_of(replies: Sequence[Reply | BaseException]) -> list[str]:
    return [reply.text if isinstance(reply, Reply) else f"{type(reply).__name__}: {reply}" for reply in replies]


SAID = [f"You said {text}" for text in TEXTS]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_batch_brings_what_single_calls_bring_for_half_the_price(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(looks=3, reverse=True, twice=True, foreign=True)]) as server:
        lab = Lab(server)
        batched = await lab.ask()
        direct = await lab.ask(batch=False)
    assert texts_of(batched) == texts_of(direct) == SAID
    [batch] = server.bodies
    single = [{name: value for name, value in request.body.items() if name != "stream"} for request in server.requests]
    assert sorted(map(str, batch)) == sorted(map(str, single))
    for one, other in zip(batched, direct, strict=True):
        assert isinstance(one, Reply)
        assert isinstance(other, Reply)
        assert one.bill is not None
        assert one.bill * 2 == other.bill
        assert replace(one, bill=other.bill, seconds=other.seconds) == other
    assert any("waiting for batch batch_0" in text and "of 3" in text for text in lab.told)
    assert lab.book.noted == {}


@pytest.mark.parametrize("kind", SERVERS)
async def test_tool_calls_come_through_a_batch(kind: type[BatchServer]) -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
    with kind(Answer(text="Hm.", calls=(Call("look", {"at": 1}, "toolu_1"),))) as server:
        hub, name = Lab(server).open()
        async with hub:
            reply = await hub.call(name, [HumanMessage("Look.")], tools=[tool], seed=1, max_output_tokens=90)
    assert (reply.text, reply.tool_calls[0].arguments) == ("Hm.", {"at": 1})


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("outcome", [500, "expired", "missing", "malformed"])
async def test_what_a_batch_leaves_open_goes_into_the_next_one(kind: type[BatchServer], outcome: Any) -> None:
    with kind(echo, [Fate(outcomes={0: outcome, 2: outcome}, status="completed")]) as server:
        replies = await Lab(server).ask()
    assert texts_of(replies) == SAID
    assert [len(batch) for batch in server.bodies] == [3, 2]
    assert [reply.attempts for reply in replies if isinstance(reply, Reply)] == [2, 1, 2]


@pytest.mark.parametrize(("outcome", "charged"), [("missing", 1), ("malformed", 1), ("expired", 0), (500, 0)])
async def test_only_a_reply_that_may_have_been_written_is_charged(outcome: Any, charged: int) -> None:
    meter, losses = watched_meter()
    with BatchServer(echo, [Fate(outcomes={0: outcome})]) as server:
        hub, name = Lab(server).open()
        async with hub:
            await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90, meter=meter)
    assert len(losses) == charged


async def test_an_expired_batch_of_openai_gives_what_it_has() -> None:
    with BatchServer(echo, [Fate(status="expired", outcomes={1: "missing"})]) as server:
        assert texts_of(await Lab(server).ask()) == SAID
    assert [len(batch) for batch in server.bodies] == [3, 1]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_cancelled_batch_is_told_and_not_repeated(kind: type[BatchServer]) -> None:
    outcome: Any = "missing" if kind is BatchServer else "cancelled"
    with kind(echo, [Fate(status="cancelled", outcomes={1: outcome})]) as server:
        lab = Lab(server)
        first, second, third = await lab.ask()
        assert isinstance(second, EndpointError)
        assert "the batch was cancelled at the server; resume to submit this request again" in str(second)
        assert texts_of([first, third]) == [SAID[0], SAID[2]]
        assert len(server.batches) == 1
        assert texts_of(await lab.ask(["two"])) == ["You said two"]


async def test_a_batch_that_is_refused_for_one_request_is_submitted_without_it() -> None:
    errors = [{"code": "invalid_request", "message": "no such thing", "line": 2}]
    with BatchServer(echo, [Fate(status="failed", errors=errors)]) as server:
        first, second, third = await Lab(server).ask()
    assert texts_of([first, third]) == [SAID[0], SAID[2]]
    assert "the server refused the batch: no such thing" in str(second)
    assert [len(batch) for batch in server.bodies] == [3, 2]


async def test_a_batch_that_is_refused_as_a_whole_is_told() -> None:
    errors = [{"code": "model_not_found", "message": "the model is not for batches"}]
    with BatchServer(echo, [Fate(status="failed", errors=errors)]) as server:
        assert all("the model is not for batches" in str(error) for error in await Lab(server).ask())
        assert len(server.batches) == 1


async def test_a_full_queue_of_the_provider_is_waited_for() -> None:
    errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    with BatchServer(echo, [Fate(status="failed", errors=errors)]) as server:
        assert texts_of(await Lab(server).ask()) == SAID
    assert [len(batch) for batch in server.bodies] == [3, 3]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_without_a_batch_api_is_named(kind: type[BatchServer]) -> None:
    with kind(echo, has_api=False) as server:
        [error] = await Lab(server).ask(["one"])
    assert isinstance(error, EndpointError)
    assert "has no batch API (HTTP 404): leave --batch out" in str(error)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_parameter_that_a_batch_refuses_is_left_out_of_the_next(kind: type[BatchServer]) -> None:
    def picky(request: Json, number: int) -> Answer:
        if "seed" in request:
            return Answer(status=400, body={"error": {"message": "Unsupported parameter: seed", "param": "seed"}})
        return echo(request, number)

    with kind(picky) as server:
        assert texts_of(await Lab(server).ask()) == SAID
    assert "seed" not in server.bodies[-1][0]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_is_away_for_a_while_is_looked_at_again(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(gone=2)]) as server:
        assert texts_of(await Lab(server).ask()) == SAID
        assert len(server.batches) == 1


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_stays_away_leaves_its_batch_to_the_next_process(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(gone=9)]) as server:
        lab = Lab(server)
        assert all("no reply after" in str(error) for error in await lab.ask())
        assert len(lab.book.noted) == 3
        assert texts_of(await lab.ask()) == SAID
        assert len(server.batches) == 1


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_resumed_process_finds_its_batch_and_pays_once(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(looks=40, reverse=True)]) as server:
        lab = Lab(server)
        cut = asyncio.create_task(lab.ask())
        await lab.waiting.wait()
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert texts_of(await lab.ask()) == SAID
    assert len(server.batches) == 1
    assert any("found batch batch_0" in text for text in lab.told)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_batch_whose_id_was_not_heard_is_found(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(unheard=True)]) as server:
        assert texts_of(await Lab(server).ask()) == SAID
        assert len(server.batches) == 1


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_batch_that_is_gone_may_be_billed_and_is_submitted_anew(kind: type[BatchServer]) -> None:
    with kind(echo, [Fate(gone=9)]) as server:
        lab = Lab(server)
        await lab.ask()
        lab.book.noted = {key: one._replace(batch="batch_9") for key, one in lab.book.noted.items()}
        meter, losses = watched_meter()
        hub, name = lab.open()
        async with hub:
            reply = await hub.call(name, [HumanMessage("one")], seed=1, max_output_tokens=90, meter=meter)
    assert (reply.text, len(losses)) == (SAID[0], 1)
    assert [len(batch) for batch in server.bodies] == [3, 1]


@dataclass
class DyingBook(Book):
    """A book of a process that is killed before it submits what it has planned."""

    async def plan(self, token: str, keys: Sequence[str]) -> None:
        await super().plan(token, keys)
        raise RuntimeError("killed")


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_batch_of_the_same_size_is_not_taken_for_one_that_never_left(kind: type[BatchServer]) -> None:
    with kind(echo) as server:
        await Lab(server).ask(["a", "b", "c"])
        dying = DyingBook()
        assert all("killed" in text for text in texts_of(await Lab(server, dying).ask()))
        assert texts_of(await Lab(server, Book(dying.noted)).ask()) == SAID
    assert len(server.batches) == 2


async def test_equal_requests_of_one_caller_are_each_answered() -> None:
    def counting(request: Json, number: int) -> Answer:
        del request
        return Answer(text=f"reply {number}")

    with BatchServer(counting) as server:
        hub, name = Lab(server).open()
        async with hub:
            calls = [hub.call(name, [HumanMessage("Hi")], seed=5, max_output_tokens=90) for _ in range(3)]
            replies = await asyncio.gather(*calls)
    assert sorted(reply.text for reply in replies) == ["reply 0", "reply 1", "reply 2"]


async def test_each_model_has_a_batch_of_its_own() -> None:
    with BatchServer(echo) as server:
        catalog = Catalog(ModelOptions(batch=True, batch_window=0.05, batch_poll=0.01), named={})
        names = [catalog.name_of(f"openai:{name}?base_url={server.base_url}") for name in ("a", "b")]
        async with ModelHub(catalog.options()) as hub:
            calls = [hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90) for name in names]
            assert len(await asyncio.gather(*calls)) == 2
    assert sorted(batch[0]["model"] for batch in server.bodies) == ["a", "b"]


async def test_more_calls_than_are_in_flight_elsewhere_go_into_one_batch() -> None:
    with BatchServer(echo) as server:
        replies = await Lab(server).ask([f"text {n}" for n in range(100)], max_concurrent_calls=4)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert [len(batch) for batch in server.bodies] == [100]


async def test_the_key_of_the_server_stays_out_of_the_book_and_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "key-of-the-lab-0123")
    with BatchServer(echo) as server:
        lab = Lab(server, more="&api_key_env=LAB_KEY")
        hub, name = lab.open()
        async with hub:
            await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90)
            assert lab.book.noted
            assert "key-of-the-lab" not in repr((lab.book, lab.told))


def call_of(key: str, size: int) -> Waiting:
    return Waiting(key, {}, size, 1, asyncio.get_running_loop().create_future())


async def test_calls_are_parted_where_a_batch_is_full() -> None:
    class Small(OpenAIBatches):
        most_calls, most_bytes = 3, 2_000

    sizes = [100, 100, 100, 100, 1_500, 100, 5_000, 100]
    parts = split_into_batches([call_of(str(number), size) for number, size in enumerate(sizes)], Small())
    assert [[int(call.key) for call in part] for part in parts] == [[0, 1, 2], [3, 4], [5], [6], [7]]


@pytest.mark.parametrize(
    ("protocol", "line"),
    [
        (OpenAIBatches(), {}),
        (OpenAIBatches(), {"custom_id": 7, "response": {"status_code": 200, "body": {}}}),
        (OpenAIBatches(), {"custom_id": "a", "response": {"status_code": "200"}}),
        (OpenAIBatches(), {"custom_id": "a", "response": {"status_code": 7}}),
        (OpenAIBatches(), {"custom_id": "a", "response": None, "error": None}),
        (AnthropicBatches(), {"custom_id": "a"}),
        (AnthropicBatches(), {"custom_id": "a", "result": {"type": "succeeded", "message": None}}),
        (AnthropicBatches(), {"custom_id": "a", "result": {"type": "unheard of"}}),
    ],
)
def test_a_line_that_says_nothing_is_no_result(protocol: BatchProtocol, line: Json) -> None:
    assert protocol.read(line) is None


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"{}", b'{"id": 3}', b'{"id": "' + b"x" * 300 + b'"}'])
async def test_nonsense_about_a_batch_ends_in_an_error_that_says_so(answer: bytes) -> None:
    class Odd(BatchServer):
        async def _respond(self, recorded: Recorded, writer: asyncio.StreamWriter) -> bool:
            return await _send(writer, Answer(body=answer))

    with Odd(echo) as server:
        [error] = await Lab(server).ask(["one"], max_retries=0)
    assert isinstance(error, EndpointError)
    assert "not a JSON object" in str(error) or "no usable id" in str(error)


def test_streaming_and_batches_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="stream and batch exclude each other"):
        ModelOptions(stream=True, batch=True)
