"""Serving the viewer on this machine, until it is stopped."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from labmates.errors import UsageError
from labmates.records.store import Store
from labmates.viewer.app import make_app
from labmates.viewer.security import LOOPBACK, new_token

USUAL_PORT = 8642
"""Taken unless another one is asked for, so that addresses stay the same; any free one if it is taken."""
_STOP_SECONDS = 3
_MOST_REQUESTS = 128


def open_socket(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on this machine alone.

    Parameters
    ----------
    port
        0 for any free one; None for the usual one, or any free one if that is taken.

    Raises
    ------
    UsageError
        If the host is not this machine's own, or the port can't be had.
    """
    if host not in LOOPBACK:
        raise UsageError(
            f"the viewer listens on this machine alone ({', '.join(LOOPBACK)}), not on '{host}'; from another machine, "
            f"reach it through a tunnel with the same port: ssh -L {port or USUAL_PORT}:127.0.0.1:{port or USUAL_PORT} "
            "THIS_MACHINE"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [USUAL_PORT, 0] if port is None else [port]
    for at, number in enumerate(tried):
        opened = socket.socket(family, socket.SOCK_STREAM)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((host, number))
            opened.listen(128)
        except OSError as error:
            opened.close()
            if at + 1 < len(tried):
                continue
            why = error.strerror or str(error)
            raise UsageError(
                f"can't listen on {host}:{number}: {why}; give another --port, or 0 for any free one"
            ) from error
        return opened
    raise AssertionError("one of them was tried last")


def make_server(app: ASGIApp) -> uvicorn.Server:
    """Return what serves the application, and says nothing of itself."""
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
    """Serve the viewer until Ctrl-C.

    Parameters
    ----------
    browser
        Open the page in the user's browser.
    path
        The page.
    tell
        Told the address, with the token.
    """
    host, port = listening.getsockname()[:2]
    token, once = new_token(), new_token() if browser else ""
    server = make_server(make_app(store, token=token, port=port, once=once))
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
    tell(f"{address}?token={token}")
    if browser:
        opening = threading.Timer(0.5, _open, [f"{address}?token={once}"])
        opening.daemon = True
        opening.start()
    with suppress(KeyboardInterrupt):  # the server has ended by then, and says so by the signal that it got
        server.run(sockets=[listening])


def _open(address: str) -> None:
    with suppress(webbrowser.Error):
        webbrowser.open(address)
