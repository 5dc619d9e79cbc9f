"""HTTP clients of model calls: bounds on replies, and the proxies of the environment.

The transport tells the current attempt when its request is on the wire.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

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
        transport=EnvironmentTransport(ssl_context, is_local=is_local),
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
_PROXY_AUTHENTICATION: Final = 407


class ConnectionFault(httpx2.ConnectError):
    """No connection, for a reason in the environment of this program; its text has the remedy."""


class EnvironmentTransport(httpx2.AsyncBaseTransport):
    """Sends each request directly, or by the proxy that the environment names for its address; a local one directly.

    `context` returns the TLS context at the first request that needs it.
    """

    def __init__(self, context: Callable[[], ssl.SSLContext], *, is_local: bool = False) -> None:
        self._context = context
        self._is_local = is_local
        self._routes: dict[tuple[Proxy | None, str], httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the head of its response.

        Raises `UsageError` if a variable of the environment is unusable.
        """
        proxy = None if self._is_local else proxy_of(request.url)
        request.extensions = {**request.extensions, "trace": _traced}
        try:
            response = await self._route(proxy, request.url.scheme).handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                remedy = "if you trust the server, name the file with its certificate (PEM) in SSL_CERT_FILE"
                raise ConnectionFault(f"{error}; {remedy}") from None
            if proxy is None:
                raise
            raise _proxy_fault(proxy, request.url, str(error) or "no answer in time") from None
        except httpx2.LocalProtocolError:  # its text has the header, which may be a key
            raise httpx2.LocalProtocolError("a header of the request holds a line break") from None
        if proxy is not None and response.status_code == _PROXY_AUTHENTICATION:
            await response.aclose()
            raise _proxy_fault(proxy, request.url, "it wants a name and a password, or refuses them")
        return response

    def _route(self, proxy: Proxy | None, scheme: str) -> httpx2.AsyncHTTPTransport:
        if (proxy, scheme) not in self._routes:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS)
            is_plain = scheme == "http" and (proxy is None or not proxy.url.startswith("https:"))
            self._routes[proxy, scheme] = httpx2.AsyncHTTPTransport(
                verify=False if is_plain else self._context(), proxy=None if proxy is None else proxy.url, limits=limits
            )
        return self._routes[proxy, scheme]

    async def aclose(self) -> None:
        """Close all connections."""
        for route in self._routes.values():
            await route.aclose()


def _proxy_fault(proxy: Proxy, url: httpx2.URL, reason: str) -> ConnectionFault:
    return ConnectionFault(
        f"{proxy} failed: {reason}; correct {proxy.variable}, or exempt the server: {exemption(url)}"
    )


async def _traced(event: str, _info: dict[str, Any]) -> None:
    if event.endswith("send_request_headers.started"):
        on_the_wire()
