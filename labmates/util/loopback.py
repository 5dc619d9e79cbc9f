"""Sockets that only this machine can reach."""

from __future__ import annotations

import socket
from typing import Final

from labmates.errors import UsageError

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Hosts on which labmates' servers may listen."""


def open_socket(host: str, port: int | None, *, what: str, usual: int) -> socket.socket:
    """Open a socket that listens on this machine alone.

    `port` 0 takes any free port; None takes the `usual` one, or any free one if that is in use. `what` names the server
    in errors. Raises `UsageError` if the host is not a loopback address, or the port is unavailable.
    """
    if host not in LOOPBACK:
        raise UsageError(
            f"the {what} listens on this machine alone ({', '.join(LOOPBACK)}), not on '{host}'; from another machine, "
            f"use a tunnel with the same port: ssh -L {port or usual}:127.0.0.1:{port or usual} THIS_MACHINE"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tried = [usual, 0] if port is None else [port]
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
    raise AssertionError("unreachable: the last port returns or raises")


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
