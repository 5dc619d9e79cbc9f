"""Sessions and back ends for every kind of kernel: what happens when a cell, a kernel or a caller ends early."""

from __future__ import annotations

import asyncio
import shutil
import time
from dataclasses import replace
from pathlib import Path

from labmates.sandboxes.base import CodeResult, CodeStatus, SandboxError
from labmates.sandboxes.client import IMAGE_BYTES, IMAGES_PER_CELL, Cell, KernelClient
from labmates.sandboxes.folders import new_folder, remove_folder, sweep_folders
from labmates.sandboxes.process import KernelProcess, Launcher

START_SECONDS = 60.0
"""How long a kernel may take to start: over a minute means that it never will, even on a busy machine."""

_GONE = "All variables and files of earlier calls are gone; only `df` has been loaded again."


class KernelSandbox:
    """One agent's session: a kernel, and another one when that is lost.

    Parameters
    ----------
    launcher
        Starts the kernels.
    data
        CSV file of the data set; a private copy of it is made at the start.
    """

    def __init__(self, launcher: Launcher, data: Path) -> None:
        self._launcher = launcher
        self._data = data
        self._folder: Path | None = None
        self._starts = 0
        self._process: KernelProcess | None = None
        self._client: KernelClient | None = None
        self._lock = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the session.

        Raises
        ------
        SandboxError
            If the data can't be read or no kernel can be started.
        """
        self._folder = new_folder()
        try:
            self._data = Path(shutil.copyfile(self._data, self._folder / "data.csv"))
            self._data.chmod(0o644)  # the kernel may have another user id; the folder above it is private
        except OSError as error:
            raise SandboxError(f"the data file can't be copied: {error}") from error
        await self._start_kernel()

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run `code`; see `labmates.sandboxes.base.Sandbox.run`."""
        started = time.perf_counter()
        async with self._lock:
            result = await self._run(code, timeout)
        return replace(result, seconds=time.perf_counter() - started)

    async def close(self) -> None:
        """End the session and remove what it left; goes on even if the caller is cancelled meanwhile."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left of it."""
        return self._closing is not None and self._closing.done()

    async def _close(self) -> None:
        try:
            await self._stop_kernel()
        finally:
            if self._folder is not None:
                remove_folder(self._folder)

    async def _run(self, code: str, timeout: float) -> CodeResult:
        process, client = self._process, self._client
        if process is None or client is None or process.exited.is_set():
            why = "an earlier call was cut off" if process is None else process.ending()
            await self._replace_kernel()
            note = f"Python had ended since the last call ({why}), so this code was not run. {_GONE}"
            return CodeResult("died", "", state_lost=True, note=note)
        try:
            cell = await client.run(code, timeout)
        except BaseException:  # cancelled, most likely: what the kernel is doing now is of no use to anyone
            await self._stop_kernel()
            raise
        why = process.ending() if cell.ending == "died" else ""
        if cell.ending not in ("finished", "interrupted"):
            await self._replace_kernel()
        return _result(cell, timeout, why)

    async def _replace_kernel(self) -> None:
        await self._stop_kernel()
        await self._start_kernel()

    async def _start_kernel(self) -> None:
        try:
            await self._try_start()
        except SandboxError:
            await self._try_start()

    async def _try_start(self) -> None:
        if self._closing is not None or self._folder is None:
            raise SandboxError("the session is closed")
        self._starts += 1
        folder = self._folder / str(self._starts)
        folder.mkdir()
        try:
            self._process = await self._launcher.launch(folder, self._data)
            if self._closing is not None:
                raise SandboxError("the session was closed")
            self._client = KernelClient(self._process)
            await self._client.wait_until_ready(START_SECONDS)
        except BaseException:
            await self._stop_kernel()
            raise

    async def _stop_kernel(self) -> None:
        process, client = self._process, self._client
        self._process = self._client = None
        try:
            if process is not None:
                await process.stop()
        finally:  # after the process, so that whoever waits for an answer learns of its end, not of closed sockets
            if client is not None:
                client.close()


class KernelBackend:
    """A back end whose sessions are kernels.

    Parameters
    ----------
    name
        The back end's name, as it is recorded.
    launcher
        Starts the kernels.
    """

    def __init__(self, name: str, launcher: Launcher) -> None:
        self.name = name
        self._launcher = launcher
        self._sessions: set[KernelSandbox] = set()
        self._closed = False
        self._swept = False

    async def open(self, data: Path) -> KernelSandbox:
        """Start a session; see `labmates.sandboxes.base.SandboxBackend.open`.

        May run as a task long before the session is needed; cancelling it leaves nothing behind.
        """
        if self._closed:
            raise SandboxError("the back end is closed")
        if not self._swept:
            self._swept = True
            sweep_folders()
        session = KernelSandbox(self._launcher, data)
        self._sessions = {known for known in self._sessions if not known.is_closed} | {session}
        try:
            await session.start()
        except BaseException:
            await session.close()
            raise
        return session

    async def close(self) -> None:
        """Close every session, also those that are still being opened."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in self._sessions))


def _result(cell: Cell, timeout: float, why: str) -> CodeResult:
    """Put into words what came of a cell; `why` says how the kernel ended if it died."""
    status: CodeStatus = "error" if cell.failed else "ok"
    notes: list[str] = []
    lost = cell.ending not in ("finished", "interrupted")
    if cell.ending in ("interrupted", "stuck"):
        status = "timeout"
        notes.append(f"The code was stopped after {timeout:g} s, the time limit of one call.")
    if cell.ending == "interrupted":
        notes.append("Variables are kept.")
    elif cell.ending == "stuck":
        notes.append(f"It did not react to the interrupt, so Python was restarted. {_GONE}")
    elif cell.ending == "flood":
        status = "died"
        notes.append(f"The code sent more output than a call may, so Python was restarted. {_GONE}")
    elif cell.ending == "died":
        status = "died"
        notes.append(f"Python ended ({why}) and was restarted. {_GONE}")
    if cell.images_left_out:
        limits = f"at most {IMAGES_PER_CELL} per call, {IMAGE_BYTES >> 20} MB each"
        notes.append(f"Figures left out: {cell.images_left_out} ({limits}).")
    if cell.output_lost:
        notes.append("Some output was too large and was lost.")
    text, dropped = cell.output.finish(cell.dropped_inside)
    return CodeResult(status, text, dropped, tuple(cell.images), lost, " ".join(notes))
