"""Servers that all workers of a session share, with their children: each is started by the first that needs it."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.plugins import ROOT

_VARIABLE = "SHARED_SERVERS"
_START_SECONDS = 500
"""Importing the whole package takes seconds of a processor, and a busy machine gives few."""


def _session_folder() -> Path:
    """The folder of the sockets: made by the first process of a session, not below pytest's, as paths must be short."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="labmates-tests-")
        atexit.register(shutil.rmtree, os.environ[_VARIABLE], ignore_errors=True)
    return Path(os.environ[_VARIABLE])


FOLDER = _session_folder()


def shared_server(name: str, command: Sequence[str], environment: Callable[[], Mapping[str, str]]) -> Path:
    """The path of a server's socket.

    Parameters
    ----------
    command
        Starts the server, with the path of its socket as a last argument. It ends when the server is ready, which goes
        on in a process of its own until its socket is removed.
    environment
        The environment of the command.
    """
    address = FOLDER / name
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            subprocess.run(
                [*command, str(address)],
                cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, check=True, timeout=_START_SECONDS,
            )  # fmt: skip
    return address
