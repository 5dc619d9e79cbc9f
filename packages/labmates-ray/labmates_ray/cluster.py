"""A connection to Ray: a local instance for this process, or an existing cluster."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from labmates.errors import UsageError

CONNECT_SECONDS = 30.0
"""Time limit for a cluster's answer."""
_OBJECT_STORE_BYTES = 80 * 1024**2  # little passes through it; Ray's minimum is 75 MB
_ADDRESS = re.compile(r"[^:/\s]+:\d{1,5}|\[[0-9A-Fa-f:]+\]:\d{1,5}")
_log = logging.getLogger(__name__)
_TRY = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False, logging_level='CRITICAL')"


@contextmanager
def connected(address: str | None, *, cpus: int, resources: Mapping[str, int] | None = None) -> Iterator[ModuleType]:
    """Connect this process to Ray and yield the module; blocks for seconds.

    Without an address, an existing connection is used, else a local Ray is started and ends with the connection.
    `address` is ``HOST:PORT`` of a cluster with this machine as a node, or ``auto`` for the cluster on this machine.
    `cpus` and `resources` (by name) configure a local Ray. Raises `UsageError` if the cluster is unreachable, or
    another one is connected.
    """
    import ray

    if ray.is_initialized():
        if address not in (None, ray.get_runtime_context().gcs_address):
            raise UsageError(f"this process is connected to Ray already, so it can't connect to '{address}'")
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    folder = None
    if address is None:
        # Not in TMPDIR: Ray's socket paths are deep, and limited to 107 characters.
        folder = tempfile.mkdtemp(prefix="labmates-ray-", dir="/tmp")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {
            "address": "local",  # overrides RAY_ADDRESS
            "num_cpus": cpus,
            "resources": dict(resources or {}),
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
            "_temp_dir": folder,
        }
    else:
        _try_out(address)
        options["address"] = address
    logging.getLogger("ray").setLevel(logging.ERROR)
    # On the main thread Ray would replace our handler of SIGTERM by its own; its daemons end with the thread.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(ray.init, **options).result()
            with _quiet():
                yield ray
        finally:
            ray.shutdown()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


def _try_out(address: str) -> None:
    """Connect to a cluster in a separate process: at a wrong address Ray retries for minutes and can't be stopped.

    Raises `UsageError` if the attempt fails or takes too long.
    """
    if address != "auto" and not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"'{address}' is not the address of a usable Ray cluster: start it on a node of the cluster and give "
            "HOST:PORT of the head node, or auto"
        )
    command = [sys.executable, "-c", _TRY, address]
    try:
        done = subprocess.run(  # noqa: S603
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=CONNECT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        why = f"nothing answered within {CONNECT_SECONDS:.0f} s"
    else:
        if done.returncode == 0:
            return
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"the attempt ended with {done.returncode}"
    raise UsageError(
        f"can't connect to a Ray cluster at '{address}': {why}. Give HOST:PORT of its head node (ray start prints it), "
        "or auto, on a machine that is a node of the cluster."
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Log the messages of Ray's daemons (a worker died) instead of printing them among results on standard output.

    Ray has no option for this. If another version of Ray prints elsewhere, nothing changes.
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
