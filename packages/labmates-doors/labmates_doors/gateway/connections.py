"""Close connections that are idle or send half a request, so that they take nobody's place."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS: Final = 10.0
"""Time from a connection, or from the first byte of a request, to the end of its head."""
BODY_SECONDS: Final = 60.0
"""Time for the rest of a request."""
MOST_WAITING: Final = 256
"""Most connections without a whole request; of more, the oldest end."""
MOST_UNREAD: Final = 1_000_000
"""Most bytes of a request that are taken after its answer, so that its program can read that; more end the connection.
"""


class Connection(HttpToolsProtocol):
    """An HTTP connection with a deadline until its request is whole."""

    waiting: dict[Connection, None] = {}  # noqa: RUF012 - in the order of their deadlines, for all servers of a process
    _deadline: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; the connection that has waited longest ends if there are too many."""
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)
        if len(self.waiting) > MOST_WAITING:
            next(iter(self.waiting))._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; the first byte of a further request starts its deadline."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._wait(HEAD_SECONDS)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Give the body its time."""
        self._wait(BODY_SECONDS)
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Read; the connection ends if much follows an answer that needed no more."""
        super().on_body(body)
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > MOST_UNREAD:
                self.transport.close()

    def on_message_complete(self) -> None:
        """The request is whole: its answer may take long."""
        self._end_wait()
        super().on_message_complete()

    def _wait(self, seconds: float) -> None:
        self._end_wait()
        self.waiting[self] = None
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _end_wait(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> Any:
        self._end_wait()
        self.transport.abort()
