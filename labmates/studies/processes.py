"""Several worker processes on this machine for one study, watched over by the one that started them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from labmates.errors import LabmatesError, UsageError
from labmates.workflows.stop_signal import StopSignal

_USAGE, _INTERRUPTED = 2, 130  # exit codes of the command line
_ENDING_SECONDS = 30.0


async def work_in_processes(url: str, study: str, processes: int, stop_signal: StopSignal) -> None:
    """Let worker processes execute runs of a study until none is left that could be begun.

    A worker that is killed is replaced, and what it held is taken over by the others. When the signal is pulled the
    workers end at their next step.

    Raises
    ------
    UsageError
        If a worker can't execute the runs as they are asked for; it has said why.
    LabmatesError
        If a worker ends with an error of its own; it has said which.
    asyncio.CancelledError
        If interrupted, when the workers have ended.
    """
    workers = _Workers(url, study)
    await asyncio.gather(*(workers.start() for _ in range(processes)))
    stop = asyncio.create_task(stop_signal.pulled.wait())
    stop.add_done_callback(lambda _: workers.signal(signal.SIGINT))
    try:
        while workers.waiting:
            done, _ = await asyncio.wait(workers.waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                workers.waiting.discard(task)
                code = task.result()
                if code < 0 and not stop.done():
                    await workers.start()
                elif code not in (0, _INTERRUPTED):
                    wrong = UsageError if code == _USAGE else LabmatesError
                    raise wrong(f"a worker process has ended with exit code {code}")
    finally:
        stop.cancel()
        workers.signal(signal.SIGTERM)
        await asyncio.shield(workers.ended())


class _Workers:
    def __init__(self, url: str, study: str) -> None:
        # Not as an argument: every user of the machine could read a password there.
        self._environment = {**os.environ, "LABMATES_STORE": url}
        self._study = study
        self._processes: set[asyncio.subprocess.Process] = set()
        self.waiting: set[asyncio.Task[int]] = set()

    async def start(self) -> None:
        command = [sys.executable, "-m", "labmates.cli.main", "worker", "--study", self._study]
        process = await asyncio.create_subprocess_exec(
            *command,
            *("--parent", str(os.getpid())),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches us alone, and we tell them
        )
        self._processes.add(process)
        self.waiting.add(asyncio.create_task(process.wait()))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all that live."""
        for process in self._processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)

    async def ended(self) -> None:
        """Wait until all have ended, and end those that take too long."""
        if self.waiting:
            _, late = await asyncio.wait(self.waiting, timeout=_ENDING_SECONDS)
            if late:
                self.signal(signal.SIGKILL)
                await asyncio.wait(late)
