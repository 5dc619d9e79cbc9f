"""Inside the sandbox: set the limits, load the data set, then become the session's Jupyter kernel.

Stands alone: of all our files this is the only one that a sandbox can see. Used as ``python runner.py SETTINGS``, where
SETTINGS is a JSON file (see `main`). What is limited here is limited out of politeness, so that a clumsy cell does not
cost its session; against hostile code the limits of the other side of the sockets count.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import shutil
import signal
import site
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, cast

import zmq
from ipykernel.compiler import XCachingCompiler
from ipykernel.iostream import OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core import page
from jupyter_client.session import Session

_HEADROOM = 64 << 20  # what a full kernel is still given, so that `del x` and a traceback work
_OVERRUN = 512 << 20  # how far beyond the limit all headroom together may go
_TEXT_CHARS = 2_000_000  # text of one cell
_TAIL_CHARS = 2_000  # the end of a longer text, which is kept too
_MESSAGE_CHARS = 4_000  # an exception's own text
_FRAMES = 6  # frames of one traceback, from its beginning and from its end
_IMAGES = 10  # figures of one cell
_IMAGE_CHARS = 11_500_000  # one figure in base64: 8 MB and a little


def main(settings_path: str) -> None:
    """Run the kernel that the settings describe.

    The settings: `key` (signs messages), `sockets` (path of the unix sockets up to the channel's number), `ports`
    (channel to number), `listeners` (channel to the descriptor of a socket that listens already; empty: bind them
    here), `data` (CSV file), `fonts` (folder with matplotlib's list of fonts, or null), `memory`, `file_bytes`,
    `processes` (or null), `open_files`, and `parent` (the process to die with, or null).
    """
    settings = json.loads(Path(settings_path).read_bytes())
    complaints = os.dup(2)
    try:
        app = _start(settings)
    except BaseException:
        os.write(complaints, traceback.format_exc().encode())
        os._exit(1)
    os.close(complaints)
    app.start()


def _start(settings: dict[str, Any]) -> Any:
    if settings["parent"] is not None:
        _die_with(settings["parent"])
    limit_resources(settings)
    # The kernel reads descriptors 1 and 2 itself and copies what arrives there to the originals, too.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    if settings["fonts"]:
        shutil.copytree(settings["fonts"], os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
    site.sethelper()  # Python was started without its module `site`
    cast(dict[str, Any], sys.modules)["debugpy"] = None  # large, and nobody will debug
    gc.disable()  # imports only add objects: nothing to collect yet
    import numpy as np
    import pandas as pd

    df = pd.read_csv(settings["data"], float_precision="round_trip", low_memory=False)
    app = _kernel(settings)
    app.shell.user_ns.update(np=np, pd=pd, df=df)
    gc.enable()
    gc.freeze()
    return app


def _die_with(parent: int) -> None:
    """Have this process killed as soon as `parent` ends, however it ends."""
    set_death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def limit_resources(settings: dict[str, Any]) -> None:
    """Set the limits of this process and its children."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: settings["file_bytes"],
        resource.RLIMIT_NOFILE: settings["open_files"],
    }
    if settings["processes"] is not None:
        limits[resource.RLIMIT_NPROC] = settings["processes"]
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (value, value))
    resource.setrlimit(resource.RLIMIT_DATA, (settings["memory"], settings["memory"] + _OVERRUN))


def give_headroom(memory: int) -> None:
    """Let a kernel that is full of data allocate a little more: a fixed limit would fail its every later cell."""
    status = Path("/proc/self/status").read_text().splitlines()
    used = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (min(hard, max(memory, used + _HEADROOM)), hard))


def encodable(text: str) -> str:
    """Return `text` without lone surrogates, which would keep its message from being sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


class TextBudget:
    """How much text the current cell may still send; of what is too much, the end is kept and the rest counted."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Begin a new cell."""
        with self._lock:
            self._room = _TEXT_CHARS
            self._tail = ""
            self.images = _IMAGES
            self.dropped = 0

    def take(self, text: str) -> str:
        """Return the part of `text` that may be sent."""
        with self._lock:
            kept, rest = text[: self._room], text[self._room :]
            self._room -= len(kept)
            excess = len(self._tail) + len(rest)
            self._tail = (self._tail + rest[-_TAIL_CHARS:])[-_TAIL_CHARS:]
            self.dropped += excess - len(self._tail)
            return encodable(kept)

    def tail(self) -> str:
        """Return the end of what was too much, once."""
        with self._lock:
            tail, self._tail = self._tail, ""
            return encodable(tail)


BUDGET = TextBudget()


def short_traceback(error: BaseException, trace: TracebackType | None) -> list[str]:
    """Return the lines of a traceback that show the agent's own code and where a library raised, and nothing else."""
    frames = list(traceback.extract_tb(trace))
    own = [frame for frame in frames if frame.filename.startswith("<cell")]
    if own and frames[-1] is not own[-1]:
        own.append(frames[-1])
    for frame in own:
        roots = [root for root in sys.path if root and frame.filename.startswith(f"{root}/")]
        frame.filename = frame.filename.removeprefix(max(roots, key=len, default="")).lstrip("/")
    lines = traceback.StackSummary.from_list(own[:_FRAMES]).format()
    if own[_FRAMES:]:
        last = own[max(_FRAMES, len(own) - _FRAMES) :]
        left_out = len(own) - _FRAMES - len(last)
        lines += [f"  [... {left_out} calls left out ...]"] * bool(left_out)
        lines += traceback.StackSummary.from_list(last).format()
    if own:
        lines.insert(0, "Traceback (most recent call last):")
    message = "".join(traceback.format_exception_only(type(error), error))
    if len(message) > _MESSAGE_CHARS:
        message = f"{message[:_MESSAGE_CHARS]} [... {len(message) - _MESSAGE_CHARS:,} characters left out]"
    return [encodable(line.rstrip("\n")) for line in (*lines, message)]


def _trim(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return `content` of a message of `kind` with no more in it than the other side may be sent."""
    if kind == "execute_input":
        return {}
    if kind in ("display_data", "update_display_data", "execute_result"):
        data, image = content["data"], content["data"].get("image/png")
        content["metadata"] = {}
        if image is not None and BUDGET.images > 0 and len(image) <= _IMAGE_CHARS:
            BUDGET.images -= 1
            content["data"] = {"image/png": image}
        elif image is not None:
            content["data"] = {"labmates/left-out": ""}
        else:
            content["data"] = {"text/plain": BUDGET.take(str(data.get("text/plain", "")))}
    if kind in ("error", "execute_reply"):
        content.update({name: encodable(str(content[name])[:200]) for name in ("ename", "evalue") if name in content})
    if kind == "execute_reply":
        content.update(payload=[], traceback=[], labmates_dropped=BUDGET.dropped)
    return content


class TrimmedSession(Session):
    """Sends no message that is larger than the other side takes."""

    def serialize(self, msg: dict[str, Any], ident: Any = None) -> Any:
        """Return the frames of `msg`, trimmed."""
        return super().serialize({**msg, "content": _trim(msg["header"]["msg_type"], msg["content"])}, ident)


class CappedStream(OutStream):
    """Standard output, or error, within the budget of the cell."""

    def write(self, string: str) -> int:
        """Send as much of `string` as the budget allows."""
        kept = BUDGET.take(string) if isinstance(string, str) else string
        if kept != "":
            super().write(kept)
        return len(string)

    def write_tail(self) -> None:
        """Send the end of what was too much."""
        if tail := BUDGET.tail():
            super().write(tail)


class CellCompiler(XCachingCompiler):
    """Names each cell by its number instead of a temporary file."""

    def get_code_name(self, _raw: str, _code: str, number: int) -> str:
        """Return the name that stands in tracebacks."""
        return f"<cell {number}>"


class Shell(ZMQInteractiveShell):
    """Shows short tracebacks and survives a full memory."""

    memory = 0

    def showtraceback(self, exc_tuple: Any = None, *_args: Any, **_options: Any) -> None:
        """Show the current exception."""
        kind, error, trace = self._get_exc_info(exc_tuple)  # type: ignore[no-untyped-call]
        if isinstance(error, MemoryError):
            traceback.clear_frames(trace)
            give_headroom(self.memory)
        self._showtraceback(kind, error, short_traceback(error, trace))  # type: ignore[no-untyped-call]
        error.__traceback__ = None  # or it would keep the values of its frames alive

    def showsyntaxerror(self, *_args: Any, **_options: Any) -> None:
        """Show the current exception, a syntax error."""
        self.showtraceback()

    # IPython keeps all text and tracebacks in its history, at which nobody looks: a cell that prints much would fill
    # the memory with it, and the first traceback would take a second.

    def _format_exception_for_storage(self, *_args: Any, **_options: Any) -> dict[str, Any]:
        return {}

    @contextlib.contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        yield


class Kernel(IPythonKernel):
    """A kernel with our compiler and our shell."""

    shell_class = Shell
    compiler_class = CellCompiler


class App(IPKernelApp):
    """A kernel's application that listens where it is told to."""

    settings: ClassVar[dict[str, Any]] = {}

    def init_connection_file(self) -> None:
        """Do nothing: the settings say it all."""

    def write_connection_file(self, **_options: Any) -> None:
        """Do nothing, too."""

    def init_heartbeat(self) -> None:
        """Have no heart to beat: the end of the process is noticed without."""

    def _try_bind_socket(self, socket: Any, port: int) -> Any:
        channel = next(name for name, number in self.settings["ports"].items() if number == port)
        if channel in self.settings["listeners"]:
            socket.setsockopt(zmq.USE_FD, self.settings["listeners"][channel])
        return super()._try_bind_socket(socket, port)  # type: ignore[no-untyped-call]


def _kernel(settings: dict[str, Any]) -> Any:
    """Return the kernel's application, ready to be started."""
    memory = Shell.memory = settings["memory"]
    App.settings = settings
    app: Any = App.instance(
        session=TrimmedSession(key=settings["key"].encode(), username="kernel"),
        transport="ipc",
        ip=settings["sockets"],
        kernel_class=Kernel,
        outstream_class=f"{__name__}.CappedStream",
        **{f"{channel}_port": number for channel, number in settings["ports"].items()},
    )
    app.initialize(["--HistoryManager.enabled=False", "--InteractiveShell.cache_size=0", "--log-level=CRITICAL"])
    stdout: Any = sys.stdout
    shell = app.shell

    def before(_info: Any) -> None:
        BUDGET.reset()
        shell.history_manager.outputs.clear()
        give_headroom(memory)

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", lambda _result: stdout.write_tail())
    show: Any = page.as_hook(page.display_page)  # type: ignore[no-untyped-call]
    shell.set_hook("show_in_pager", show, 0)  # `name?` prints instead of paging
    return app


if __name__ == "__main__":
    main(sys.argv[1])
