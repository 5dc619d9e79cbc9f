"""Enclosures that are processes of this machine, isolated or plain, and the memory of their processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.folders import in_thread
from labmates.sandboxes.interpreter import FLAGS, local_libraries, local_modules, this_interpreter
from labmates.sandboxes.process import RUNNER, Folders, Limits, kernel_environment, starting
from labmates.sandboxes.warmup import Warmup, warm_up

_COMPLAINT_CHARS = 1_500
_WATCH_SECONDS = 0.25


class LocalEnclosure:
    """A process that leads a process group or a namespace of all others; `complaints` is the pipe that it writes to.

    `replaces_kernels` tells that the runner may kill all processes that it sees. With `memory`, it ends when all its
    processes together use more bytes.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], complaints: int, *, replaces_kernels: bool, memory: int | None
    ) -> None:
        self.replaces_kernels = replaces_kernels
        self.reach = ""
        self._exited = asyncio.Event()
        self._process = process
        self._complaints = complaints
        self._watch = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._watch, self._reap)
        self._watching = None if memory is None else asyncio.create_task(end_if_too_large(process.pid, memory))

    @classmethod
    async def start(
        cls,
        command: list[str],
        environment: dict[str, str],
        folder: Path,
        *,
        replaces_kernels: bool,
        memory: int | None = None,
    ) -> LocalEnclosure:
        """Start the process. Raises `SandboxError` if it can't be started."""
        # In a thread, since it waits for the new program. Bubblewrap dies with this thread, which the loop keeps.
        opening = asyncio.create_task(asyncio.to_thread(_open, command, environment, folder))
        try:
            return cls(*await asyncio.shield(opening), replaces_kernels=replaces_kernels, memory=memory)
        except asyncio.CancelledError:
            with contextlib.suppress(SandboxError):
                await cls(*await opening, replaces_kernels=replaces_kernels, memory=memory).stop()
            raise

    async def ended(self) -> str:
        """Wait for the process's end and describe it; see `labmates.sandboxes.process.Enclosure`."""
        await self._exited.wait()
        if self._watching is not None and self._watching.done() and not self._watching.cancelled():
            return "out of memory"
        code = self._process.returncode
        how = f"killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"exit status {code}"
        return f"{how}. {self._complaint()}".rstrip()

    async def stop(self) -> None:
        """Kill the process with its group."""
        try:
            if not self._exited.is_set():
                self._kill_group()
                await self._exited.wait()
        finally:
            self._reap()
            if self._complaints >= 0:
                os.close(self._complaints)
                self._complaints = -1

    def _complaint(self) -> str:
        """The end of the output of a failed start."""
        if self._complaints < 0:
            return ""
        os.set_blocking(self._complaints, False)
        try:
            written = os.read(self._complaints, 1 << 16).decode(errors="replace").strip()
        except BlockingIOError:
            return ""
        return written[-_COMPLAINT_CHARS:]

    def _reap(self) -> None:
        """Collect the process, which has ended or is ending."""
        if self._watch < 0:
            return
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        self._watch = -1
        if self._watching is not None:
            self._watching.cancel()
        self._kill_group()  # before the wait, until which its number can't be reused
        self._process.wait()
        self._exited.set()

    def _kill_group(self) -> None:
        kill_group(self._process.pid)


def kill_group(leader: int) -> None:
    """Kill the processes of a group, if there are any."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


async def end_if_too_large(leader: int, most: int) -> None:
    """Wait until a process and its descendants use more than `most` bytes, and kill its group."""
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        if await asyncio.to_thread(exceeds, leader, most):
            kill_group(leader)
            return


def _open(command: list[str], environment: dict[str, str], folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process; returns it and the pipe that it writes to."""
    complaints, complain = os.pipe()
    try:
        with starting():
            process = subprocess.Popen(  # noqa: S603 - no shell, and a fixed command
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=complain,
                stderr=complain,
                start_new_session=True,
            )
    except SandboxError:
        os.close(complaints)
        raise
    finally:
        os.close(complain)
    return process, complaints


def runner_settings(limits: Limits, warmup: Warmup) -> dict[str, Any]:
    """The runner's common settings for local enclosures."""
    return {
        "memory": limits.memory,
        "file_bytes": limits.scratch,
        "open_files": limits.open_files,
        "processes": None,
        "modules": local_modules(),
        "fonts": str(warmup.fonts) if warmup.fonts else None,
    }


def local_environment(home: Path, temporary: Path, warmup: Warmup) -> dict[str, str]:
    """The whole environment of a local enclosure."""
    environment = {
        **kernel_environment(home, temporary),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join(map(str, this_interpreter().packages)),
    }
    if warmup.bytecode is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(warmup.bytecode)
    return environment


def kernel_command(runner: Path, settings: Path) -> list[str]:
    """The command of the runner in the folder `runner`."""
    return [str(this_interpreter().executable), *FLAGS, str(runner / "__main__.py"), str(settings)]


class LocalLauncher:
    """Starts processes of this machine."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def prepare(self) -> None:
        """Warm up; see `labmates.sandboxes.process.Launcher`."""
        warm_up()

    def libraries(self) -> Mapping[str, str]:
        """The versions on this machine; see `labmates.sandboxes.process.Launcher`."""
        return local_libraries()

    def close(self) -> None:
        """Nothing to close."""


class PlainLauncher(LocalLauncher):
    """Starts plain processes with limits and a private folder, but without isolation."""

    async def launch(self, folders: Folders) -> LocalEnclosure:
        """Start an enclosure; see `labmates.sandboxes.process.Launcher`."""
        warmup = warm_up()
        home, temporary = folders.private / "home", folders.private / "tmp"
        settings = {
            **runner_settings(self._limits, warmup),
            "control": str(folders.control),
            "data": str(folders.data / "data.csv"),
            "alone": False,
        }
        with starting():
            await in_thread(home.mkdir)
            await in_thread(temporary.mkdir)
            path = await in_thread(folders.write_settings, settings)
        environment = local_environment(home, temporary, warmup)
        return await LocalEnclosure.start(kernel_command(RUNNER, path), environment, home, replaces_kernels=False)


_PAGE = os.sysconf("SC_PAGE_SIZE")


def exceeds(pid: int, most: int) -> bool:
    """Whether a process and its descendants use more than `most` bytes, with shared pages counted once if possible.

    Counts memory files (``memfd_create``) too, which belong to no process; not System V segments and full sockets.
    """
    tree = list(_tree(pid))
    left = most - _memory_files(tree)
    # Exact sizes take milliseconds; resident sizes, which count shared pages repeatedly, are a quick upper bound.
    return sum(map(_resident, tree)) > left and sum(map(_part, tree)) > left


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _tree(int(child))


def _memory_files(tree: Iterable[int]) -> int:
    sizes: dict[tuple[int, int], int] = {}
    for pid in tree:
        with suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    if str(link.readlink()).startswith("/memfd:"):
                        status = link.stat()
                        sizes[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _part(pid: int) -> int:
    """The memory of a process with its share of shared pages, or with all of them if the share is unreadable."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return _resident(pid)
