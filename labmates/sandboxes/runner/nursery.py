"""The process from which kernels are forked, and the orders that it takes."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import site
import socket
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from .files import list_files, open_file
from .filter import refuse_calls
from .forking import drop_streams, fork, reap
from .kernel import make_app
from .output import MESSAGE_CHARS, encodable
from .packages import find_only
from .processes import adopt_orphans, find_strays, limit_resources, oom_kills, set_dumpable, spent_seconds

_PACKET_BYTES = 60_000
_SWEEPS = 200
_SEND_SECONDS = 5.0
_PAUSE_MILLISECONDS = 20
_LIKELY = (
    "matplotlib.pyplot", "scipy.stats", "sklearn.ensemble", "sklearn.model_selection", "statsmodels.api", "seaborn",
)  # fmt: skip


def main(settings_path: str) -> None:
    """Serve the session that the settings describe.

    The settings: `control` (path of the control socket), `ports` (channel to number), `data` (CSV file, which need not
    be there before the first kernel is asked for), `fonts` (folder with matplotlib's list of fonts, or null), `alone`
    (true if all processes that can be seen are the session's own), `idle` (seconds without an order after which likely
    modules are imported), `modules` (names of those that are found among the packages, or null for all), `memory`,
    `address_space` (whether `memory` also limits that), `file_bytes`, `processes` (or null) and `open_files`.
    """
    settings = json.loads(Path(settings_path).read_bytes())
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(settings["control"])
    try:
        nursery = Nursery(settings, control)
    except BaseException:
        tell(control, {"is": "failed", "text": traceback.format_exc()[-MESSAGE_CHARS:]})
        os._exit(1)
    nursery.serve()


def tell(control: socket.socket, answer: dict[str, Any]) -> None:
    """Send one answer; without the other side there is nothing left to do."""
    try:
        control.send(json.dumps(answer, ensure_ascii=False).encode())
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
        adopt_orphans()
        if settings["alone"]:
            refuse_calls()
        # The kernel reads descriptors 1 and 2 itself and copies what arrives there to the originals, too.
        drop_streams()
        if settings["fonts"]:
            shutil.copytree(settings["fonts"], os.environ["MPLCONFIGDIR"], dirs_exist_ok=True)
        self._out = Path("out").absolute()
        self._out.mkdir(exist_ok=True)
        site.sethelper()  # Python was started without its module `site`
        if settings["modules"] is not None:
            find_only(settings["modules"])
        import numpy as np
        import pandas as pd
        from patsy.eval import EvalFactor  # type: ignore[import-untyped]

        # A set of these decides which fault of a formula is told. By default, their hash has an address in it.
        EvalFactor.__hash__ = lambda factor: hash(factor.code)
        np.set_printoptions(legacy="1.25")  # 0.5 instead of np.float64(0.5), which is a tenth of what agents read
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
            case "spent":
                tell(self._control, {"is": "spent", "seconds": spent_seconds()})
            case "sweep":
                tell(self._control, {"is": "swept", "ended": self._sweep(self._kernel, order["above"])})
            case "list":
                files, left_out = list_files(self._out)
                tell(self._control, {"is": "listed", "files": files, "left_out": left_out})
            case "open":
                opened = open_file(self._out, order["name"])
                tell(self._control, {"is": "opened", "found": opened is not None})
                if opened is not None:
                    self._send(opened)

    def _send(self, opened: int) -> None:
        """Send the content of a file to the other side's socket for it, beside that of the orders."""
        with open(opened, "rb") as file, contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SEND_SECONDS)
            connection.connect(str(Path(self._settings["control"]).with_name("kept")))
            connection.sendfile(file)

    def _load(self) -> str:
        read = self._names["pd"].read_csv
        try:
            self._df = read(self._settings["data"], float_precision="round_trip", low_memory=False)
        except BaseException as error:
            return encodable(f"{type(error).__name__}: {error}")[:MESSAGE_CHARS]
        return ""

    def _start(self, number: int, key: str, listeners: list[int]) -> None:
        self._sweep(spared=0)
        self._number = number
        try:
            gc.freeze()
            self._complaints, complain = os.pipe()
            channels = dict(zip(self._settings["ports"], listeners, strict=bool(listeners)))
            self._kernel = fork(partial(self._become_kernel, key, channels, complain))
        except BaseException:
            self._tell_exit(1, traceback.format_exc()[-MESSAGE_CHARS:])
            return
        finally:
            for listener in listeners:
                os.close(listener)
        os.close(complain)

    def _become_kernel(self, key: str, listeners: dict[str, int], complain: int) -> None:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._control.close()
            set_dumpable(True)
            with contextlib.suppress(OSError):
                Path("/proc/self/oom_score_adj").write_text("900")  # rather this process than the one that can tell
            app = make_app({**self._settings, "key": key, "number": self._number, "listeners": listeners})
            app.shell.user_ns.update(self._names, df=self._df)
            sys.argv = [""]  # as in a session that was started by hand: parsers of arguments find none
            gc.freeze()
            gc.enable()
            os.close(complain)
            app.start()
        except BaseException:
            with contextlib.suppress(OSError):
                os.write(complain, traceback.format_exc()[-MESSAGE_CHARS:].encode())

    def _reap(self) -> None:
        for pid, status in reap():
            if pid == self._kernel:
                text = ""
                os.set_blocking(self._complaints, False)
                with contextlib.suppress(BlockingIOError):  # a child of the kernel holds the other end
                    text = os.read(self._complaints, 2 * MESSAGE_CHARS).decode(errors="replace")
                self._tell_exit(os.waitstatus_to_exitcode(status), text)

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
                # Together, with the spared one for a moment: stopped processes can't fork faster than they are killed.
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
