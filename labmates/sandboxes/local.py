"""Kernels that are processes of this machine: what is common to the isolated and the plain ones."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.folders import remove_folder
from labmates.sandboxes.interpreter import FLAGS, this_interpreter
from labmates.sandboxes.process import PORTS, Limits
from labmates.sandboxes.warmup import Warmup, warm_up

RUNNER = Path(__file__).with_name("runner.py")
_COMPLAINT_CHARS = 1_500
_ONE_THREAD = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS", "LOKY_MAX_CPU_COUNT",
)  # fmt: skip


class LocalProcess:
    """A kernel's process and its listening sockets.

    The sockets are made here and handed down as descriptors. So they can be connected to before the kernel is there,
    and the kernel needs no folder of the host that it could write to.

    Parameters
    ----------
    folder
        Private folder for its files; removed by `stop`.
    """

    def __init__(self, folder: Path) -> None:
        self.sockets = str(folder / "k")
        self.key = secrets.token_hex(16)
        self.exited = asyncio.Event()
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._watch = self._stderr = -1

    def start(self, command: list[str], environment: dict[str, str], settings: dict[str, Any], cwd: Path) -> None:
        """Start `command`, which runs the runner, after writing its `settings`.

        Raises
        ------
        SandboxError
            If it can't be started.
        """
        self._stderr, complaints = os.pipe()
        try:
            with self._listeners() as listeners:
                descriptors = {channel: listener.fileno() for channel, listener in listeners.items()}
                self._write_settings({**settings, "listeners": descriptors})
                self._process = subprocess.Popen(  # noqa: S603 - no shell, and a command of our own
                    command,
                    env=environment,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=complaints,
                    stderr=complaints,
                    pass_fds=tuple(descriptors.values()),
                    start_new_session=True,
                )
        except OSError as error:
            self.started()
            raise SandboxError(f"the Python kernel could not be started: {error}") from error
        finally:
            os.close(complaints)
        self._watch = os.pidfd_open(self._process.pid)
        asyncio.get_running_loop().add_reader(self._watch, self._reap)

    def ending(self) -> str:
        """Say in a few words how the process ended."""
        code = self._process.returncode if self._process is not None else None
        if code is None:
            return "still running"
        number = -code if code < 0 else code - 128  # a shell's and bubblewrap's way to tell of a signal
        if code >= 0 and number not in set(signal.Signals):
            return f"exit status {code}"
        name = signal.Signals(number).name
        return f"killed by {name}, perhaps for want of memory" if name == "SIGKILL" else f"killed by {name}"

    def complaint(self) -> str:
        """Return the end of what it wrote when it could not start."""
        if self._stderr < 0:
            return ""
        os.set_blocking(self._stderr, False)
        try:
            written = os.read(self._stderr, 1 << 16).decode(errors="replace").strip()
        except BlockingIOError:
            return ""
        return written[-_COMPLAINT_CHARS:]

    def started(self) -> None:
        """Take note that the kernel answers: nothing more is read from the process."""
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1

    async def stop(self) -> None:
        """Kill the process with its group and remove its files."""
        try:
            if self._process is not None and not self.exited.is_set():
                self._kill_group(self._process)
                await self.exited.wait()
        finally:
            self._reap()
            self.started()
            remove_folder(self._folder)

    def _reap(self) -> None:
        """Collect the process, which has ended or is about to."""
        if self._watch < 0 or self._process is None:
            return
        asyncio.get_running_loop().remove_reader(self._watch)
        os.close(self._watch)
        self._watch = -1
        self._kill_group(self._process)  # before the wait: until then its number can't be given to another group
        self._process.wait()
        self.exited.set()

    @staticmethod
    def _kill_group(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def _write_settings(self, settings: dict[str, Any]) -> None:
        path = self._folder / "settings.json"
        path.write_text(json.dumps({"key": self.key, "ports": PORTS, **settings}))
        path.chmod(0o644)  # the kernel may have another user id; the folder above it is private

    @contextlib.contextmanager
    def _listeners(self) -> Iterator[dict[str, socket.socket]]:
        with contextlib.ExitStack() as stack:
            listeners: dict[str, socket.socket] = {}
            for channel, number in PORTS.items():
                listeners[channel] = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                listeners[channel].bind(f"{self.sockets}-{number}")
                listeners[channel].listen(8)
                listeners[channel].setblocking(False)
            yield listeners


def kernel_settings(limits: Limits, warmup: Warmup) -> dict[str, Any]:
    """Return the runner's settings that are the same for all local kernels."""
    return {
        "sockets": "/k",  # no such path: the sockets are handed down
        "memory": limits.memory,
        "file_bytes": limits.scratch,
        "open_files": limits.open_files,
        "processes": None,
        "parent": None,
        "fonts": str(warmup.fonts) if warmup.fonts else None,
    }


def kernel_environment(home: Path, temporary: Path, warmup: Warmup) -> dict[str, str]:
    """Return the whole environment of a kernel; nothing of ours is passed on, as it may hold secrets."""
    environment = {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "MPLCONFIGDIR": str(home / ".matplotlib"),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "PATH": "/usr/bin:/bin",
        "USER": "agent",
        "LOGNAME": "agent",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONPATH": os.pathsep.join(map(str, this_interpreter().packages)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "MALLOC_ARENA_MAX": "2",
        **dict.fromkeys(_ONE_THREAD, "1"),
    }
    if warmup.bytecode is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(warmup.bytecode)
    return environment


def kernel_command(runner: Path, settings: Path) -> list[str]:
    """Return the command that becomes the kernel."""
    return [str(this_interpreter().executable), *FLAGS, str(runner), str(settings)]


class PlainLauncher:
    """Starts kernels as plain processes: limits and a private folder, but no isolation at all."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    async def launch(self, folder: Path, data: Path) -> LocalProcess:
        """Start a kernel; see `labmates.sandboxes.process.Launcher`."""
        warmup = await asyncio.to_thread(warm_up)
        process, home, temporary = LocalProcess(folder), folder / "home", folder / "tmp"
        settings = {**kernel_settings(self._limits, warmup), "data": str(data), "parent": os.getpid()}
        try:
            home.mkdir()
            temporary.mkdir()
        except OSError as error:
            raise SandboxError(f"the Python kernel could not be started: {error}") from error
        command = kernel_command(RUNNER, folder / "settings.json")
        process.start(command, kernel_environment(home, temporary, warmup), settings, cwd=home)
        return process
