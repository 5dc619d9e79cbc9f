"""HTTP clients of model calls: bounds on replies, connections by `aiohttp`, and the proxies of the environment.

`aiohttp` costs about half of the processor time of the default transport, which parses in Python and polls each idle
connection at each request. The transports tell the current attempt when its request is on the wire.
"""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import aiohttp
import httpx2

from labmates.errors import UsageError, without_password
from labmates.models.completions import page_error
from labmates.models.error_bodies import page_title
from labmates.models.failures import BrokenReplyError
from labmates.models.options import ModelOptions
from labmates.models.provider_words import cost_in_headers
from labmates.models.sending import UNDER_WAY, on_the_wire


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


def new_client(options: ModelOptions, *, is_local: bool = False) -> httpx2.AsyncClient:
    """A client for the running event loop, to be closed by the caller.

    It bounds the reply to the current attempt, and refuses pages in HTML. A local one uses no proxy.
    """
    return httpx2.AsyncClient(
        transport=DirectTransport(ssl_context) if is_local else transport(),
        timeout=patience(options),
        follow_redirects=True,
        event_hooks={"response": [_bound]},
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
                raise BrokenReplyError(f"the reply has more than {self._most:,} bytes, which its limit can't fill")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


_SCHEMES: Final = ("http", "https", "socks5", "socks5h")
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Proxy:
    """A proxy: its URL, which may hold a password, and the variable that names it."""

    url: str
    variable: str

    def __str__(self) -> str:
        return f"the proxy {without_password(self.url)} of {self.variable}"


def proxy_of(url: httpx2.URL) -> Proxy | None:
    """The proxy for requests to `url`; None if they go directly.

    ``HTTP_PROXY`` or ``HTTPS_PROXY`` by the URL's scheme, else ``ALL_PROXY``; lower case takes precedence. ``NO_PROXY``
    exempts hosts, domains with their subdomains, addresses and networks, each with or without a port, or all (``*``).
    Raises `UsageError` if the variable names no usable proxy.
    """
    variable, value = next(_settings(f"{url.scheme}_proxy", "all_proxy"), ("", ""))
    if not value or _is_exempt(url):
        return None
    proxy = Proxy(value if "://" in value else f"http://{value}", variable)
    remedy = f"; set it to an address such as http://127.0.0.1:3128, unset it, or exempt the server: {exemption(url)}"
    try:
        parsed = httpx2.URL(proxy.url)
    except httpx2.InvalidURL:
        raise UsageError(f"{variable} has the malformed address '{without_password(value)}'{remedy}") from None
    if parsed.scheme not in _SCHEMES or not parsed.host:
        raise UsageError(f"{variable}: '{without_password(value)}' is not the address of a proxy{remedy}")
    if parsed.scheme.startswith("socks") and find_spec("socksio") is None:
        raise UsageError(f"{variable}: a SOCKS proxy needs the package socksio (pip install socksio){remedy}")
    return proxy


def exemption(url: httpx2.URL) -> str:
    """The setting that exempts a server from proxies."""
    return f"NO_PROXY={url.host}"


def _settings(*names: str) -> Iterator[tuple[str, str]]:
    for name in names:
        # An empty variable in lower case switches off the one in upper case.
        variable = name if name in os.environ else name.upper()
        if value := os.environ.get(variable, "").strip():
            yield variable, value


def _is_exempt(url: httpx2.URL) -> bool:
    _, entries = next(_settings("no_proxy"), ("", ""))
    port = url.port or _PORTS.get(url.scheme)
    return any(_covers(entry.lower(), url.host, port) for entry in re.split(r"[,\s]+", entries))


def _covers(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    entry = entry.rpartition("://")[2]
    with suppress(ValueError):
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    name, _, wanted = entry.rpartition(":") if re.search(r":\d+$", entry) else (entry, "", "")
    name = name.strip("[]").removeprefix("*").lstrip(".")
    return wanted in ("", str(port)) and (host == name or host.endswith(f".{name}"))


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
        if proxy is not None:
            request.extensions = {**request.extensions, "trace": _sent_by_proxy}
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


async def _sent(*_: object) -> None:
    on_the_wire()


async def _sent_by_proxy(event: str, _info: dict[str, Any]) -> None:
    if event.endswith("send_request_headers.started"):
        on_the_wire()


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
