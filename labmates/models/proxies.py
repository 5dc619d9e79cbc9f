"""Proxies of model calls: those of the environment's variables, as other programs read them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from typing import Final

import httpx2

from labmates.errors import UsageError
from labmates.util.safe_text import without_password

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
