"""Runs ``labmates`` and Python in processes that need not import everything anew.

``python -m tests.docs.forge SOCKET`` imports what commands need, once, and goes on in a process of its own until the
socket is removed. For each connection it forks a process that takes over the caller's arguments, folder, environment
and files, and does what a new process would do. The caller is a script of a few lines (`write_stand_ins`) that a shell
finds by the names ``labmates`` and ``python``.

Why: importing LangGraph, pandas and the like takes longer than most commands on our pages do.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import pkgutil
import re
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

import labmates
from labmates.sandboxes.bubblewrap import bubblewrap_works
from tests.support.kernel_server import serve
from tests.support.prepared_kernels import use_prepared_kernels

LIBRARIES = [
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
    "alembic.command",
    "anyio._backends._asyncio",
    "docker",
    "highspy",
    "httpcore2",
    "jupyter_client.asynchronous",
    "jupyter_client.manager",
    "langchain_core.tracers.langchain",
    "langchain_openai",
    "markdown_it",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "openai.lib.streaming",
    "openai.resources.chat",
    "pandas",
    "psycopg",
    "pyarrow.pandas_compat",
    "rich._emoji_codes",
    "rich.live",
    "rich.progress",
    "rich.status",
    "rich.table",
    "scipy.optimize",
    "scipy.stats",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite",
    "truststore",
    "uvicorn",
    "zmq.asyncio",
]
"""What our modules import where they use it."""
NOT_HERE = re.compile(
    r"labmates\.(tasks\.\w+\.analysis\.|workflows\.science\.baselines\.look$|records\.migrations\.|sandboxes\.runner$"
    r"|(tasks|judges)\.\w*template\.)"
)
"""Modules of ours that are executed by others: in a sandbox, by Alembic, in a package of their own."""

_CLIENT = """#!{python} -SEsB
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    said = json.dumps([{what!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    line.sendmsg([len(said).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    line.sendall(said)
    code = line.recv(1)
sys.exit(code[0] if code else 1)
"""


def write_stand_ins(folder: Path, address: Path) -> None:
    """Write the commands ``labmates`` and ``python`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for what in ("labmates", "python"):
        script = folder / what
        script.write_text(_CLIENT.format(python=sys.executable, address=str(address), what=what), encoding="utf-8")
        script.chmod(0o755)


def modules() -> list[str]:
    """Return the names of all modules that commands may need."""
    ours = (found.name for found in pkgutil.walk_packages(labmates.__path__, "labmates."))
    return [*LIBRARIES, *(name for name in ours if not NOT_HERE.match(name))]


def main(address: str) -> None:
    """Wait for callers in a process of its own."""
    for module in modules():
        importlib.import_module(module)
    bubblewrap_works()  # tried once, for all commands
    gc.freeze()
    serve(address, socket.SOCK_STREAM, _take_over)


def _take_over(line: socket.socket) -> NoReturn:
    """Do what the caller wants, and end the process."""
    files = array.array("i")
    size, [(_, _, data), *_], _, _ = line.recvmsg(4, socket.CMSG_LEN(3 * files.itemsize))
    files.frombytes(data)
    length = int.from_bytes(size, "big")
    said = b""
    while len(said) < length:
        said += line.recv(length - len(said))
    what, arguments, folder, environment = json.loads(said)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    importlib.invalidate_caches()
    code = 1
    try:
        code = _executed(what, arguments)
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        line.send(bytes([code & 255]))
        os._exit(code & 255)


def _executed(what: str, arguments: list[str]) -> int:
    try:
        if what == "labmates":
            from labmates.cli.main import main as labmates
            from labmates.sandboxes import pool as sandbox_pool

            sandbox_pool._TRIALS = 0  # as in all tests: no sandbox is started ahead for a model that may not need it
            if "--sandbox" not in arguments:
                use_prepared_kernels(for_bubblewrap=True)
            sys.argv[:] = ["labmates", *map(_run_id, arguments)]
            labmates(sys.argv[1:])
        else:
            import runpy

            use_prepared_kernels(for_bubblewrap=True)
            sys.argv[:] = arguments
            sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _run_id(argument: str) -> str:
    """Return an argument, and for RUN, which stands for an id on pages, the run that ended last; the lab's first."""
    if argument != "RUN":
        return argument
    from labmates.records.store import Store

    store = Store(must_exist=True)
    runs = [run for run in store.runs() if run.status == "completed"]
    store.close()
    return max(runs, key=lambda run: (run.kind == "science", run.started)).id


if __name__ == "__main__":
    main(sys.argv[1])
