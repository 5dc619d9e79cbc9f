"""Processes of their own that need no seconds to import everything: forks of one that has done so.

They are real processes: they have standard streams, an environment and a folder of their own, can be sent signals and
be killed. What a user starts, ``python -m labmates.cli.main``, is tested where starting is the matter.
"""

from __future__ import annotations

import atexit
import importlib
import io
import os
import sys
import threading
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import IO, Self

from tests.support.prepared_kernels import use_prepared_kernels

PRELOADED = (
    "labmates.api",
    "labmates.cli.main",
    "labmates.cli.run",
    "labmates.cli.study",
    "labmates.cli.worker",
    "labmates.sandboxes.local",
    "labmates.sandboxes.client",
    "labmates.studies.execution",
    "labmates.tasks.anomaly.task",
    "labmates.workflows.science.run",
    "pandas",
    "tests.support.plays",
    "tests.support.puppet",
    "tests.support.solo",
)
"""Modules that children find imported: with them, a run in a child starts at once."""
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(PRELOADED))


class Child:
    """A process that executes Python code; a context manager that waits for its end.

    Parameters
    ----------
    code
        What to execute, as with ``python -c``.
    environment
        Its whole environment; by default that of this process.
    folder
        Its working directory; by default that of this process.

    Attributes
    ----------
    pid
        Its process id.
    stdout, stderr
        What it writes.
    """

    def __init__(self, code: str, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        pipes = [_CONTEXT.Pipe(duplex=False) for _ in range(2)]
        wanted = dict(os.environ if environment is None else environment)
        arguments = (code, wanted, str(folder or Path.cwd()), *(writer for _, writer in pipes))
        self._process = _CONTEXT.Process(target=_execute, args=arguments)
        self._process.start()
        for _, writer in pipes:
            writer.close()
        self.stdout, self.stderr = (_text(reader) for reader, _ in pipes)
        self.pid = self._process.pid or 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self.communicate()

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def communicate(self, timeout: float = 120.0) -> tuple[str, str]:
        """Wait for its end and return what it wrote.

        Raises
        ------
        TimeoutError
            If it does not end in time; it is killed then.
        """
        said = ["", ""]

        def read(number: int, stream: IO[str]) -> None:
            if not stream.closed:
                with stream:
                    said[number] = stream.read()

        readers = [threading.Thread(target=read, args=pair) for pair in enumerate((self.stdout, self.stderr))]
        for reader in readers:
            reader.start()
        self._process.join(timeout)
        in_time = self._process.exitcode is not None
        self._process.kill()
        self._process.join()
        for reader in readers:
            reader.join()
        if not in_time:
            raise TimeoutError(f"a child did not end within {timeout:g} s")
        return said[0], said[1]


def command(*arguments: str) -> str:
    """Return code that does what the command ``labmates`` does with these arguments."""
    return f"from labmates.cli.main import main\nmain({arguments!r})"


def run_child(code: str, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> int:
    """Execute code in a child and return its exit code."""
    with Child(code, environment, folder) as child:
        child.communicate()
    assert child.returncode is not None
    return child.returncode


def _text(reader: Connection) -> IO[str]:
    descriptor = os.dup(reader.fileno())
    reader.close()
    return os.fdopen(descriptor, encoding="utf-8", errors="replace")


def _execute(code: str, environment: dict[str, str], folder: str, out: Connection, err: Connection) -> None:
    """Be the child."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    use_prepared_kernels()
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    importlib.invalidate_caches()
    for number, (name, pipe) in enumerate((("stdout", out), ("stderr", err)), start=1):
        os.dup2(pipe.fileno(), number)
        pipe.close()
        stream = io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), encoding="utf-8", write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    try:
        exec(compile(code, "<child>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()
