"""The back ends under test, and what a session of theirs could leave behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from labmates.sandboxes.bubblewrap import BubblewrapLauncher
from labmates.sandboxes.local import PlainLauncher
from labmates.sandboxes.session import KernelBackend

# A further back end joins every test of this folder by one line here and one in `make_backend`.
BACKENDS = [pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")), pytest.param("unsafe-local")]


def make_backend(name: str) -> KernelBackend:
    return KernelBackend(name, BubblewrapLauncher() if name == "bubblewrap" else PlainLauncher())


def leftovers(owner: int | None = None) -> set[str]:
    """Return what sessions of `owner`, by default this process, have left: processes and folders."""
    mark = f"-{owner or os.getpid()}-"
    found = {f"folder {path}" for path in Path(tempfile.gettempdir()).glob(f"labmates-sandbox-*{mark}*")}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "labmates-sandbox-" in command and mark in command:
            found.add(f"process {path.parent.name} {command[:60]}")
    return found


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def wait_until_gone(owner: int | None = None, what: str = "") -> None:
    """Wait until nothing (or nothing of the kind `what`) is left.

    A namespace is taken down a moment after its first process.
    """
    left: list[str] = []
    for _ in range(400):
        left = [item for item in leftovers(owner) if item.startswith(what)]
        if not left:
            return
        await asyncio.sleep(0.025)
    raise AssertionError(f"left over: {left}")
