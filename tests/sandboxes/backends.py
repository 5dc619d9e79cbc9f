"""The back ends under test, and what a session of theirs could leave behind."""

from __future__ import annotations

import asyncio
import gc
import os
import tempfile
from collections.abc import Collection
from pathlib import Path

import pytest

from labmates.sandboxes.bubblewrap import BubblewrapLauncher
from labmates.sandboxes.container import ContainerLauncher
from labmates.sandboxes.engine import GVISOR, OWNER_LABEL, SANDBOX_LABEL, connect
from labmates.sandboxes.local import PlainLauncher
from labmates.sandboxes.process import Launcher
from labmates.sandboxes.session import KernelBackend

# A further back end joins every test of this folder by one line here and one in `make_launcher`.
ISOLATED = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
]
BACKENDS = [
    *ISOLATED,
    pytest.param("unsafe-local", marks=pytest.mark.slow("tests/sandboxes/test_sandbox_conformance.py")),
]
"""The quick tests leave out plain processes, which sessions serve as they serve bubblewrap, and many runs use."""


def make_launcher(name: str) -> Launcher:
    if name in ("docker", "gvisor"):
        return ContainerLauncher(connect(), runtime=GVISOR if name == "gvisor" else None)
    return BubblewrapLauncher() if name == "bubblewrap" else PlainLauncher()


def make_backend(name: str) -> KernelBackend:
    return KernelBackend(name, make_launcher(name))


def leftovers(name: str, owner: int | None = None) -> set[str]:
    """Return what sessions of `owner`, by default this process, have left: containers, processes and folders."""
    mark = f"-{owner or os.getpid()}-"
    found = {f"folder {path}" for path in Path(tempfile.gettempdir()).glob(f"labmates-sandbox-*{mark}*")}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "labmates-sandbox-" in command and mark in command:
            found.add(f"process {path.parent.name} {command[:60]}")
    return found | (_containers(mark) if name in ("docker", "gvisor") else set())


def _containers(mark: str) -> set[str]:
    client = connect()
    try:
        summaries = client.api.containers(all=True, filters={"label": SANDBOX_LABEL})
    finally:
        client.close()
    return {
        f"container {summary['State']} {summary['Id'][:12]}"
        for summary in summaries
        if mark in summary["Labels"].get(OWNER_LABEL, "")
    }


def descriptors() -> int:
    """The number of open descriptors, without those that only garbage of earlier tests holds."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


async def wait_until_gone(
    name: str, owner: int | None = None, what: str = "", spared: Collection[str] = frozenset()
) -> None:
    """Wait until nothing (or nothing of the kind `what`) is left but what is `spared`.

    A namespace is taken down a moment after its first process.
    """
    left: list[str] = []
    for _ in range(2400):
        left = [item for item in leftovers(name, owner) if item.startswith(what) and item not in spared]
        if not left:
            return
        await asyncio.sleep(0.025)
    raise AssertionError(f"left over: {left}")
