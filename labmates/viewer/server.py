"""The viewer's server on this machine."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from labmates.records.store import Store
from labmates.util.loopback import address_of
from labmates.viewer.app import make_app
from labmates.viewer.security import new_token

USUAL_PORT = 8642
"""Default port, for stable addresses; any free port if it is in use."""
_STOP_SECONDS = 3
_MOST_REQUESTS = 128


def make_server(app: ASGIApp) -> uvicorn.Server:
    """A server for the application, without log lines."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        ws="none",
        limit_concurrency=_MOST_REQUESTS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)


def serve(
    store: Store,
    listening: socket.socket,
    *,
    browser: bool,
    path: str = "/",
    tell: Callable[[str], None],
) -> None:
    """Serve the viewer until Ctrl-C; with `browser`, open the page `path`. `tell` receives the address and token."""
    port = listening.getsockname()[1]
    token, once = new_token(), new_token() if browser else ""
    server = make_server(make_app(store, token=token, port=port, once=once))
    address = f"{address_of(listening)}{path}"
    tell(f"{address}?token={token}")
    if browser:
        opening = threading.Timer(0.5, _open, [f"{address}?token={once}"])
        opening.daemon = True
        opening.start()
    with suppress(KeyboardInterrupt):  # uvicorn re-raises the signal after its shutdown
        server.run(sockets=[listening])


def _open(address: str) -> None:
    with suppress(webbrowser.Error):
        webbrowser.open(address)
