from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import anthropic
import openai

from labmates.budgets.prices import Price
from labmates.util.loopback import open_socket
from labmates_doors.gateway.exchanges import Exchange
from labmates_doors.gateway.recording import RunOfGateway
from labmates_doors.gateway.seats import Seats
from labmates_doors.gateway.server import make_server
from labmates_doors.gateway.state import Gateway
from labmates_doors.gateway.upstream import Upstream

PRICE = Price.model_validate({"input": "1", "output": "10", "cached": "0.1", "cache_write": "1.25"})
KEY = "sk-real-key-of-the-provider"


class Record:
    """A record of ended exchanges in memory."""

    fault = ""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Record an exchange."""
        self.exchanges.append(exchange)

    @asynccontextmanager
    async def opened(self, *_state: object) -> AsyncIterator[None]:
        """Context in which a gateway is served."""
        yield


@dataclass
class Served:
    """A gateway that is being served, and what it has recorded."""

    port: int
    seats: Seats
    record: Record | RunOfGateway
    clients: ExitStack

    @property
    def exchanges(self) -> list[Exchange]:
        assert isinstance(self.record, Record)
        return self.record.exchanges

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def key(self, seat: str = "alice") -> str:
        return self.seats.by_name[seat].key

    def openai(self, seat: str = "alice", retries: int = 0) -> openai.OpenAI:
        """A client of OpenAI's SDK, closed with the gateway."""
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key(seat), max_retries=retries)
        return self.clients.enter_context(client)

    def anthropic(self, seat: str = "alice") -> anthropic.Anthropic:
        """A client of Anthropic's SDK, closed with the gateway."""
        client = anthropic.Anthropic(base_url=self.url, api_key=self.key(seat), max_retries=0)
        return self.clients.enter_context(client)

    def ask(
        self, path: str, body: Any = None, *, key: str | None = None, method: str = "POST"
    ) -> tuple[int, dict[str, Any]]:
        """Send a request as any program would, and return the status and the JSON."""
        status, content = self.ask_raw(path, body, key=key, method=method)
        return status, json.loads(content)

    def ask_raw(self, path: str, body: Any, *, key: str | None = None, method: str = "POST") -> tuple[int, bytes]:
        """Send a request, and return the status and what came."""
        with self.asked(path, body, key=key, method=method) as reply:
            return reply.status, reply.read()

    @contextmanager
    def asked(
        self, path: str, body: Any, *, key: str | None = None, method: str = "POST"
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request; the reply is read within the context."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key() if key is None else key}", "content-type": "application/json"}
        with closing(connection):
            connection.request(method, path, content if method == "POST" else None, headers)
            yield connection.getresponse()

    def settled(self, number: int = 1) -> list[Exchange]:
        """Wait until so many exchanges are recorded: a program has its reply before the gateway has closed the call."""
        until = time.monotonic() + 30
        while len(self.exchanges) < number and time.monotonic() < until:
            time.sleep(0.01)
        assert len(self.exchanges) == number
        return self.exchanges


def openai_upstream(url: str, name: str = "m", price: Price = PRICE) -> Upstream:
    return Upstream(f"openai:{name}", "openai", name, url.removesuffix("/v1"), KEY, price)


def anthropic_upstream(url: str) -> Upstream:
    return Upstream("anthropic:claude", "anthropic", "claude", url.removesuffix("/v1"), KEY, PRICE)


@contextmanager
def served(
    *upstreams: Upstream,
    total: int = 1_000_000,
    seats: Mapping[str, int | None] | None = None,
    patience: float = 30.0,
    timeout: float = 30.0,
    record: RunOfGateway | None = None,
    allowed: Sequence[str] = (),
) -> Iterator[Served]:
    """Serve a gateway for the time of a test."""
    at_pool = Seats(total, seats or {"alice": None, "bob": None}, patience=patience)
    listening = open_socket("127.0.0.1", 0, what="gateway", usual=0)
    found = Served(listening.getsockname()[1], at_pool, record or Record(), ExitStack())
    recording = cast(RunOfGateway, found.record)
    server = make_server(Gateway(at_pool, upstreams, record=recording, timeout=timeout, allowed=allowed))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        with found.clients:
            yield found
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
