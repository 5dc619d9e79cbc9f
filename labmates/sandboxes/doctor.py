"""Diagnosis of the sandboxes on this machine, with remedies."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from labmates.errors import LabmatesError
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.engine import connect, docker_errors, explain_docker_error
from labmates.util.loops import run_async

ISOLATED: Final = ("docker", "bubblewrap")
"""The isolated sandboxes, best first."""
_LIMITS: Final = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processor time"}


@dataclass(frozen=True)
class Trial:
    """A sandbox that was tried: whether it works, and how fast, or why not and what to do."""

    sandbox: str  # one of `ISOLATED`
    works: bool
    text: str


def examine() -> Iterator[Trial]:
    """Yield the trial of each isolated sandbox."""
    for name in ISOLATED:
        try:
            if name == "docker":
                _check_limits()
            seconds = _tried(name)
        except LabmatesError as error:
            yield Trial(name, False, str(error))
        else:
            yield Trial(name, True, f"works; the first answer came after {seconds:.1f} s")


def taken_by_auto() -> tuple[str | None, str]:
    """The sandbox that ``--sandbox auto`` chooses for a model's code, or None, and a remark."""
    try:
        choice = choose_backend("auto", trusted_code=False)
    except LabmatesError as error:
        return None, str(error)
    run_async(choice.backend.close)
    return choice.backend.name, choice.note or ""


def _tried(name: str) -> float:
    """The seconds until the first answer in a sandbox."""

    async def summed(data: Path) -> str:
        backend = choose_backend(name, trusted_code=False).backend
        try:
            return (await (await backend.open(data)).run("print(df['a'].sum())")).text.strip()
        finally:
            await backend.close()

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        data.write_text("a\n1\n2\n")
        if (answer := asyncio.run(summed(data))) != "3":
            raise LabmatesError(f"1 + 2 is {answer!r} there")
    return time.perf_counter() - start


def _check_limits() -> None:
    """Raise `LabmatesError` if the Docker engine can't limit what a sandbox uses; containers would only warn."""
    with closing(connect()) as client:
        try:
            info = client.info()
        except docker_errors() as error:
            raise LabmatesError(explain_docker_error(error)) from error
    if missing := [what for name, what in _LIMITS.items() if info.get(name) is False]:
        raise LabmatesError(
            f"the engine can't limit {', '.join(missing)}: turn its control groups on (for memory, boot with "
            "cgroup_enable=memory; a rootless engine needs cgroup v2 and systemd, see "
            "https://docs.docker.com/engine/security/rootless/)"
        )
