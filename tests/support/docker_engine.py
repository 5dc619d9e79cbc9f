"""A stand-in for a Docker engine that speaks its protocol on a unix socket, and has faults."""

from __future__ import annotations

import json
import os
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, Any]
"""Status and body; a list is sent as a stream of JSON objects, a text as it is."""


@dataclass
class FakeEngine:
    """What it answers, and what it was asked.

    Attributes
    ----------
    host
        Value for ``DOCKER_HOST``.
    answers
        By method and path without the version, ``"GET /version"``; a function is called with the query.
    asked
        Methods and paths, in order.
    """

    host: str
    answers: dict[str, Answer | Callable[[dict[str, str]], Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


def version(**fields: Any) -> Answer:
    """Return what an engine on this machine says of itself, but for `fields`."""
    own = {"Version": "28.5.0", "ApiVersion": "1.51", "Os": "linux", "KernelVersion": os.uname().release}
    return 200, {**own, **fields}


@contextmanager
def fake_engine(socket: Path | None = None) -> Iterator[FakeEngine]:
    """Serve until the block ends, on the unix socket of that path, by default on one with a short path of its own."""
    with tempfile.TemporaryDirectory(prefix="lm-") as folder:
        path = socket or Path(folder, "engine")
        engine = FakeEngine(f"unix://{path}", {"GET /version": version()})
        with _serve(engine, path):
            yield engine


@contextmanager
def _serve(engine: FakeEngine, path: Path) -> Iterator[None]:

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond("GET")

        def do_POST(self) -> None:
            self._respond("POST")

        def do_DELETE(self) -> None:
            self._respond("DELETE")

        def _respond(self, method: str) -> None:
            self._read()
            parts = urlsplit(self.path)
            where = parts.path
            if where.startswith("/v1."):
                where = "/" + where.split("/", 2)[2]
            engine.asked.append(f"{method} {where}")
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            answer = engine.answers.get(f"{method} {where}", (404, {"message": "page not found"}))
            status, body = answer(query) if callable(answer) else answer
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if isinstance(body, list):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in body:
                    data = json.dumps(line).encode() + b"\r\n"
                    self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
                return
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _read(self) -> None:
            if self.headers.get("Transfer-Encoding") == "chunked":
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            else:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def address_string(self) -> str:
            return "unix"

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # a client may leave whenever it likes
                super().handle_error(request, client_address)

    server = Server(str(path), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
