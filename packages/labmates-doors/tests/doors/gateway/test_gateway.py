"""The gateway between real clients and real servers that speak the providers' protocols."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.prices import Price
from labmates.budgets.tokens import Usage
from labmates.models.entries import Access
from labmates.models.failures import BrokenReplyError
from labmates.models.reply import Reply, ToolCall
from labmates_doors.gateway import calls, connections, passing, state
from labmates_doors.gateway.seats import Seats
from labmates_doors.protocols import PROTOCOLS
from labmates_doors.protocols.base import Protocol, RefusedRequestError, parsed_request
from labmates_doors.protocols.chat import CHAT as CHAT_PROTOCOL
from tests.doors.gateway.conftest import KEY, PRICE, Served, anthropic_upstream, openai_upstream, served
from tests.doors.test_answering import data_of
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import Answer, Json, OpenAIServer, fault

CHAT = "/v1/chat/completions"
QUESTION = [{"role": "user", "content": "What is a pool?"}]
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 600},
    "completion_tokens_details": {"reasoning_tokens": 50},
}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "x" * 4000}], "max_tokens": 500}
COST = 400 * 1 + 60 + 200 * 10  # micro-dollars of USAGE at PRICE


class EventServer(OpenAIServer):
    """Answers every POST, whatever its path, with the body that its behaviour gives."""

    async def _respond(self, recorded: Any, writer: Any) -> bool:
        path = recorded.path
        self.paths = [*getattr(self, "paths", []), path]
        return await super()._respond(type(recorded)(recorded.method, CHAT, recorded.headers, recorded.body), writer)


def events(*parts: Json) -> Answer:
    text = "".join(f"event: {part.get('type', 'message')}\ndata: {json.dumps(part)}\n\n" for part in parts)
    return Answer(body=text, headers={"content-type": "text/event-stream"})


def test_a_seats_money_for_prompts_includes_what_its_calls_in_flight_hold() -> None:
    seats = Seats(100, {"a": None, "b": 80})
    seats.by_name["a"].share.take(60)
    price = Price(input="1")  # a micro-dollar a token
    assert [seats.most_input(seat, price) for seat in seats.by_name.values()] == [100, 40]
    assert seats.most_input(seats.by_name["a"], Price(input="0")) is None


def test_a_seat_that_spent_more_than_its_limit_has_nothing_left_and_takes_nothing_of_others() -> None:
    seats = Seats(100, {"a": 40, "b": None})
    over, other = seats.by_name["a"], seats.by_name["b"]
    seats.ledger.settle(over.reserve(30, "m")._ended(), 60)
    assert (seats.ledger.left(over.share), over.available, other.available) == (0, 0, 40)
    price = Price(input="1")
    assert (seats.most_input(over, price), seats.most_input(other, price)) == (0, 40)
    assert str(seats.refusal(over, 7)).startswith("the limit of the seat a can't pay this call: $0 are left")
    with pytest.raises(InsufficientFundsError):
        over.reserve(1, "m")
    assert "the shared budget" in str(seats.refusal(other, 50))


def test_a_chat_completion_is_passed_on_and_charged_at_its_true_usage() -> None:
    with OpenAIServer(Answer(text="money", usage=USAGE)) as server, served(openai_upstream(server.base_url)) as gateway:
        reply = gateway.openai().chat.completions.create(**ASKED, temperature=0.3)
        assert reply.choices[0].message.content == "money"
        [exchange] = gateway.settled()
        budget = gateway.ask("/budget", method="GET", key="")[1]
    [sent] = server.requests
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {**ASKED, "temperature": 0.3}
    assert (exchange.seat, exchange.cost, exchange.status) == ("alice", COST, 200)
    assert exchange.usage is not None
    assert exchange.usage.cached_tokens == 600
    assert exchange.request["messages"] == ASKED["messages"]
    assert budget["spent"] == "0.00246"
    assert budget["remaining"] == "0.99754"
    assert budget["seats"]["alice"]["spent"] == "0.00246"
    assert budget["held"] == budget["seats"]["bob"]["spent"] == "0"


@pytest.mark.parametrize("asks", [False, True])
def test_a_stream_arrives_as_asked_for_and_is_charged_at_its_end(asks: bool) -> None:
    with (
        OpenAIServer(Answer(text="one two three", usage=USAGE)) as server,
        served(openai_upstream(server.base_url)) as gateway,
    ):
        options: Any = {"stream_options": {"include_usage": True}} if asks else {}
        chunks = list(gateway.openai().chat.completions.create(**ASKED, stream=True, **options))
        [exchange] = gateway.settled()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two three"
    assert any(chunk.usage for chunk in chunks) == asks
    assert all(chunk.choices or asks for chunk in chunks)
    assert exchange.cost == COST
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_anthropic_messages_pay_for_what_a_cache_read_and_wrote() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7}
    usage |= {"cache_read_input_tokens": 1000, "cache_creation_input_tokens": 40}
    with (
        AnthropicServer(Answer(text="hi", usage=usage)) as server,
        served(anthropic_upstream(server.base_url)) as gateway,
    ):
        asking = gateway.anthropic("bob")
        long: Any = [{"role": "user", "content": "y" * 5000}]
        reply = asking.messages.create(model="claude", max_tokens=50, messages=long)
        assert reply.content[0].to_dict()["text"] == "hi"
        [exchange] = gateway.settled()
    assert server.requests[0].headers["x-api-key"] == KEY
    assert server.requests[0].headers["anthropic-version"]
    assert (exchange.seat, exchange.cost) == ("bob", 100 + 100 + 50 + 70)


def test_an_anthropic_stream_is_charged_by_its_first_and_last_event() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 30, "output_tokens": 1}}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    with (
        EventServer(events(start, text, end, {"type": "message_stop"})) as server,
        served(anthropic_upstream(server.base_url)) as gateway,
    ):
        asking = gateway.anthropic()
        question: Any = QUESTION
        stream = asking.messages.create(model="claude", max_tokens=50, messages=question, stream=True)
        assert [event.type for event in stream][-1] == "message_stop"
        [exchange] = gateway.settled()
    assert server.paths == ["/v1/messages"]
    assert exchange.cost == 30 + 90


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_charged_too(stream: bool) -> None:
    counts = {"input_tokens": 40, "output_tokens": 5, "total_tokens": 45, "input_tokens_details": {"cached_tokens": 10}}
    response = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": counts}
    answer = events({"type": "response.completed", "response": response}) if stream else Answer(body=response)
    with EventServer(answer) as server, served(openai_upstream(server.base_url)) as gateway:
        reply = gateway.openai().responses.create(model="m", input="hello", stream=stream)
        assert (list(reply)[-1].response if stream else reply).id == "r"
        [exchange] = gateway.settled()
    assert server.paths == ["/v1/responses"]
    assert server.requests[0].body["max_output_tokens"] == 4096
    assert exchange.cost == 30 + 1 + 50


def test_a_request_without_a_limit_gets_one_that_the_pool_can_pay() -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url), total=10_000) as gateway:
        gateway.openai().chat.completions.create(model="openai:m", messages=QUESTION)
    limit = server.requests[0].body["max_completion_tokens"]
    assert 256 <= limit < 1000
    assert server.requests[0].body["model"] == "m"


@pytest.mark.parametrize("limits", [(9, 500), (500, 9)])
def test_of_two_limits_the_lower_one_counts(limits: tuple[int, int]) -> None:
    given = dict(zip(("max_tokens", "max_completion_tokens"), limits, strict=True))
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        assert gateway.ask(CHAT, {**ASKED, **given})[0] == 200
    assert {server.requests[0].body[name] for name in ("max_tokens", "max_completion_tokens")} == {9}


def test_one_wrong_report_of_usage_costs_no_more_than_the_call_could() -> None:
    usage = {"prompt_tokens": 10**6, "completion_tokens": 10**6, "total_tokens": 2 * 10**6}
    with OpenAIServer(Answer(usage=usage)) as server, served(openai_upstream(server.base_url)) as gateway:
        gateway.ask(CHAT, ASKED)
        [exchange] = gateway.settled()
    assert exchange.usage is not None
    assert (exchange.usage.output_tokens <= 500, exchange.uncovered) == (True, 0)
    assert exchange.usage.input_tokens < 10_000
    assert "can't have been more" in exchange.note


def test_an_empty_pool_refuses_with_402_in_each_protocols_form() -> None:
    with OpenAIServer() as server:
        upstreams = openai_upstream(server.base_url), anthropic_upstream(server.base_url)
        with served(*upstreams, total=100) as gateway:
            with pytest.raises(openai.APIStatusError) as refused:
                gateway.openai(retries=3).chat.completions.create(model="m", messages=QUESTION)
            status, body = gateway.ask("/v1/messages", {"model": "claude", "max_tokens": 500, "messages": QUESTION})
            gateway.settled(2)
    assert refused.value.status_code == status == 402
    assert refused.value.code == "insufficient_quota"
    assert body["error"]["type"] == "billing_error"
    assert re.fullmatch(
        r"the shared budget can't pay this call: \$0\.0001 are left, and it needs \$0\.\d+", body["error"]["message"]
    )
    assert server.requests == []


def test_a_seat_spends_no_more_than_its_share() -> None:
    seats = {"alice": 3000, "bob": None}
    with (
        OpenAIServer(Answer(usage=USAGE)) as server,
        served(openai_upstream(server.base_url), seats=seats) as gateway,
    ):
        asked = {**ASKED, "messages": [{"role": "user", "content": ""}], "max_tokens": 250}
        statuses = [gateway.ask(CHAT, asked)[0] for _ in range(3)]
        assert gateway.ask(CHAT, asked, key=gateway.key("bob"))[0] == 200
    assert statuses == [402, 402, 402]
    assert gateway.seats.by_name["alice"].spent == 0


def test_a_call_waits_for_the_money_that_others_hold() -> None:
    slow = Answer(delay=0.4, usage={"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11})
    with OpenAIServer(slow) as server, served(openai_upstream(server.base_url), total=12_000) as gateway:
        asked = {"model": "m", "messages": QUESTION, "max_tokens": 700}

        async def ask_all() -> list[int]:
            async with httpx2.AsyncClient(timeout=60, headers={"x-api-key": gateway.key()}) as asking:
                replies = await asyncio.gather(*(asking.post(gateway.url + CHAT, json=asked) for _ in range(4)))
            return [reply.status_code for reply in replies]

        assert asyncio.run(ask_all()) == [200] * 4
        assert [request.body["max_tokens"] for request in server.requests] == [700] * 4
        assert server.peak == 1


def test_a_program_that_leaves_while_it_waits_for_money_makes_no_call() -> None:
    with (
        OpenAIServer(Answer(delay=2.0)) as server,
        served(openai_upstream(server.base_url), total=12_000) as gateway,
        ThreadPoolExecutor() as pool,
    ):
        body = json.dumps({"model": "m", "messages": QUESTION, "max_tokens": 900})
        first = pool.submit(gateway.ask, CHAT, body.encode())
        while not server.requests:
            time.sleep(0.01)
        waiting = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        waiting.request("POST", CHAT, body, {"Authorization": f"Bearer {gateway.key()}"})
        time.sleep(0.2)
        waiting.close()
        assert first.result()[0] == 200
        assert sorted(exchange.status for exchange in gateway.settled(2)) == [200, calls.LEFT]
    assert len(server.requests) == 1


def test_a_call_that_waited_in_vain_may_be_tried_again() -> None:
    with (
        OpenAIServer(Answer(delay=2.0)) as server,
        served(openai_upstream(server.base_url), total=12_000, patience=0.05) as gateway,
    ):
        asked = {"model": "m", "messages": QUESTION, "max_tokens": 900}

        async def ask_both() -> list[int]:
            async with httpx2.AsyncClient(timeout=60, headers={"x-api-key": gateway.key()}) as asking:
                replies = await asyncio.gather(*(asking.post(gateway.url + CHAT, json=asked) for _ in range(2)))
            return sorted(reply.status_code for reply in replies)

        assert asyncio.run(ask_both()) == [200, 429]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "model 'other' is not served; served: openai:m"),
        ({"model": None}, "model None is not served"),
        ({"n": 2}, "'n' must be 1"),
        ({"max_tokens": -1}, "'max_completion_tokens' must be a number of tokens"),
        ({"max_tokens": "9"}, "'max_completion_tokens' must be a number of tokens"),
        ({"tools": [{"type": "web_search"}]}, "tool of type 'web_search' is not supported"),
        ({"tools": [7]}, "tool of type 'None' is not supported"),
        ({"tools": "all"}, "'tools' must be a list"),
        ({"service_tier": "priority"}, "'service_tier' must be auto, default or flex"),
        ({"web_search_options": {}}, "searches are billed separately"),
        ({"previous_response_id": "r1"}, "'previous_response_id' is not supported"),
        ({"mcp_servers": [{"url": "https://example.org"}]}, "'mcp_servers' is not supported"),
        ({"prediction": {"type": "content", "content": "x"}}, "'prediction' is not supported"),
        ({"audio": {"voice": "a"}}, "'audio' is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "files by ref"),
        (b"[1]", "the request is not a JSON object"),
        (b"{", "the request is not a JSON object"),
    ],
)
def test_requests_without_a_bounded_cost_are_refused(change: Any, message: str) -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        status, body = gateway.ask(CHAT, change if isinstance(change, bytes) else {**ASKED, **change})
    assert (status, server.requests) == (400, [])
    assert message in body["error"]["message"]
    assert gateway.exchanges[0].status == 400
    assert gateway.seats.ledger.available == gateway.seats.ledger.total


@pytest.mark.parametrize("field", ["speed", "models", "plugins", "n_predict", "best_of", "provider"])
def test_a_field_of_unknown_cost_is_refused_unless_it_is_allowed(field: str) -> None:
    with OpenAIServer(Answer(usage=USAGE)) as server:
        for allowed, status in (((), 400), ((field,), 200)):
            with served(openai_upstream(server.base_url), allowed=allowed) as gateway:
                answered, body = gateway.ask(CHAT, {**ASKED, field: 7})
            assert answered == status
            assert (f"'{field}' is not a field" in str(body) and "--allow-field" in str(body)) == (status == 400)
    assert [field in request.body for request in server.requests] == [True]


@pytest.mark.parametrize(
    ("beta", "status"), [("fast-mode-2026-02-01", 400), ("context-1m", 400), ("context-2m", 200), ("effort-2025", 200)]
)
def test_a_beta_of_unknown_cost_is_refused_unless_it_is_allowed(beta: str, status: int) -> None:
    with (
        AnthropicServer(Answer(usage=USAGE)) as server,
        served(anthropic_upstream(server.base_url), allowed=["context-2m"]) as gateway,
    ):
        headers = {"x-api-key": gateway.key(), "anthropic-beta": f"claude-code-20250219, {beta}"}
        body = {"model": "claude", "max_tokens": 50, "messages": QUESTION}
        reply = httpx2.post(f"{gateway.url}/v1/messages", json=body, headers=headers)
        assert reply.status_code == status
        assert len(server.requests) == (status == 200)
        assert gateway.seats.ledger.spent == (0 if status == 400 else gateway.settled()[0].cost)


def test_a_dearer_cache_is_refused() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": [block]}]}
    with AnthropicServer() as server, served(anthropic_upstream(server.base_url)) as gateway:
        status, answer = gateway.ask("/v1/messages", body)
    assert (status, server.requests) == (400, [])
    assert "'ttl' of a cache must be 5m" in answer["error"]["message"]


@pytest.mark.parametrize(
    "change",
    [
        {"user": "\ud800"},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"stream_options": "x"},
        {"stream_options": [1]},
    ],
)
def test_a_request_that_cannot_be_sent_costs_nothing(change: Json) -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        assert gateway.ask(CHAT, {**ASKED, "stream": True, **change})[0] == 400
        assert gateway.seats.ledger.spent == 0
        assert gateway.seats.ledger.available == gateway.seats.ledger.total
    assert server.requests == []


def test_a_request_that_the_seat_can_not_pay_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = list[bytes]()

    def parse(raw: bytes) -> Json:
        parsed.append(raw)
        return {}

    monkeypatch.setattr(calls, "parsed_request", parse)
    large = b'{"model":"m","messages":[],"x":[' + b"{}," * 200_000 + b"{}]}"
    seats = {"alice": 3_000, "bob": None}
    with OpenAIServer() as server, served(openai_upstream(server.base_url), seats=seats) as gateway:
        status, body = gateway.ask(CHAT, large)
        chunked = httpx2.post(gateway.url + CHAT, content=iter([large]), headers={"x-api-key": gateway.key()})
    assert (status, chunked.status_code, parsed) == (402, 402, [])
    assert body["error"]["message"].startswith("the limit of the seat alice can't pay this call: $0.003 are left, and")


def test_large_requests_of_a_seat_are_parsed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, seen = threading.Semaphore(0), list[bool]()

    def parse(raw: bytes) -> Json:
        begun.release()
        time.sleep(0.2)
        seen.append(begun.acquire(blocking=False) and not begun.acquire(blocking=False))
        return parsed_request(raw)

    monkeypatch.setattr(calls, "parsed_request", parse)
    large = {**ASKED, "messages": [{"role": "user", "content": "x" * 300_000}]}
    with (
        OpenAIServer() as server,
        served(openai_upstream(server.base_url), total=10_000_000) as gateway,
        ThreadPoolExecutor() as pool,
    ):
        replies = list(pool.map(lambda _: gateway.ask(CHAT, large)[0], range(3)))
    assert (replies, seen) == ([200] * 3, [True] * 3)


def test_the_own_key_of_a_seat_in_a_request_is_neither_sent_nor_recorded() -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        told = [{"role": "user", "content": f"My key is {gateway.key()}."}]
        assert gateway.ask(CHAT, {**ASKED, "messages": told})[0] == 200
        [exchange] = gateway.settled()
    hidden = [{"role": "user", "content": "My key is [key]."}]
    assert hidden == server.requests[0].body["messages"] == exchange.request["messages"]


def test_little_of_a_request_is_taken_after_its_answer() -> None:
    long = json.dumps({**ASKED, "user": "x" * 28_000_000}).encode()
    with OpenAIServer() as server, served(openai_upstream(server.base_url), seats={"poor": 1}) as gateway:
        for key, status in ((gateway.key("poor"), 402), ("nobody's", 401)):
            assert httpx2.post(gateway.url + CHAT, content=long, headers={"x-api-key": key}).status_code == status
            head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: {len(long)}\r\n\r\n"
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
                connection.sendall(head.encode())
                assert connection.recv(12) == f"HTTP/1.1 {status}".encode()
                with pytest.raises(ConnectionError):
                    connection.sendall(long)


@pytest.mark.parametrize("parts", [b"{},", b"[],", b'"",', b"1,", b'"\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n",'])
def test_a_request_of_too_many_values_is_refused_before_it_is_parsed(parts: bytes) -> None:
    with pytest.raises(RefusedRequestError, match="more than 200,000 values"):
        parsed_request(b'{"x":[' + parts * 200_001 + b"{}]}")
    with pytest.raises(RefusedRequestError, match="more than 200,000 values"):
        parsed_request(b'{"x":"' + b"\\n" * 2_000_010 + b'"}')
    assert parsed_request(b'{"x":[' + parts * 50_000 + b"{}]}")["x"]


def test_idle_and_half_connections_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 20)
    with (
        OpenAIServer(Answer(usage=USAGE)) as server,
        served(openai_upstream(server.base_url)) as gateway,
        ExitStack() as stack,
    ):
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port))) for _ in range(60)]
        for connection in idle[::2]:
            with suppress(OSError):  # it has ended already
                connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost:")
        assert gateway.ask(CHAT, ASKED)[0] == 200
        assert len(connections.Connection.waiting) <= 20
        monkeypatch.setattr(connections, "HEAD_SECONDS", 0.05)
        late = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port)))
        late.settimeout(60)
        with suppress(ConnectionResetError):
            assert late.recv(1) == b""


def test_half_requests_and_drips_end_and_slow_answers_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS"):
        monkeypatch.setattr(connections, name, 1.0)
    slow = Answer(usage=USAGE, delay=2.0)
    with OpenAIServer(slow) as server, served(openai_upstream(server.base_url)) as gateway, ExitStack() as stack:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("POST", CHAT, json.dumps(ASKED), {"Authorization": f"Bearer {gateway.key()}"})
        assert connection.getresponse().read()  # after more than the time of a request
        half = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-api-key: {gateway.key()}\r\n".encode()
        new = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
        for opened, sent in ((new, half + b"content-length: 9\r\n\r\n{"), (connection.sock, half)):
            stack.enter_context(opened).sendall(sent)
            with suppress(ConnectionResetError):
                assert opened.recv(1) == b""
        drip = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=0.2))
        letters = iter(half + b"x" * 200)
        with suppress(ConnectionError):
            while True:
                drip.sendall(bytes([next(letters)]))
                with suppress(TimeoutError):
                    assert drip.recv(1) == b""
                    break


def test_a_body_may_take_longer_than_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    body = json.dumps(ASKED).encode()

    def slowly() -> Iterator[bytes]:
        yield body[:9]
        time.sleep(1.5)
        yield body[9:]

    with OpenAIServer(Answer(usage=USAGE)) as server, served(openai_upstream(server.base_url)) as gateway:
        headers = {"x-api-key": gateway.key()}
        assert httpx2.post(gateway.url + CHAT, content=slowly(), headers=headers, timeout=60).status_code == 200


def test_a_request_beyond_the_limit_of_bytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_BYTES", 3_000)
    body = json.dumps(ASKED).encode()
    with OpenAIServer(Answer(usage=USAGE)) as server, served(openai_upstream(server.base_url)) as gateway:
        headers = {"x-api-key": gateway.key()}
        for content in (body, iter([body[:2_000], body[2_000:]])):
            refused = httpx2.post(gateway.url + CHAT, content=content, headers=headers)
            assert (refused.status_code, "longer than 3,000 bytes" in refused.text) == (413, True)
        assert gateway.ask(CHAT, {**ASKED, "messages": QUESTION})[0] == 200
    assert len(server.requests) == 1


async def test_a_reply_is_read_up_to_what_its_limit_can_fill() -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 65_536
            yield b"x" * 65_536

    payment = cast(Any, SimpleNamespace(limit=100))
    for status, kind, most in (
        (200, "text/event-stream", 262_144 + 102_400),
        (200, "a/b", 262_144 + 6_400),
        (500, "a/b", 16_384),
    ):
        read, reply = 0, httpx2.Response(status, headers={"content-type": kind}, content=endless())
        passed = 0
        with pytest.raises(BrokenReplyError) if status == 200 else nullcontext():
            async for piece in passing._bounded(reply, payment):
                passed += len(piece)
        assert passed <= most
        assert read <= most + 2 * 65_536


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_reply_of_a_server_that_ignores_stream_is_streamed(protocol: Protocol) -> None:
    said = Reply("money", (ToolCall("c1", "look", {"where": "x"}),), (), AIMessage(""), "stop", Usage(3, 4))
    with EventServer(Answer(body=protocol.reply(said, "m"))) as server:
        upstream = anthropic_upstream if protocol.provider == "anthropic" else openai_upstream
        with served(upstream(server.base_url)) as gateway:
            asked = {"messages": QUESTION} if protocol.name != "responses" else {"input": "hi"}
            body: Json = {"model": "claude" if protocol.provider == "anthropic" else "m", "stream": True, **asked}
            if protocol.provider == "anthropic":
                body["max_tokens"] = 50
            with gateway.asked(protocol.path, body) as reply:
                assert reply.getheader("content-type", "").startswith("text/event-stream")
                parts = data_of([reply.read()])
    heard = protocol.said(parts)
    assert heard["content"] == "money"
    assert heard["tool_calls"][0]["function"]["name"] == "look"


def test_without_a_key_the_budget_is_told_to_this_machine_alone() -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        for path in ("/budget", "/v1/models"):
            asked = {
                host: httpx2.get(gateway.url + path, headers={"host": host}) for host in ("evil.example", "localhost")
            }
            assert [reply.status_code for reply in asked.values()] == [403, 200]
            headers = {"host": "evil.example", "x-api-key": gateway.key()}
            assert httpx2.get(gateway.url + path, headers=headers).status_code == 200


def test_pictures_by_address_are_held_for() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with OpenAIServer(Answer(usage=USAGE)) as server, served(openai_upstream(server.base_url), total=18_500) as gateway:
        asked = {"model": "m", "messages": [{"role": "user", "content": [picture]}], "max_tokens": 400}
        assert gateway.ask(CHAT, asked)[0] == 200
    assert 256 <= server.requests[0].body["max_tokens"] < 400


def test_other_keys_and_other_paths_are_refused() -> None:
    with OpenAIServer() as server, served(openai_upstream(server.base_url)) as gateway:
        assert gateway.ask(CHAT, ASKED, key=KEY)[0] == 401
        assert gateway.ask(CHAT, ASKED, key="")[0] == 401
        status, body = gateway.ask("/v1/embeddings", {})
        listed = gateway.ask("/v1/models", method="GET")[1]
    assert status == 404
    assert body["error"]["message"].startswith("'/v1/embeddings' is not a path of this gateway; POST /v1/chat")
    assert [model["id"] for model in listed["data"]] == ["openai:m", "m"]
    assert server.requests == []


def test_errors_of_the_provider_cost_nothing_and_never_show_its_key() -> None:
    wrong = fault(401, {"error": {"message": f"wrong key {KEY}"}}, retry_after="7")
    with OpenAIServer(wrong) as server, served(openai_upstream(server.base_url)) as gateway:
        status, body = gateway.ask(CHAT, ASKED)
        [exchange] = gateway.settled()
    assert status == exchange.status == 401
    assert KEY not in json.dumps(body) + json.dumps(exchange.reply)
    assert (exchange.cost, exchange.note) == (0, "not billed")


def test_an_unreachable_provider_costs_nothing() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with served(openai_upstream(f"http://127.0.0.1:{closed.getsockname()[1]}")) as gateway:
            status, body = gateway.ask(CHAT, ASKED)
    assert status == 502
    assert body["error"]["message"] == "the provider of 'openai:m' is unreachable"
    assert gateway.seats.ledger.spent == 0


@pytest.mark.parametrize(
    ("answer", "stream"),
    [
        (Answer(cut="before"), False),
        (Answer(cut="within"), False),
        (Answer(text="a long text", cut="within"), True),
        (Answer(text="a long text", usage=None), True),
        (Answer(body="<html>"), False),
        (Answer(silent=True), False),
        (fault(504), False),
        (fault(524, "<html>late"), True),
    ],
)
def test_what_may_have_been_billed_is_charged_in_full(answer: Answer, stream: bool) -> None:
    with OpenAIServer(answer) as server, served(openai_upstream(server.base_url), timeout=1.0) as gateway:
        body = json.dumps({**ASKED, "stream": stream})
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
        connection.request("POST", CHAT, body, {"Authorization": f"Bearer {gateway.key()}"})
        connection.getresponse().read()
        connection.close()
        [exchange] = gateway.settled()
    assert exchange.note.startswith("may be billed")
    assert exchange.usage is not None
    assert exchange.usage.output_tokens == 500
    assert exchange.cost == PRICE.worst_case.cost(exchange.usage.input_tokens, 500)


def test_a_program_that_leaves_its_stream_ends_the_call_and_pays_for_it() -> None:
    with OpenAIServer(Answer(pings=0.02)) as server, served(openai_upstream(server.base_url)) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
        body = json.dumps({**ASKED, "stream": True})
        connection.request("POST", CHAT, body, {"Authorization": f"Bearer {gateway.key()}"})
        connection.getresponse().read(1)
        connection.close()
        [exchange] = gateway.settled()
    assert (exchange.status, exchange.note) == (499, "may be billed (the program disconnected)")
    assert exchange.cost >= 5000
    assert gateway.seats.ledger.remaining == gateway.seats.ledger.available


@settings(max_examples=6)
@given(st.integers(0, 2**32), st.integers(2_000, 60_000))
def test_64_programs_at_once_never_overdraw_the_pool(seed: int, total: int) -> None:
    chance = random.Random(seed)
    used = [
        {"prompt_tokens": 900, "completion_tokens": tokens, "total_tokens": 900 + tokens} for tokens in (1, 99, 400)
    ]
    answers = [Answer(usage=usage) for usage in used]
    answers += [Answer(usage=None), fault(500), fault(429), Answer(cut="before"), Answer(cut="within")]
    answers += [Answer(usage={"prompt_tokens": 10**9, "completion_tokens": 10**9, "total_tokens": 2 * 10**9})]
    price = Price.model_validate({"input": "0.1", "output": "1"})
    with OpenAIServer(lambda _request, _number: chance.choice(answers)) as server:
        url = server.base_url
        upstream = replace(openai_upstream(url, price=price), access=Access(base_url=url))
        with served(upstream, total=total, patience=0.2) as gateway:
            asyncio.run(_ask_at_once(gateway, chance))
        exchanges, ledger = gateway.exchanges, gateway.seats.ledger
    assert len(exchanges) >= 64
    assert 0 <= ledger.spent <= total
    assert ledger.available == ledger.remaining
    assert sum(exchange.cost for exchange in exchanges) == ledger.spent
    assert sum(entry.amount for entry in ledger.journal) == ledger.available
    assert sum(seat.spent for seat in gateway.seats.by_name.values()) == ledger.spent
    assert all(exchange.uncovered == 0 for exchange in exchanges if exchange.protocol is CHAT_PROTOCOL)


def _program(chance: random.Random) -> tuple[str, dict[str, Any]]:
    """A request by any protocol, of which a tenth has a huge prompt."""
    text = "x" * (400_000 if chance.random() < 0.1 else 4_000)
    path, body = chance.choice(
        [
            (CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": 500}),
            ("/v1/responses", {"input": text, "max_output_tokens": 500}),
            ("/v1/messages", {"messages": [{"role": "user", "content": text}], "max_tokens": 500}),
        ]
    )
    return path, {"model": "m", "stream": chance.random() < 0.5, **body}


async def _ask_at_once(gateway: Served, chance: random.Random) -> None:
    async def ask(asking: httpx2.AsyncClient, seat: str, program: tuple[str, dict[str, Any]], leaves: bool) -> None:
        path, body = program
        for _ in range(2):  # a program tries once more
            with suppress(httpx2.TransportError):  # some answers are cut
                headers = {"x-api-key": gateway.key(seat)}
                async with asking.stream("POST", gateway.url + path, json=body, headers=headers) as reply:
                    if leaves or (len(await reply.aread()) and reply.status_code < 429):
                        return

    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None)) as asking:
        calls = [(chance.choice(["alice", "bob"]), _program(chance), chance.random() < 0.2) for _ in range(64)]
        await asyncio.gather(*(ask(asking, *call) for call in calls))


def test_the_price_of_the_test_is_what_the_costs_assume() -> None:
    assert PRICE.cost(1000, 200, cached=600) == COST
