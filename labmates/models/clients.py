"""HTTP clients for OpenAI's protocol."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

from labmates.errors import UsageError
from labmates.models.attempt import UNDER_WAY, ReplyTooLongError, on_the_wire
from labmates.models.batches import BatchBook, BatchQueue, NoBook, is_call
from labmates.models.error_bodies import page_title
from labmates.models.options import ModelOptions
from labmates.models.reported_costs import cost_in_headers
from labmates.models.transport import DirectTransport, EnvironmentTransport
from labmates.models.wire import page_error


@cache
def ssl_context() -> ssl.SSLContext:
    """The TLS context of all clients, shared because reading certificates dominates the cost of a new client.

    Raises `UsageError` if a variable of the environment names unreadable certificates.
    """
    variable = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), "")
    try:
        if variable:
            Path(os.environ[variable]).stat()  # a missing folder would just hold no certificates
        return httpx2.create_ssl_context()
    except OSError as error:
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(
            f"{variable}: can't read certificates from '{os.environ.get(variable)}' ({reason}); correct the variable, "
            "or unset it to trust the system's certificates"
        ) from None


def transport() -> EnvironmentTransport:
    """The transport of a client."""
    return EnvironmentTransport(ssl_context)


def patience(options: ModelOptions) -> httpx2.Timeout:
    """The timeout of a client: it limits connecting; the attempt's clock limits the rest."""
    return httpx2.Timeout(None, connect=options.call_timeout)


class CallClient(httpx2.AsyncClient):
    """A client that sends model calls through batches if it has a batch queue."""

    batches: BatchQueue | None = None

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        """Send a request; with a queue, a model call waits for its batch."""
        if self.batches is not None and is_call(request):
            return await self.batches.reply(request)
        return await super().send(request, **settings)


def new_client(options: ModelOptions, *, is_local: bool = False) -> CallClient:
    """A client for the running event loop, to be closed by the caller.

    It reports to the current attempt when the request is on the wire, bounds the reply, and refuses pages in HTML. A
    local one uses no proxy.
    """
    return CallClient(
        transport=DirectTransport(ssl_context) if is_local else transport(),
        timeout=patience(options),
        follow_redirects=True,
        event_hooks={"request": [_watch], "response": [_bound]},
    )


def batch_queue(
    client: CallClient, options: ModelOptions, book: BatchBook | None, notify: Callable[[str], None] | None
) -> BatchQueue:
    """The batch queue of a client."""
    return BatchQueue(
        client,
        book or NoBook(),
        window=options.batch_window,
        poll=options.batch_poll,
        timeout=options.call_timeout,
        most_failures=options.max_retries,
        notify=notify,
    )


@cache
def synchronous_client() -> httpx2.Client:
    """An unused client; without one, LangChain builds a client per base URL."""
    return httpx2.Client(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)


def pieces(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The chunks of a body; an uncompressed body bypasses the decoder, since streams have many chunks."""
    if "content-encoding" in response.headers or not isinstance(response.stream, httpx2.AsyncByteStream):
        return response.aiter_bytes()
    return aiter(response.stream)


async def _watch(request: httpx2.Request) -> None:
    async def trace(event: str, info: dict[str, Any]) -> None:
        del info
        if event.endswith("send_request_headers.started"):
            on_the_wire()

    request.extensions = {**request.extensions, "trace": trace}


async def _bound(response: httpx2.Response) -> None:
    attempt = UNDER_WAY.get()
    if attempt is None:
        return
    attempt.cost = cost_in_headers(response.headers)
    most = attempt.most_bytes(streamed="event-stream" in response.headers.get("content-type", ""))
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    encoding = {name: response.headers.pop(name) for name in ("content-encoding",) if name in response.headers}
    response.stream = _Bounded(response.stream, encoding, most, is_error=response.is_error)
    if response.is_success and "text/html" in response.headers.get("content-type", ""):
        page = await response.aread()
        raise page_error(page_title(page.decode("utf-8", "replace")) or "no title")


class _Bounded(httpx2.AsyncByteStream):
    """A decompressed body with a size limit: a longer reply raises, a longer error is cut."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: dict[str, str], most: int, *, is_error: bool) -> None:
        self._stream = stream
        self._encoding = encoding
        self._most = most
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        coded = httpx2.Response(200, headers=self._encoding, stream=self._stream) if self._encoding else None
        async for chunk in self._stream if coded is None else coded.aiter_bytes():
            read += len(chunk)
            if read > self._most:
                if self._is_error:
                    return
                raise ReplyTooLongError(f"the reply has more than {self._most:,} bytes, which its limit can't fill")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
