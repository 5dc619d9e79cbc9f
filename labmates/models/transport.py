"""Connections of model calls: a transport for `httpx2` on `aiohttp`, and one that goes by proxies where it must.

The first costs about half of the processor time of the default transport, which parses in Python and polls each idle
connection at each request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Final

import aiohttp
import httpx2

from labmates.models.proxies import Proxy, exemption, proxy_of

if TYPE_CHECKING:
    import ssl
    from types import SimpleNamespace

IDLE_SECONDS: Final = 5.0
"""An idle connection is kept for this long."""
_LONGEST_HEADER: Final = 65_536
_PROXY_AUTHENTICATION: Final = 407
_CUT: Final = "peer closed connection without sending complete message body"
_ERRORS: Final[tuple[tuple[type[Exception], type[httpx2.TransportError], str], ...]] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout, "{0}"),
    (TimeoutError, httpx2.ReadTimeout, "{0}"),
    (aiohttp.ClientConnectorCertificateError, httpx2.ConnectError, "{0.certificate_error}"),
    (aiohttp.ClientConnectorError, httpx2.ConnectError, "connection failed: {0.os_error}"),
    (aiohttp.ServerDisconnectedError, httpx2.RemoteProtocolError, "Server disconnected without sending a response."),
    (aiohttp.ClientPayloadError, httpx2.RemoteProtocolError, _CUT),
    (aiohttp.ClientResponseError, httpx2.RemoteProtocolError, "{0.message}"),
    (aiohttp.NonHttpUrlClientError, httpx2.UnsupportedProtocol, "not an address of HTTP: {0}"),
    (Exception, httpx2.ReadError, "{0}"),
)
"""Errors of `aiohttp`, the narrower ones first, as those of `httpx2`, and their texts."""


class DirectTransport(httpx2.AsyncBaseTransport):
    """Sends requests of one event loop, without limit on connections; it has no proxies and no HTTP/2.

    `context` returns the TLS context at the first request that needs it.
    """

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the head of its response."""
        if self._session is None:
            self._session = _session()
        timeouts = request.extensions.get("timeout", {})
        connect, read = timeouts.get("connect"), timeouts.get("read")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
        context = self._context() if request.url.scheme == "https" else True
        with _errors_of_httpx2():
            # The session's own limit does not hold while a server does not take the request.
            async with asyncio.timeout(None if read is None else read + (connect or 0.0)):
                response = await self._session.request(
                    request.method,
                    str(request.url),
                    headers=[line for line in headers if line[0].lower() != "transfer-encoding"],
                    data=BytesIO(body) if (body := await request.aread()) else None,
                    allow_redirects=False,
                    ssl=context,
                    timeout=aiohttp.ClientTimeout(sock_connect=connect, sock_read=read),
                    trace_request_ctx=request.extensions.get("trace"),
                )
        reason = (response.reason or "").encode("ascii", "replace")
        return httpx2.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_Body(response),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class ConnectionFault(httpx2.ConnectError):
    """No connection, for a reason in the environment of this program; its text has the remedy."""


class EnvironmentTransport(httpx2.AsyncBaseTransport):
    """Sends each request directly, or by the proxy that the environment names for its address."""

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        self._context = context
        self._direct = DirectTransport(context)
        self._proxied: dict[Proxy, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the head of its response.

        Raises `UsageError` if a variable of the environment is unusable.
        """
        proxy = proxy_of(request.url)
        transport = self._direct if proxy is None else self._by(proxy)
        try:
            response = await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                remedy = "if you trust the server, name the file with its certificate (PEM) in SSL_CERT_FILE"
                raise ConnectionFault(f"{error}; {remedy}") from None
            if proxy is None:
                raise
            raise _proxy_fault(proxy, request.url, str(error) or "no answer in time") from None
        if proxy is not None and response.status_code == _PROXY_AUTHENTICATION:
            await response.aclose()
            raise _proxy_fault(proxy, request.url, "it wants a name and a password, or refuses them")
        return response

    def _by(self, proxy: Proxy) -> httpx2.AsyncHTTPTransport:
        if proxy not in self._proxied:
            limits = httpx2.Limits(max_connections=None, keepalive_expiry=IDLE_SECONDS)
            made = httpx2.AsyncHTTPTransport(verify=self._context(), proxy=proxy.url, limits=limits)
            self._proxied[proxy] = made
        return self._proxied[proxy]

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()


def _proxy_fault(proxy: Proxy, url: httpx2.URL, reason: str) -> ConnectionFault:
    return ConnectionFault(
        f"{proxy} failed: {reason}; correct {proxy.variable}, or exempt the server: {exemption(url)}"
    )


class _Body(httpx2.AsyncByteStream):
    """The body of a response; what arrived together comes as one piece."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx2():
            async for piece in self._response.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        self._response.release()  # closes the connection if the body was not read to its end


def _session() -> aiohttp.ClientSession:
    traces = aiohttp.TraceConfig()
    traces.on_request_headers_sent.append(_sent)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
        max_line_size=_LONGEST_HEADER,
        max_field_size=_LONGEST_HEADER,
        trace_configs=[traces],
    )


async def _sent(_: aiohttp.ClientSession, request: SimpleNamespace, __: aiohttp.TraceRequestHeadersSentParams) -> None:
    if (trace := request.trace_request_ctx) is not None:
        await trace("http11.send_request_headers.started", {})


@contextmanager
def _errors_of_httpx2() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        ours, text = next((ours, text) for theirs, ours, text in _ERRORS if isinstance(error, theirs))
        # The text of a cause would take the place of this one in the reason of a failed attempt.
        raise ours(text.format(error)) from None
    except ValueError:
        raise httpx2.LocalProtocolError("a header of the request holds a line break") from None
