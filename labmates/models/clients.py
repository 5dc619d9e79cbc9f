"""HTTP clients for OpenAI's protocol."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2

from labmates.models.options import ModelOptions


@cache
def ssl_context() -> ssl.SSLContext:
    """Return the one for all clients: reading the certificates takes longer than all else that a new client does."""
    return httpx2.create_ssl_context()


def new_client(options: ModelOptions) -> httpx2.AsyncClient:
    """Return a client for the running event loop, to be closed by the caller."""
    return httpx2.AsyncClient(
        # No bound on connections: the hub bounds the calls, and waiting for a full pool would count as a slow server.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=options.max_concurrent_calls),
        timeout=options.call_timeout,
        follow_redirects=True,
        verify=ssl_context(),
    )


@cache
def synchronous_client() -> httpx2.Client:
    """Return a client that never sends anything: without it LangChain builds one for each base URL."""
    return httpx2.Client(verify=ssl_context())
