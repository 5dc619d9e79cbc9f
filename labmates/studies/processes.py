"""Worker processes for one study on this machine, supervised by the process that started them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from labmates.errors import LabmatesError, UsageError
from labmates.workflows.calls.stop_signal import StopSignal

_USAGE, _INTERRUPTED = 2, 130  # exit codes of the command line
_ENDING_SECONDS = 30.0


async def work_in_processes(url: str, study: str, processes: int, stop_signal: StopSignal) -> None:
    """Execute runs of a study in worker processes until no run is left.

    A killed worker is replaced, and other workers take over its runs. The stop signal ends workers at their next step.
    Raises `UsageError` if a worker can't execute the runs; it has reported the reason; `LabmatesError` if a worker
    fails; it has reported the error; `asyncio.CancelledError` if interrupted, after the workers have ended.
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
        # Not as an argument, where all users of the machine could read a password.
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
            start_new_session=True,  # Ctrl-C reaches only this process, which signals the workers
        )
        self._processes.add(process)
        self.waiting.add(asyncio.create_task(process.wait()))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all living workers."""
        for process in self._processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)

    async def ended(self) -> None:
        """Wait until all workers have ended, and kill late ones."""
        if self.waiting:
            _, late = await asyncio.wait(self.waiting, timeout=_ENDING_SECONDS)
            if late:
                self.signal(signal.SIGKILL)
                await asyncio.wait(late)
