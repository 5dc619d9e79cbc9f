"""Inside the sandbox: set the limits, load the data set, and fork the session's Jupyter kernels.

Stands alone: of all our files this is the only one that a sandbox can see. Used as ``python runner.py SETTINGS``, where
SETTINGS is a JSON file (see `main`). What is limited here is limited out of politeness, so that a clumsy cell does not
cost its session; against hostile code the limits of the other side of the sockets count.

The process that starts is no kernel: it imports what every kernel needs, and then takes orders on its control socket.
Each kernel is a fork of it, so that a kernel that was lost is replaced in a fraction of a second. While no kernel was
asked for, it imports what agents' code is most likely to need, which takes seconds that nobody waits for.

Orders and answers are JSON objects, one a packet, with file descriptors beside them:

- ``{"do": "load"}``: read the data set. Answer: ``{"is": "loaded", "text": TEXT}``; TEXT says what is wrong with it.
- ``{"do": "start", "number": N, "key": KEY}`` with the listening sockets of the channels: end all other processes and
  fork kernel N. Answered when it has ended: ``{"is": "exited", "number": N, "code": C, "oom": BOOL, "text": TEXT}``,
  where TEXT says why it could not start.
- ``{"do": "sweep", "above": N}``: end all processes but the kernel if there are more than N. Answer: ``{"is": "swept",
  "ended": BOOL}``.
- ``{"do": "list"}``: ``{"is": "listed", "files": [[NAME, SIZE, VERSION], ...], "left_out": N}``, the files in ``out/``.
- ``{"do": "open", "name": NAME}``: ``{"is": "opened"}`` with a descriptor, or without one if there is no such file.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # imports only add objects; looking for garbage among them takes a tenth of the start

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import site
import socket
import stat
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, NoReturn, cast

import zmq
from ipykernel.compiler import XCachingCompiler
from ipykernel.iostream import OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core import page
from jupyter_client.session import Session
from traitlets.config import Config

_PACKET_BYTES = 60_000
_HEADROOM = 64 << 20  # what a full kernel is still given, so that `del x` and a traceback work
_OVERRUN = 512 << 20  # how far beyond the limit all headroom together may go
_TEXT_CHARS = 2_000_000  # text of one cell
_TAIL_CHARS = 2_000  # the end of a longer text, which is kept too
_MESSAGE_CHARS = 4_000  # an exception's own text
_FRAMES = 6  # frames of one traceback, from its beginning and from its end
_IMAGES = 10  # figures of one cell
_IMAGE_CHARS = 11_500_000  # one figure in base64: 8 MB and a little
_FILES = 40  # files in `out/` that are told of
_NAME_CHARS = 200
_DEPTH = 3  # folders below one another in `out/`
_ENTRIES = 2_000  # entries of `out/` that are looked at
_SWEEPS = 200
_PAUSE_MILLISECONDS = 20
_LIKELY = (
    "matplotlib.pyplot", "scipy.stats", "sklearn.ensemble", "sklearn.model_selection", "statsmodels.api", "seaborn",
)  # fmt: skip
_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main(settings_path: str) -> None:
    """Serve the session that the settings describe.

    The settings: `control` (path of the control socket), `ports` (channel to number), `data` (CSV file, which need not
    be there before the first kernel is asked for), `fonts` (folder with matplotlib's list of fonts, or null), `alone`
    (true if all processes that can be seen are the session's own), `idle` (seconds without an order after which likely
    modules are imported), `memory`, `file_bytes`, `processes` (or null) and `open_files`.
    """
    settings = json.loads(Path(settings_path).read_bytes())
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(settings["control"])
    try:
        nursery = Nursery(settings, control)
    except BaseException:
        tell(control, {"is": "failed", "text": traceback.format_exc()[-_MESSAGE_CHARS:]})
        os._exit(1)
    nursery.serve()


def tell(control: socket.socket, answer: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one answer; without the other side there is nothing left to do."""
    try:
        socket.send_fds(control, [json.dumps(answer, ensure_ascii=False).encode()], descriptors)
    except OSError:
        leave()


def leave() -> NoReturn:
    """End this process and, where no namespace does it, those that it has started."""
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


class Nursery:
    """The process from which kernels are forked."""

    def __init__(self, settings: dict[str, Any], control: socket.socket) -> None:
        self._settings = settings
        self._control = control
        self._number = self._kernel = 0
        self._complaints = -1
        self._df: Any = None
        set_dumpable(False)  # so the kernels, of the same user, can't look into this process or take its sockets
        limit_resources(settings)
        # The kernel reads descriptors 1 and 2 itself and copies what arrives there to the originals, too.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        if settings["fonts"]:
            shutil.copytree(settings["fonts"], os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
        self._out = Path("out").absolute()
        self._out.mkdir(exist_ok=True)
        site.sethelper()  # Python was started without its module `site`
        # A debugger is large, and nobody will debug. With pyarrow, pandas would take other types for texts, and 500 MB.
        cast(dict[str, Any], sys.modules).update(debugpy=None, pyarrow=None)
        import numpy as np
        import pandas as pd

        self._names = {"np": np, "pd": pd}
        self._likely = list(_LIKELY)
        self._idle_milliseconds = int(1000 * settings["idle"])
        self._ooms = oom_kills()

    def serve(self) -> NoReturn:
        """Carry out orders until the other side is gone."""
        bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGINT, lambda *_: None)  # it is for the kernel, which is of the same group
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(ring)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(bell, select.POLLIN)
        while True:
            waits = self._likely and not self._number
            patience = self._idle_milliseconds if len(self._likely) == len(_LIKELY) else _PAUSE_MILLISECONDS
            ready = dict(poll.poll(patience if waits else None))
            if not ready:
                with contextlib.suppress(ImportError):
                    importlib.import_module(self._likely.pop(0))
            if bell in ready:
                os.read(bell, 4096)
                self._reap()
            if self._control.fileno() in ready:
                packet, descriptors, _flags, _from = socket.recv_fds(self._control, _PACKET_BYTES, 8)
                if not packet:
                    leave()
                self._obey(json.loads(packet), descriptors)

    def _obey(self, order: dict[str, Any], descriptors: list[int]) -> None:
        match order["do"]:
            case "load":
                tell(self._control, {"is": "loaded", "text": self._load()})
            case "start":
                self._start(order["number"], order["key"], descriptors)
            case "sweep":
                tell(self._control, {"is": "swept", "ended": self._sweep(self._kernel, order["above"])})
            case "list":
                files, left_out = list_files(self._out)
                tell(self._control, {"is": "listed", "files": files, "left_out": left_out})
            case "open":
                opened = open_file(self._out, order["name"])
                tell(self._control, {"is": "opened"}, () if opened is None else (opened,))
                if opened is not None:
                    os.close(opened)

    def _load(self) -> str:
        read = self._names["pd"].read_csv
        try:
            self._df = read(self._settings["data"], float_precision="round_trip", low_memory=False)
        except BaseException as error:
            return encodable(f"{type(error).__name__}: {error}")[:_MESSAGE_CHARS]
        return ""

    def _start(self, number: int, key: str, listeners: list[int]) -> None:
        self._sweep(spared=0)
        self._number = number
        try:
            gc.freeze()
            self._complaints, complain = os.pipe()
            self._kernel = os.fork()
        except BaseException:
            self._tell_exit(1, traceback.format_exc()[-_MESSAGE_CHARS:])
            return
        finally:
            if self._kernel:
                for listener in listeners:
                    os.close(listener)
        if self._kernel == 0:
            self._become_kernel(key, dict(zip(self._settings["ports"], listeners, strict=True)), complain)
        os.close(complain)

    def _become_kernel(self, key: str, listeners: dict[str, int], complain: int) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._control.close()
            set_dumpable(True)
            die_with_parent()
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text("900")  # rather this process than the one that can tell
            app = make_app({**self._settings, "key": key, "listeners": listeners})
            app.shell.user_ns.update(self._names, df=self._df)
            gc.freeze()
            gc.enable()
            os.close(complain)
            app.start()
        except BaseException:
            with contextlib.suppress(OSError):
                os.write(complain, traceback.format_exc()[-_MESSAGE_CHARS:].encode())
        finally:
            os._exit(1)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._kernel:
                    text = ""
                    os.set_blocking(self._complaints, False)
                    with contextlib.suppress(BlockingIOError):  # a child of the kernel holds the other end
                        text = os.read(self._complaints, 2 * _MESSAGE_CHARS).decode(errors="replace")
                    self._tell_exit(os.waitstatus_to_exitcode(ended[1]), text)

    def _tell_exit(self, code: int, text: str) -> None:
        self._kernel = 0
        if self._complaints >= 0:
            os.close(self._complaints)
            self._complaints = -1
        before, self._ooms = self._ooms, oom_kills()
        exit_ = {"is": "exited", "number": self._number, "code": code, "oom": self._ooms > before, "text": text}
        tell(self._control, exit_)

    def _sweep(self, spared: int, above: int = -1) -> bool:
        """End all processes but the first one, this one and the one to be `spared`, if there are more than `above`."""
        if not self._settings["alone"] or len(find_strays(spared)) <= above:
            return False
        for _ in range(_SWEEPS):
            with contextlib.suppress(ProcessLookupError):  # there is no other process left
                # Together, and the spared one for a moment too: what is stopped can't fork faster than it is ended.
                os.kill(-1, signal.SIGSTOP if spared else signal.SIGKILL)
            strays = find_strays(spared)
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if not strays:
                break
            time.sleep(0.002)
        if spared and spared == self._kernel:
            os.kill(spared, signal.SIGCONT)
        return True


def find_strays(spared: int) -> list[int]:
    """Return the processes that live, but for the first one, this one and the `spared` one."""
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if is_stray(pid, spared)]


def is_stray(pid: int, spared: int) -> bool:
    """Tell whether the process `pid` lives and is neither the first one, nor this one, nor the `spared` one."""
    if pid in (1, os.getpid(), spared):
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def oom_kills() -> int:
    """Return how often the kernel of the machine has killed a process of this container for want of memory."""
    for path in _OOM_COUNTERS:
        with contextlib.suppress(OSError, ValueError):
            counters = dict(line.split() for line in Path(path).read_text().splitlines())
            return int(counters.get("oom_kill", 0))
    return 0


def list_files(folder: Path) -> tuple[list[list[Any]], int]:
    """Return name, size and version of the files in `folder`, and how many entries are left out."""
    files: list[list[Any]] = []
    looked_at = left_out = 0

    def walk(descriptor: int, prefix: str, depth: int) -> None:
        nonlocal looked_at, left_out
        with os.scandir(descriptor) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                looked_at += 1
                name = prefix + entry.name
                if looked_at > _ENTRIES:
                    return
                if entry.is_dir(follow_symlinks=False) and depth < _DEPTH:
                    inner = os.open(entry.name, _FOLDER, dir_fd=descriptor)
                    try:
                        walk(inner, f"{name}/", depth + 1)
                    finally:
                        os.close(inner)
                elif entry.is_file(follow_symlinks=False) and len(name) <= _NAME_CHARS and len(files) < _FILES:
                    about = entry.stat(follow_symlinks=False)
                    files.append([encodable(name), about.st_size, f"{about.st_mtime_ns}-{about.st_ino}"])
                else:
                    left_out += 1

    with contextlib.suppress(OSError):
        root = os.open(folder, _FOLDER)
        try:
            walk(root, "", 1)
        finally:
            os.close(root)
    return files, left_out


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def open_file(folder: Path, name: str) -> int | None:
    """Return a descriptor of a regular file below `folder`; no link is followed."""
    *folders, last = name.split("/")
    opened = [-1]
    try:
        opened = [os.open(folder, _FOLDER)]
        for part in folders:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1])
    except OSError:
        return None
    finally:
        for descriptor in opened:
            if descriptor >= 0:
                os.close(descriptor)
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    return None


def set_dumpable(dumpable: bool) -> None:
    """Let other processes of this user look into this one, or not."""
    ctypes.CDLL(None).prctl(4, int(dumpable))  # PR_SET_DUMPABLE


def die_with_parent() -> None:
    """Have this process killed as soon as its parent ends, however that ends."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def limit_resources(settings: dict[str, Any]) -> None:
    """Set the limits of this process and its children."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: settings["file_bytes"]}
    limits[resource.RLIMIT_NOFILE] = settings["open_files"]
    if settings["processes"] is not None:
        limits[resource.RLIMIT_NPROC] = settings["processes"]
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (value, value))
    resource.setrlimit(resource.RLIMIT_DATA, (settings["memory"], settings["memory"] + _OVERRUN))


def give_headroom(memory: int) -> None:
    """Let a kernel that is full of data allocate a little more: a fixed limit would fail its every later cell."""
    status = Path("/proc/self/status").read_bytes()
    used = int(status.partition(b"VmData:")[2].split(None, 1)[0]) << 10
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

    _is_flushed = True

    def write(self, string: str) -> int:
        """Send as much of `string` as the budget allows."""
        kept = BUDGET.take(string) if isinstance(string, str) else string
        if kept != "":
            super().write(kept)
            self._is_flushed = False
        return len(string)

    def write_tail(self) -> None:
        """Send the end of what was too much."""
        if tail := BUDGET.tail():
            super().write(tail)
            self._is_flushed = False

    def flush(self) -> None:
        """Send what was written, if anything was: every cell flushes many times, and waits for another thread."""
        if not self._is_flushed:
            self._is_flushed = True  # before the flush: what another thread writes meanwhile needs one more
            super().flush()  # type: ignore[no-untyped-call]


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

    def _send_interrupt_children(self) -> None:
        os.killpg(0, signal.SIGINT)


class App(IPKernelApp):
    """A kernel's application that listens where it is told to, and asks nobody else."""

    settings: ClassVar[dict[str, Any]] = {}

    def _do_nothing(self, *_arguments: Any, **_options: Any) -> None:
        """Do nothing: the settings say it all, and the end of the process is noticed without a heart that beats."""

    parse_command_line = load_config_file = _do_nothing  # a parser takes long to make; files are of earlier kernels
    init_connection_file = write_connection_file = init_heartbeat = _do_nothing

    def _try_bind_socket(self, socket: Any, port: int) -> Any:
        channel = next(name for name, number in self.settings["ports"].items() if number == port)
        socket.setsockopt(zmq.USE_FD, self.settings["listeners"][channel])
        return super()._try_bind_socket(socket, port)  # type: ignore[no-untyped-call]


def make_app(settings: dict[str, Any]) -> Any:
    """Return the kernel's application, ready to be started."""
    memory = Shell.memory = settings["memory"]
    App.settings = settings
    app: Any = App.instance(
        session=TrimmedSession(key=settings["key"].encode(), username="kernel"),
        transport="ipc",
        ip="/k",  # no such path: the sockets are handed down
        kernel_class=Kernel,
        outstream_class=f"{__name__}.CappedStream",
        log_level=50,  # critical
        config=Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"cache_size": 0}}),
        **{f"{channel}_port": number for channel, number in settings["ports"].items()},
    )
    app.initialize()
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
