"""HTTP/1.1 for `httpx2` with a parser in C.

The transport of `httpx2` itself parses in Python and polls every idle connection with every request, which takes half
of the processor time of a call when many are in flight.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Final

import httptools
import httpx2

Origin = tuple[str, str, int]
"""Scheme, host and port."""

_KEPT_SECONDS: Final = 5.0
_MOST_BUFFERED: Final = 262_144
"""Bytes of a body that are read ahead of its reader."""
_STAGGER_SECONDS: Final = 0.25
"""The wait for one address of a host before the next one is tried too (RFC 8305)."""
_CUT: Final = "peer closed connection without sending complete message body"
_PORTS: Final = {"http": 80, "https": 443}


class DirectTransport(httpx2.AsyncBaseTransport):
    """Sends requests of one event loop, each over a connection of its own; `idle` connections are kept for the next.

    It has no proxies and no HTTP/2, and no limit on connections. Errors are those of `httpx2`. Of the events that a
    request's ``trace`` extension receives from `httpx2` itself, it reports only the start of the request.
    """

    def __init__(self, *, verify: ssl.SSLContext, idle: int) -> None:
        self._ssl = verify
        self._most_idle = idle
        self._idle: list[_Connection] = []  # the longest idle first
        self._open: set[_Connection] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the head of its response."""
        url, timeouts = request.url, request.extensions.get("timeout", {})
        if url.scheme not in _PORTS:
            raise httpx2.UnsupportedProtocol(f"Request URL has an unsupported protocol '{url.scheme}://'.")
        origin = (url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme])
        connection = self._kept(origin) or await self._connected(origin, timeouts.get("connect"))
        try:
            if trace := request.extensions.get("trace"):
                await trace("http11.send_request_headers.started", {"request": request})
            await connection.send(request, timeouts.get("write"))
            status, reason, headers = await connection.head(timeouts.get("read"))
        except BaseException:
            connection.close()
            raise
        body = _Body(connection, timeouts.get("read"), self._keep)
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": reason}
        return httpx2.Response(status, headers=headers, stream=body, extensions=extensions)

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            connection.close()
        await asyncio.sleep(0)  # the event loop closes them in its next step

    def _kept(self, origin: Origin) -> _Connection | None:
        """An idle connection, the last used first."""
        oldest = asyncio.get_running_loop().time() - _KEPT_SECONDS
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.pop(0).close()
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].origin == origin:
                connection = self._idle.pop(place)
                if connection.is_quiet():
                    return connection
                connection.close()
        return None

    def _keep(self, connection: _Connection) -> None:
        if connection.is_reusable and len(self._idle) < self._most_idle:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.close()

    async def _connected(self, origin: Origin, seconds: float | None) -> _Connection:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        secure = {"ssl": self._ssl, "server_hostname": host} if scheme == "https" else {}
        make = partial(_Connection, origin, self._open, self._forget)
        try:
            async with asyncio.timeout(seconds):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                addresses = dict.fromkeys(str(address[0]) for *_, address in found)
                return await _first([partial(loop.create_connection, make, at, port, **secure) for at in addresses])
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error

    def _forget(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


async def _first(connecting: Sequence[Callable[[], Any]]) -> _Connection:
    """The first connection; each begins when the one before it failed, or takes long."""
    running, errors = set[asyncio.Future[Any]](), list[BaseException]()
    waiting = list(connecting)
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(waiting.pop(0)()))
            timeout = _STAGGER_SECONDS if waiting else None
            ended, running = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                if (error := task.exception()) is None:
                    connection: _Connection = task.result()[1]
                    return connection
                errors.append(error)
    finally:
        for task in running:
            task.cancel()
    special = [error for error in errors if isinstance(error, ssl.SSLError) or not isinstance(error, OSError)]
    raise special[0] if special else OSError("All connection attempts failed")


class _Body(httpx2.AsyncByteStream):
    """The body of a response; what arrived together comes as one piece."""

    def __init__(self, connection: _Connection, seconds: float | None, ended: Callable[[_Connection], None]) -> None:
        self._connection, self._seconds, self._ended = connection, seconds, ended
        self._is_closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._connection.body(self._seconds)

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._ended(self._connection)


class _Connection(asyncio.Protocol):
    """A connection to a server; it serves one request after another."""

    idle_since = 0.0

    def __init__(self, origin: Origin, opened: set[_Connection], lost: Callable[[_Connection], None]) -> None:
        self.origin = origin
        self._opened, self._lost = opened, lost
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._is_full = self._is_paused = False
        self._begin("")

    def _begin(self, method: str) -> None:
        self._method = method
        self._is_sent = self._has_head = self._is_complete = self._is_kept = False
        self._reason = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._size = 0  # of the pieces
        self._received = 0

    @property
    def is_reusable(self) -> bool:
        """Whether the response is complete and the server keeps the connection."""
        return self._is_sent and self._is_kept and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Whether an idle connection is open; a server that has just closed it makes it readable."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not self._transport.is_closing() and not poll.poll(0)

    def close(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    async def send(self, request: httpx2.Request, seconds: float | None) -> None:
        """Send a request; a server that answers before its end gets no more of it."""
        self._begin(request.method)
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        raw = request.headers.raw
        lines = [
            b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path),
            *(b"%b: %b" % line for line in raw),
        ]
        head = b"\r\n".join([*lines, b"", b""])
        if head.count(b"\r") != len(lines) + 1 or head.count(b"\n") != len(lines) + 1 or b"\0" in head:
            raise httpx2.LocalProtocolError("a header of the request holds a line break")
        is_chunked = "transfer-encoding" in request.headers
        async for part in request.stream:
            framed = b"%x\r\n%b\r\n" % (len(part), part) if is_chunked and part else part
            self._transport.write(head + framed)
            head = b""
            while self._is_full and not self._has_head and self._failure is None:
                await self._news(seconds, httpx2.WriteTimeout)
            if self._has_head or self._failure is not None:
                return
        if head or is_chunked:
            self._transport.write(head + (b"0\r\n\r\n" if is_chunked else b""))
        self._is_sent = True

    async def head(self, seconds: float | None) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """The status, the reason and the headers of the response."""
        while not self._has_head:
            if self._failure is not None:
                raise self._failure
            await self._news(seconds, httpx2.ReadTimeout)
        return self._parser.get_status_code(), self._reason, self._headers

    async def body(self, seconds: float | None) -> AsyncIterator[bytes]:
        """The body of the response as it arrives."""
        while True:
            if self._pieces:
                piece, self._pieces, self._size = b"".join(self._pieces), [], 0
                if self._is_paused:
                    self._is_paused = False
                    self._transport.resume_reading()
                yield piece
            elif self._is_complete:
                return
            elif self._failure is not None:
                raise self._failure
            else:
                await self._news(seconds, httpx2.ReadTimeout)

    async def _news(self, seconds: float | None, late: type[httpx2.TimeoutException]) -> None:
        """Wait until something happens, `seconds` at most."""
        self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self._fail, late(""))
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._wake()

    # asyncio's callbacks

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        self._opened.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx2.RemoteProtocolError(str(error)))
            self._transport.abort()
        if self._size > _MOST_BUFFERED and not self._is_complete and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        headers = httpx2.Headers(self._headers)
        if error is not None:
            self._fail(httpx2.ReadError(str(error)))
        elif not self._has_head:
            self._fail(httpx2.RemoteProtocolError("Server disconnected without sending a response."))
        elif "transfer-encoding" in headers:
            self._fail(httpx2.RemoteProtocolError(f"{_CUT} (incomplete chunked read)"))
        elif length := headers.get("content-length"):
            self._fail(httpx2.RemoteProtocolError(f"{_CUT} (received {self._received} bytes, expected {length})"))
        else:  # the end of the connection is that of the body
            self._is_complete = True
            self._wake()
        self._lost(self)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    # The parser's callbacks

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise ValueError("data follow the response")
        self._reason, self._headers = b"", []

    def on_status(self, part: bytes) -> None:
        self._reason += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._has_head = self._parser.get_status_code() >= 200  # others announce it
        if self._method == "HEAD":  # the parser waits for a body, so that this is the last response
            self._is_complete = self._has_head
        self._wake()

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        self._received += len(piece)
        self._wake()

    def on_message_complete(self) -> None:
        self._is_complete = self._has_head
        self._is_kept = self._is_complete and self._parser.should_keep_alive()
        self._wake()
