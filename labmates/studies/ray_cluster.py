"""A connection to Ray: one started for this process on this machine, or to an existing cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from labmates.errors import MissingExtraError, UsageError
from labmates.studies.cancellation import to_its_end

SANDBOX = "sandbox"
"""The Ray resource of which a node has as many as sandboxes may be open on it at once."""
CONNECT_SECONDS = 30.0
"""The time within which a cluster has to answer."""
_OBJECT_STORE_BYTES = 80 * 1024**2  # hardly anything passes through it; Ray wants 75 MB at least
_ADDRESS = re.compile(r"[^:/\s]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}")
_log = logging.getLogger(__name__)
_TRY = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"


def import_ray() -> ModuleType:
    """The module Ray.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return import_module("ray")
    except ImportError as error:
        raise MissingExtraError("a Ray cluster", "ray") from error


@asynccontextmanager
async def connected(address: str | None, *, workers: int, sandboxes: int) -> AsyncIterator[ModuleType]:
    """Connect this process to Ray, and yield Ray.

    Without an address, it is the Ray that the process is connected to already, else one that is started on this machine
    and ended with the connection.

    Parameters
    ----------
    address
        ``HOST:PORT`` of a cluster of which this machine is a node, or ``auto`` for the one that runs here.
    workers
        How many workers a Ray that is started can hold at once.
    sandboxes
        How many sandboxes it can.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    UsageError
        If the cluster can't be reached, or another one is connected.
    """
    ray = import_ray()
    if ray.is_initialized():
        if address is not None:
            raise UsageError(f"this process is connected to Ray already, so it can't connect to '{address}'")
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    folder = None
    if address is None:
        # Not where TMPDIR says: the paths of Ray's sockets, which lie deep in it, may have 107 characters.
        folder = tempfile.mkdtemp(prefix="labmates-ray-", dir="/tmp")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {
            "address": "local",  # a new one, whatever RAY_ADDRESS says
            "num_cpus": workers,
            "resources": {SANDBOX: sandboxes},
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_temp_dir": folder,
        }
    else:
        await _try_out(address)
        options["address"] = address
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        # On a thread: it takes seconds, and on the main thread Ray would replace our handler of SIGTERM by its own.
        await to_its_end(asyncio.to_thread(ray.init, **options))
        with _quiet():
            yield ray
    finally:
        await to_its_end(asyncio.to_thread(ray.shutdown))
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def is_one_machine(ray: ModuleType) -> bool:
    """Whether all of the cluster is this machine."""
    return len({node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}) == 1


def share_of_sandboxes(nodes: Sequence[int], workers: int) -> int:
    """The number of sandboxes each worker may open: the most with which all workers find a place at once.

    Where even one each is too many, it is one, and some workers wait.

    Parameters
    ----------
    nodes
        How many sandboxes each node holds.

    Raises
    ------
    UsageError
        If no node holds any.
    """
    largest = max(nodes, default=0)
    if not largest:
        raise UsageError(
            f"no node of the Ray cluster has the resource '{SANDBOX}', which limits the sandboxes open on it at once; "
            f"declare it when you start the nodes: ray start … --resources='{{\"{SANDBOX}\": 8}}'"
        )
    fitting = (share for share in range(largest, 0, -1) if sum(node // share for node in nodes) >= workers)
    return next(fitting, 1)


def sandboxes_of_nodes(ray: ModuleType) -> list[int]:
    """The number of sandboxes each living node of the cluster holds."""
    return [int(node["Resources"].get(SANDBOX, 0)) for node in ray.nodes() if node["Alive"]]


async def _try_out(address: str) -> None:
    """Connect to a cluster in a process of its own: at a wrong address Ray tries for minutes, and can't be stopped.

    Raises
    ------
    UsageError
        If that fails, or takes too long.
    """
    if address != "auto" and not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"'{address}' is not the address of a usable Ray cluster: start it on a node of the cluster and give "
            "HOST:PORT of the head node, or auto"
        )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _TRY, address, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), CONNECT_SECONDS)
    except TimeoutError:
        why = f"nothing answered within {CONNECT_SECONDS:.0f} s"
    else:
        if process.returncode == 0:
            return
        lines = errors.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"the attempt ended with {process.returncode}"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    raise UsageError(
        f"can't connect to a Ray cluster at '{address}': {why}. Give HOST:PORT of its head node (ray start prints it), "
        "or auto, on a machine that is a node of the cluster."
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let what Ray's daemons say (a worker died) go to the log, not to standard output, where results stand.

    No option of Ray does that. If another version of Ray prints it elsewhere, nothing is changed.
    """
    module, name = sys.modules.get("ray._private.worker"), "print_to_stdstream"
    printer = getattr(module, name, None)
    if printer is None:
        yield
        return
    setattr(module, name, lambda data, *_, **__: _log.info("Ray: %s", " ".join(data.get("lines", []))))
    try:
        yield
    finally:
        setattr(module, name, printer)
