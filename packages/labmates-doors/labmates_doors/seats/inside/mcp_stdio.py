"""The tools of a seat on standard streams, for programs that start their MCP servers.

Each line is a message, which goes to the seat's server by HTTP; so does the answer back. It needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

AT_ONCE = 32
"""More calls than a seat may have waiting, so that the lab itself refuses a flood."""


class Bridge:
    """The way from standard streams to the server at `url`."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._writing = url, Lock()
        self._headers = {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }

    def pass_on(self, line: bytes) -> None:
        """Send a message and write its answer, if it has one."""
        message = json.loads(line)
        try:
            with urlopen(Request(self._url, line, self._headers)) as reply:  # noqa: S310 - the seat's own server
                content = reply.read()
            answer = json.loads(content) if content else None
        except (URLError, ValueError) as error:
            fault = {"code": -32603, "message": f"the seat's server gave no answer: {error}"}
            answer = {"jsonrpc": "2.0", "id": message.get("id"), "error": fault} if "id" in message else None
        if answer is not None:
            self._write(answer)

    def _write(self, answer: dict[str, Any]) -> None:
        version = answer.get("result", {}).get("protocolVersion")
        if version is not None:  # both sides have agreed on it, and every later request names it
            self._headers["mcp-protocol-version"] = version
        with self._writing:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def main(url: str, key: str) -> None:
    """Pass messages on until standard input ends."""
    bridge = Bridge(url, key)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for line in sys.stdin.buffer:
            if line.strip():
                threads.submit(bridge.pass_on, line)


if __name__ == "__main__":
    main(os.environ["LABMATES_MCP_URL"], os.environ["LABMATES_KEY"])
