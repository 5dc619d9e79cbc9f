"""Kernels of ``unsafe-local`` that need no seconds to import everything: forks of one process that has done so.

They run the real runner, with its limits, its folder and its environment; only the start of Python is saved. The tests
of the sandboxes themselves start kernels as users do.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from labmates.sandboxes import bubblewrap, local
from labmates.sandboxes.interpreter import FLAGS, local_modules, this_interpreter
from labmates.sandboxes.process import RUNNER
from labmates.sandboxes.warmup import warm_up
from tests.support.shared import FOLDER, shared_server

_SERVER = Path(__file__).with_name("kernel_server.py")


class PreparedKernel:
    """A forked runner: what `LocalEnclosure` uses of a `subprocess.Popen`.

    Parameters
    ----------
    command
        What would start it; its last word is the path of the settings.
    """

    def __init__(self, command: list[str], *, env: dict[str, str], cwd: Path, stdout: int, **_options: Any) -> None:
        self._line = _connection()
        socket.send_fds(self._line, [json.dumps([command[-1], env, str(cwd)]).encode()], [stdout])
        self.pid = int.from_bytes(self._line.recv(4), "big")
        self.returncode: int | None = None

    def wait(self) -> None:
        """Wait for its end."""
        if self.returncode is None:
            with self._line as line:
                line.send(b".")
                self.returncode = os.waitstatus_to_exitcode(int.from_bytes(line.recv(4), "big"))


def use_prepared_kernels(*, for_bubblewrap: bool = False) -> None:
    """Fork the plain kernels of this process from now on.

    Parameters
    ----------
    for_bubblewrap
        Where bubblewrap is chosen, too: what isolates a kernel is no matter here.
    """
    if for_bubblewrap:
        bubblewrap.BubblewrapLauncher = local.PlainLauncher  # type: ignore[assignment, misc]
    local.subprocess = SimpleNamespace(Popen=_start, DEVNULL=subprocess.DEVNULL)  # type: ignore[assignment, attr-defined]


def use_started_kernels() -> None:
    """Start the plain kernels of this process as users do."""
    local.subprocess = subprocess  # type: ignore[attr-defined]


def _start(command: list[str], **options: Any) -> PreparedKernel | subprocess.Popen[bytes]:
    is_plain = command[0] == str(this_interpreter().executable)
    return PreparedKernel(command, **options) if is_plain else subprocess.Popen(command, **options)


def _connection() -> socket.socket:
    """Connect to the server, which has the interpreter, the options and the environment of kernels."""
    command = [str(this_interpreter().executable), *FLAGS, str(_SERVER), str(RUNNER), ",".join(local_modules())]
    address = shared_server("kernels", command, lambda: local.local_environment(FOLDER, FOLDER, warm_up()))
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(str(address))
    return line
