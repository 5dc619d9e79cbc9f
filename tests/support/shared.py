"""What the workers of a session share, with their children: each thing is made by the first that needs it."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.plugins import ROOT

_VARIABLE = "SHARED_BY_TESTS"
_START_SECONDS = 500
"""Importing the whole package takes seconds of a processor, and a busy machine gives few."""


def _session_folder() -> Path:
    """A folder that the first process of a session makes; not below pytest's, as the paths of sockets must be short."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="labmates-tests-")
        atexit.register(shutil.rmtree, os.environ[_VARIABLE], ignore_errors=True)
    return Path(os.environ[_VARIABLE])


FOLDER = _session_folder()


@contextmanager
def making(name: str) -> Iterator[Path]:
    """Give the path of something shared, which is there or is to be made now: nobody else makes it meanwhile."""
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield FOLDER / name


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
    with making(name) as address:
        if not address.exists():
            subprocess.run(
                [*command, str(address)],
                cwd=ROOT, env=environment(), stdin=subprocess.DEVNULL, check=True, timeout=_START_SECONDS,
            )  # fmt: skip
    return address
