"""Sessions and back ends for all kernels: the handling of cells, kernels and callers that end early."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from labmates.sandboxes.base import PATIENCE, CodeResult, CodeStatus, SandboxError
from labmates.sandboxes.client import IMAGE_BYTES, IMAGES_PER_CELL, Cell, KernelClient
from labmates.sandboxes.control import (
    FILES_PER_CALL,
    MOST_BYTES,
    SESSION_BYTES,
    Collected,
    Collector,
    Control,
    Kernel,
    listening,
)
from labmates.sandboxes.folders import in_thread, new_folder, remove_folder, sweep_folders
from labmates.sandboxes.process import Enclosure, Folders, Launcher, starting
from labmates.util.loops import running

START_SECONDS = 60.0
"""Time limit for the start of a kernel, even on a busy machine."""
_ENDING_SECONDS = 2.0  # time for an enclosure to end after its runner
_CROWD = 32  # processes that a call may leave running: enough for a pool of workers, too few for a fork bomb
_FOLDER_MODE = 0o755  # for other user ids; the parent folder is private


@dataclass(frozen=True)
class _Place:
    """The enclosure of kernels, with a connected runner."""

    enclosure: Enclosure
    control: Control
    folders: Folders

    async def leave(self) -> None:
        """Stop the enclosure and remove its files."""
        self.control.close()
        await self.enclosure.stop()
        await in_thread(remove_folder, self.folders.private)


class KernelSandbox:
    """One agent's session: a kernel, replaced when it is lost, and a private copy of the CSV file `data`."""

    def __init__(self, launcher: Launcher, data: Path | Awaitable[Path]) -> None:
        self._launcher = launcher
        self._data = data
        self._folder: Path | None = None
        self._places = 0
        self._place: _Place | None = None
        self._is_fresh = False  # no kernel has been started in the place
        self._kernel: Kernel | None = None
        self._client: KernelClient | None = None
        self._collector = Collector()
        self._spent = 0.0
        self._lock = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the session. Raises `SandboxError` if the data can't be read or no kernel can be started."""
        data = await in_thread(self._make_folders)
        async with running(self._copy(data)) as copying:
            await self._find_place(copying)

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run `code`; see `labmates.sandboxes.base.Sandbox.run`."""
        started = time.perf_counter()
        async with self._lock:
            result = await self._run(code, timeout)
        return replace(result, seconds=time.perf_counter() - started)

    async def close(self) -> None:
        """End the session and remove its files, even if the caller is cancelled meanwhile."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    @property
    def is_closed(self) -> bool:
        """Whether the session has ended completely."""
        return self._closing is not None and self._closing.done()

    async def _close(self) -> None:
        try:
            await self._leave_place()
        finally:
            if self._folder is not None:
                await in_thread(remove_folder, self._folder)

    def _make_folders(self) -> Path:
        self._folder = new_folder()
        return self._make_folder(self._folder / "data")

    async def _copy(self, folder: Path) -> None:
        data = self._data if isinstance(self._data, Path) else await self._data
        try:
            await asyncio.to_thread(shutil.copyfile, data, folder / "data.csv")
            (folder / "data.csv").chmod(0o644)
        except OSError as error:
            raise SandboxError(f"the data file can't be copied: {error}") from error

    async def _run(self, code: str, timeout: float) -> CodeResult:
        if self._is_fresh:
            await self._start_first()
        kernel, client = self._kernel, self._client
        if kernel is None or client is None or kernel.exited.is_set():
            why = "an earlier call was cut off" if kernel is None else await self._why(kernel)
            has_files = await self._replace_kernel()
            note = f"Python had ended since the last call ({why}), so this code was not run. {_gone(has_files)}"
            return CodeResult("died", "", state_lost=True, note=note)
        try:
            cell = await client.run(code, timeout, self._clock)
        except BaseException:  # most likely cancelled: the kernel's current work is useless
            self._drop_kernel()
            raise
        why = await self._why(kernel) if cell.ending == "died" else ""
        gone, collected = "", Collected()
        try:
            collected = await self._tidy_up(cell)
        except SandboxError:
            cell.ending = "stuck" if cell.ending == "interrupted" else cell.ending
            if cell.ending == "finished":
                cell.ending, why = "died", "its sandbox does not answer"
            await self._leave_place()
        kept = self._collector.within(cell.images)
        cell.images_left_out += len(cell.images) - len(kept)
        cell.images = kept
        if cell.ending not in ("finished", "interrupted"):
            gone = _gone(files_kept=await self._replace_kernel())
        return _result(cell, collected, timeout, why, gone)

    async def _clock(self) -> float:
        """The processor time of all kernels in the place; a runner that does not answer is given up."""
        if self._place is not None and not self._place.control.lost.is_set():
            try:
                spent = (await self._place.control.ask({"do": "spent"})).get("seconds")
            except SandboxError:
                self._place.control.close()
            else:
                self._spent = spent if isinstance(spent, float) else 0.0
        return self._spent

    async def _tidy_up(self, cell: Cell) -> Collected:
        """Fetch the files of a cell, after killing processes left by an interrupted cell, or too many processes."""
        if self._place is None or self._place.control.lost.is_set():
            return Collected()
        allowed = 0 if cell.ending == "interrupted" else _CROWD
        swept = await self._place.control.ask({"do": "sweep", "above": allowed})
        cell.crowd_ended = allowed > 0 and swept.get("ended") is True
        return await self._collector.collect(self._place.control)

    async def _why(self, kernel: Kernel) -> str:
        """The reason for the kernel's end; if its enclosure ended, the enclosure's reason."""
        if self._place is not None and self._place.control.lost.is_set():
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self._place.enclosure.ended(), _ENDING_SECONDS)
        return kernel.ending

    async def _replace_kernel(self) -> bool:
        """Start another kernel; True if the session's files still exist."""
        self._drop_kernel()
        if self._place is not None and self._place.enclosure.replaces_kernels and not self._place.control.lost.is_set():
            with contextlib.suppress(SandboxError):
                await self._try_kernel()
                return True
        await self._find_place()
        await self._start_first()
        return False

    async def _start_first(self) -> None:
        """Start the first kernel in a place, as late as possible, so that it inherits the runner's imports."""
        try:
            await self._try_kernel()
        except SandboxError:
            await self._find_place()
            await self._try_kernel()

    async def _find_place(self, data: asyncio.Task[None] | None = None) -> None:
        try:
            await self._try_place(data)
        except SandboxError:
            if self._closing is not None or (data is not None and data.done() and data.exception() is not None):
                raise
            await self._try_place(data)

    async def _try_place(self, data: asyncio.Task[None] | None) -> None:
        await self._leave_place()
        if self._closing is not None or self._folder is None:
            raise SandboxError("the session is closed")
        self._collector.forget()
        try:
            self._place = await self._open_place(self._folder)
            if data is not None:
                await data
            if self._closing is not None:
                raise SandboxError("the session was closed")
            if wrong := (await self._place.control.ask({"do": "load"}, START_SECONDS)).get("text"):
                raise SandboxError(f"the data set can't be read: {wrong}")
            self._is_fresh = True
        except BaseException:
            await self._leave_place()
            raise

    async def _open_place(self, folder: Path) -> _Place:
        """Start an enclosure and wait for its runner."""
        self._places += 1
        private = await in_thread(self._make_folder, folder / str(self._places))
        folders = Folders(private, await in_thread(self._make_folder, private / "run"), folder / "data")
        async with listening(folders.control) as listener:
            enclosure = await self._launcher.launch(folders)
            try:
                connection = await _accept(listener, enclosure)
                try:
                    await in_thread(folders.control.unlink, missing_ok=True)  # hidden from code inside
                except BaseException:
                    connection.close()
                    raise
            except BaseException:
                await enclosure.stop()
                raise
        control = Control(connection, folders.run if enclosure.reach else private, folders.run, enclosure.reach)
        return _Place(enclosure, control, folders)

    async def _try_kernel(self) -> None:
        self._is_fresh = False
        if self._place is None:
            raise SandboxError("the session is closed")
        try:
            self._kernel = await self._place.control.start_kernel()
            self._client = KernelClient(self._kernel)
            await self._client.wait_until_ready(START_SECONDS)
        except BaseException:
            self._drop_kernel()
            raise

    def _drop_kernel(self) -> None:
        """Abandon the kernel, which may still run."""
        kernel, client = self._kernel, self._client
        self._kernel = self._client = None
        if kernel is not None:
            kernel.end("it was given up")
        if client is not None:
            client.close()

    async def _leave_place(self) -> None:
        place, self._place = self._place, None
        try:
            if place is not None:
                await place.leave()
        finally:  # after the processes, so that waiting callers see their end, not closed sockets
            self._drop_kernel()

    @staticmethod
    def _make_folder(folder: Path) -> Path:
        with starting():
            folder.mkdir()
            folder.chmod(_FOLDER_MODE)
        return folder


async def _accept(listener: socket.socket, enclosure: Enclosure) -> socket.socket:
    """Wait until the runner in the `enclosure` connects."""
    loop, knocked = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, knocked.set)
    try:
        async with running(knocked.wait()) as knocking, running(enclosure.ended()) as ending:
            await asyncio.wait({knocking, ending}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            why = ending.result() if ending.done() else "it did not answer in time"
    finally:
        loop.remove_reader(listener)
    # No await from here on: a cancellation would leak the connection.
    if knocked.is_set():
        return listener.accept()[0]
    raise SandboxError(f"the Python kernel could not be started: {why}")


class KernelBackend:
    """A back end whose sessions are kernels of a `launcher`; `name` is recorded with runs."""

    def __init__(self, name: str, launcher: Launcher) -> None:
        self.name = name
        self._launcher = launcher
        self._sessions: set[KernelSandbox] = set()
        self._closed = False
        self._preparing: asyncio.Task[None] | None = None

    async def open(self, data: Path | Awaitable[Path]) -> KernelSandbox:
        """Start a session; see `labmates.sandboxes.base.SandboxBackend.open`.

        May run as a task long before the session is needed; a cancellation leaves nothing behind.
        """
        if self._closed:
            raise SandboxError("the back end is closed")
        if self._preparing is None or (self._preparing.done() and self._preparing.exception() is not None):
            self._preparing = asyncio.create_task(asyncio.to_thread(self._prepare))
        await asyncio.shield(self._preparing)
        if self._closed:
            raise SandboxError("the back end is closed")
        session = KernelSandbox(self._launcher, data)
        self._sessions = {known for known in self._sessions if not known.is_closed} | {session}
        try:
            await session.start()
        except BaseException:
            await session.close()
            raise
        return session

    async def libraries(self) -> Mapping[str, str]:
        """The versions of the libraries; see `labmates.sandboxes.base.SandboxBackend.libraries`."""
        return await in_thread(self._launcher.libraries)

    async def close(self) -> None:
        """Close all sessions, including those that are still opening."""
        self._closed = True
        if self._preparing is not None:
            await asyncio.wait({self._preparing})
        await asyncio.gather(*(session.close() for session in self._sessions))
        self._launcher.close()

    def _prepare(self) -> None:
        sweep_folders()
        self._launcher.prepare()


_ALL = f"{SESSION_BYTES >> 20} MB of figures and files per session"


def _gone(files_kept: bool) -> str:
    files = "variables of earlier calls are gone (files are still there)"
    what = files if files_kept else "variables and files of earlier calls are gone"
    return f"All {what}; only `df` has been loaded again."


def _result(cell: Cell, collected: Collected, timeout: float, why: str, gone: str) -> CodeResult:
    """The result of a cell with notes; `why` describes the kernel's end, and `gone` the losses with it."""
    status: CodeStatus = "error" if cell.failed else "ok"
    notes: list[str] = []
    if cell.ending in ("interrupted", "stuck"):
        status = "timeout"
        limit = f"{timeout * PATIENCE:g} s" if cell.waited else f"{timeout:g} s of processor time"
        notes.append(f"The code was stopped after {limit}, the limit of one call.")
    if cell.ending == "interrupted":
        notes.append("Variables are kept.")
    elif cell.ending == "stuck":
        notes.append(f"It did not react to the interrupt, so Python was restarted. {gone}")
    elif cell.ending == "flood":
        status = "died"
        notes.append(f"The code sent more output than a call may, so Python was restarted. {gone}")
    elif cell.ending == "died":
        status = "died"
        notes.append(f"Python ended ({why}) and was restarted. {gone}")
    if cell.crowd_ended:
        notes.append(f"It left more than {_CROWD} processes running; they were ended.")
    if cell.images_left_out:
        limits = f"at most {IMAGES_PER_CELL} per call, {IMAGE_BYTES >> 20} MB each; {_ALL}"
        notes.append(f"Figures left out: {cell.images_left_out} ({limits}).")
    if collected.left_out:
        limits = f"at most {FILES_PER_CALL} per call, {MOST_BYTES >> 20} MB each, no links; {_ALL}"
        notes.append(f"Files in out/ left out: {collected.left_out} ({limits}).")
    if cell.output_lost:
        notes.append("Some output was too large and was lost.")
    text, dropped = cell.output.finish(cell.dropped_inside)
    files = tuple(collected.files)
    return CodeResult(status, text, dropped, tuple(cell.images), files, bool(gone), " ".join(notes))
