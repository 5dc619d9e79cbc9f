"""What the workers of a session share, with their children: each thing is made by the first that needs it."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
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


@contextmanager
def keeping(name: str) -> Iterator[Path]:
    """As `making`, for what the checkout keeps until the code that makes it changes: of the packages and of tests."""
    folder = ROOT / "build" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = folder / f"{name}-{_code()}"
        for old in {*folder.glob(f"{name}-*")} - {kept}:
            shutil.rmtree(old)
        yield kept


@cache
def _code() -> str:
    """The hash of all that runs are made by; plug-ins that are installed elsewhere take no part."""
    found = hashlib.sha256()
    for root in ("labmates", "packages", "tests/support"):
        for path in sorted(
            path for path in (ROOT / root).rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ):
            found.update(f"{path.relative_to(ROOT)} {path.stat().st_size} ".encode() + path.read_bytes())
    return found.hexdigest()[:16]


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
