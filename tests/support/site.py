"""The viewer served for tests: as users have it, on a port of this machine, with requests as raw as need be."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from labmates.records.store import Store
from labmates.util.loopback import open_socket
from labmates.viewer.app import make_app
from labmates.viewer.server import make_server

TOKEN = "a-token-for-tests"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def data(self) -> Any:
        """The body as JSON data."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Site:
    """The viewer of one store."""

    port: int
    once: str

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", body: bytes = b"", /, **headers: str) -> Answer:
        """Send one request, with these headers alone; underscores in their names are hyphens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        found = Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return found

    def get(self, path: str) -> Answer:
        """Ask as who has the token."""
        return self.ask(path, Authorization=f"Bearer {TOKEN}")


@contextmanager
def served(store: Store, once: str = "") -> Iterator[Site]:
    """Serve the viewer of a store for the time of a test."""
    listening = open_socket("127.0.0.1", 0, what="viewer", usual=0)
    port = listening.getsockname()[1]
    server = make_server(make_app(store, token=TOKEN, port=port, once=once))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Site(port, once)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
