"""A local stand-in for LangSmith: takes in traces as the client sends them."""

from __future__ import annotations

import email.parser
import email.policy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "lsv2-a-very-secret-key-0123456789"
"""The key of the tests, which must not be shown."""
INGEST = {
    "use_multipart_endpoint": True,
    "size_limit": 100,
    "size_limit_bytes": 20_000_000,
    "scale_up_nthreads_limit": 4,
    "scale_up_qsize_trigger": 1000,
    "scale_down_nempty_trigger": 4,
}
"""What the client is told about sending in batches."""


@dataclass
class Traces:
    """What arrived: runs by id, the parts of each merged, and feedback on them."""

    url: str
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    feedback: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0

    def roots(self) -> list[dict[str, Any]]:
        """Return the runs without a parent: one for each trace."""
        return [run for run in self.runs.values() if not run.get("parent_run_id")]

    def path(self, run: dict[str, Any]) -> list[str]:
        """Return the names from the root of the trace down to a run."""
        names = [run["name"]]
        while run.get("parent_run_id"):
            run = self.runs[run["parent_run_id"]]
            names.insert(0, run["name"])
        return names


@contextmanager
def langsmith_server() -> Iterator[Traces]:
    """Serve on a free port of 127.0.0.1 until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            traces.requests += 1
            self._answer({"version": "1", "instance_flags": {}, "batch_ingest_config": INGEST})

        def do_POST(self) -> None:
            traces.requests += 1
            body = self._body()
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
            for part in message.iter_parts():
                name = part.get_param("name", header="content-disposition")
                kind, _, rest = str(name).partition(".")
                run_id, _, key = rest.partition(".")
                payload = part.get_payload(decode=True)
                assert isinstance(payload, bytes)
                value = json.loads(payload) if payload else {}
                if kind == "feedback":
                    traces.feedback.append(value)
                    continue
                known = {k: v for k, v in value.items() if v is not None} if not key else {key: value}
                with lock:
                    run = traces.runs.setdefault(run_id, {})
                    # A run's beginning may arrive after its end, which holds what is true.
                    run.update(known if kind == "patch" else known | run)
            self._answer({})

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"]))
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _answer(self, data: dict[str, Any]) -> None:
            body = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    traces = Traces(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield traces
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
