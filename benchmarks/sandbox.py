"""How quick and how lean sandboxes are, beside a bare Jupyter kernel and smolagents' Docker executor, in one run.

The bare kernel (``jupyter_client`` and ``ipykernel`` on this machine, without isolation or data) is the yardstick: on a
machine that is twice as slow, all figures double. The peer is left out unless it is installed
(``pip install 'smolagents[docker]'``); it needs an engine with a network. ``--peer-image NAME`` names an image with a
Jupyter kernel gateway, for machines on which the peer can't build its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import queue
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from labmates.errors import LabmatesError
from labmates.sandboxes.base import Sandbox, SandboxBackend
from labmates.sandboxes.choose import choose_backend

STARTS, TRIPS, CUTS, CROWD = 10, 100, 20, 16
REPLY = 10.0
FIRST_CELL = """
from sklearn.ensemble import RandomForestRegressor
import matplotlib.pyplot as plt
RandomForestRegressor(10, random_state=0).fit(df[['a', 'b']], df['c'])
plt.plot(df['a'][:100]); plt.show()
"""


def figures(name: str, seconds: list[float]) -> None:
    """Print the distribution of some times."""
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    milliseconds = (ordered[0], statistics.median(ordered), p95, ordered[-1])
    print(f"  {name:42}" + "".join(f"{1000 * value:10.1f}" for value in milliseconds), flush=True)


async def timed(work: Awaitable[Any]) -> float:
    """Return the seconds that something takes."""
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def heading(name: str) -> None:
    """Print the head of a table."""
    print(f"\n{name:44}" + "".join(f"{column:>10}" for column in ("min ms", "p50", "p95", "max")))


def bare_kernel() -> float:
    """Measure a kernel without a sandbox; return the median of its starts in seconds."""
    from jupyter_client.manager import start_new_kernel

    heading("bare kernel on this machine")
    starts, trips = [], []
    for _ in range(STARTS // 2):
        start = time.perf_counter()
        manager, client = start_new_kernel(kernel_name="python3")
        bare_run(client, "1+1")
        starts.append(time.perf_counter() - start)
        for _ in range(TRIPS // 5):
            start = time.perf_counter()
            bare_run(client, "1+1")
            trips.append(time.perf_counter() - start)
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    figures("start to answer of 1+1", starts)
    figures("1+1", trips)
    return statistics.median(starts)


def bare_run(client: Any, code: str) -> None:
    """Run a cell and wait until the kernel is idle again."""
    request = client.execute(code)
    while client.get_shell_msg()["parent_header"]["msg_id"] != request:
        pass
    with contextlib.suppress(queue.Empty):
        while True:
            message = client.get_iopub_msg(timeout=5)
            if message["content"].get("execution_state") == "idle" and message["parent_header"]["msg_id"] == request:
                return


@contextlib.contextmanager
def table() -> Iterator[Path]:
    """Write a data set of some megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        rows = (f"{i},{i * 7 % 1000},{i * 13 % 777}" for i in range(5_000))
        path.write_text("a,b,c\n" + "\n".join(rows) + "\n")
        yield path


@contextlib.asynccontextmanager
async def opened(backend: SandboxBackend, data: Path) -> AsyncIterator[Sandbox]:
    """Open a session for a block."""
    sandbox = await backend.open(data)
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def ours(name: str, data: Path, bare: float) -> None:
    """Measure one of our back ends."""
    backend = choose_backend(name, trusted_code=False).backend
    heading(f"labmates, {name}")
    starts, closes, firsts = [], [], []
    for _ in range(STARTS + 1):
        start = time.perf_counter()
        sandbox = await backend.open(data)
        await sandbox.run("1+1")
        starts.append(time.perf_counter() - start)
        firsts.append(await timed(sandbox.run(FIRST_CELL)))
        closes.append(await timed(sandbox.close()))
    figures("start to answer of 1+1, with pandas and df", starts[1:])
    figures("first cell with scikit-learn and a plot", firsts[1:])
    waited = []
    for _ in range(STARTS // 3):
        async with opened(backend, data) as sandbox:
            await asyncio.sleep(REPLY)
            waited.append(await timed(sandbox.run(FIRST_CELL)))
    figures(f"the same when the model took {REPLY:g} s to write it", waited)
    async with opened(backend, data) as sandbox:
        await sandbox.run("kept = 1")
        figures("1+1", [await timed(sandbox.run("1+1")) for _ in range(TRIPS)])
        figures("1 MB of text", [await timed(sandbox.run("print('x' * 1_000_000)")) for _ in range(CUTS)])
        cuts = [await timed(sandbox.run("import time; time.sleep(9)", timeout=0.2)) - 0.2 for _ in range(CUTS)]
        figures("interrupt after the time limit", cuts)
        kept = (await sandbox.run("kept")).text.strip()
        figures(
            "kernel dies: answer and new kernel",
            [await timed(sandbox.run("import os; os._exit(1)")) for _ in range(CUTS)],
        )
        if name == "docker":
            figures("container lost: answer and new container", [await lose(sandbox) for _ in range(3)])
        before = resident()
        await sandbox.run("print('x' * 300_000_000)", timeout=60)
        grown = peak() - before
    figures("close", closes[1:])
    await backend.close()
    print(f"  variables kept after {CUTS} interrupts: {'all' if kept == '1' else 'NO'}")
    print(f"  our memory grew by {grown / 2**20:.0f} MB for a print of 300 MB")
    print(f"  start against the bare kernel's: {statistics.median(starts[1:]) / bare:.2f}")


async def at_once(name: str, data: Path) -> None:
    """Print how long `CROWD` sessions that are opened at once take until each has answered."""
    backend = choose_backend(name, trusted_code=False).backend
    start = time.perf_counter()
    sessions = await asyncio.gather(*(backend.open(data) for _ in range(CROWD)))
    await asyncio.gather(*(session.run("1+1") for session in sessions))
    print(f"  {CROWD} sessions at once: {time.perf_counter() - start:.2f} s until all have answered")
    await backend.close()


async def lose(sandbox: Sandbox) -> float:
    """Return the time until a session whose container is killed works again."""
    start = time.perf_counter()
    await sandbox.run("import os; os.kill(os.getppid(), 9); import time; time.sleep(5)")
    return time.perf_counter() - start


def resident() -> int:
    """Begin to measure the peak of our memory, and return what we hold, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the peak of our memory, in bytes."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def peer(image: str | None, bare: float) -> None:
    """Measure smolagents' Docker executor."""
    if find_spec("smolagents") is None:
        print("\nsmolagents is not installed: pip install 'smolagents[docker]'")
        return
    import smolagents
    from smolagents.monitoring import AgentLogger, LogLevel
    from smolagents.remote_executors import DockerExecutor

    heading(f"smolagents {smolagents.__version__}, DockerExecutor")
    logger = AgentLogger(level=LogLevel.OFF)
    named: dict[str, Any] = {"image_name": image, "build_new_image": False} if image else {}

    def run(executor: Any, code: str, seconds: float = 10.0) -> float | None:
        """Return how long a cell takes, None if its answer has not come after `seconds`."""
        start = time.perf_counter()
        try:
            within(seconds, lambda: executor.run_code_raise_errors(code))
        except TimeoutError:
            return None
        except Exception as error:
            print(f"  ({type(error).__name__}: {str(error)[:80]})")
        return time.perf_counter() - start

    starts, trips, closes = [], [], []
    for number in range(STARTS // 2):
        start = time.perf_counter()
        executor = DockerExecutor([], logger, **named)
        run(executor, "1+1")
        starts.append(time.perf_counter() - start)
        trips += [value for _ in range(TRIPS // 5) if (value := run(executor, "1+1")) is not None]
        if number == STARTS // 2 - 1:
            slow = run(executor, "import time; time.sleep(9)", seconds=3)
            dead = run(executor, "import os; os._exit(1)", seconds=10)
        start = time.perf_counter()
        executor.cleanup()
        closes.append(time.perf_counter() - start)
    figures("start to answer of 1+1, without df", starts)
    figures("1+1", trips)
    figures("close", closes)
    print(
        "  time limit of a cell: it has none; sleep(9) "
        + ("went on after 3 s" if slow is None else f"took {slow:.1f} s")
    )
    print("  kernel dies: " + ("no answer within 10 s" if dead is None else f"answer after {dead:.2f} s"))
    print(f"  start against the bare kernel's: {statistics.median(starts) / bare:.2f}")


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """Call `work` in a thread that is left alone if it does not end in time."""
    import threading

    box: queue.Queue[tuple[bool, Any]] = queue.Queue()

    def call() -> None:
        try:
            box.put((True, work()))
        except Exception as error:
            box.put((False, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        good, result = box.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if not good:
        raise result
    return result


async def main() -> None:
    """Measure everything that works here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peer-image", metavar="NAME")
    arguments = parser.parse_args()
    bare = bare_kernel()
    with table() as data:
        for name in ("docker", "bubblewrap"):
            try:
                await ours(name, data, bare)
                await at_once(name, data)
            except LabmatesError as error:
                print(f"\n{name}: {error}")
    peer(arguments.peer_image, bare)


if __name__ == "__main__":
    asyncio.run(main())
