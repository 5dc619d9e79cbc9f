"""The Jupyter kernel that executes an agent's cells."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn

import zmq
from ipykernel.compiler import XCachingCompiler
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core import page
from IPython.core.autocall import ZMQExitAutocall
from jupyter_client.session import Session
from traitlets import Instance
from traitlets.config import Config

from .output import BUDGET, short_traceback, short_warning, show_warning, trim
from .processes import give_headroom
from .stream import Output


class TrimmedSession(Session):
    """Sends no message that is larger than the other side takes."""

    def serialize(self, msg: dict[str, Any], ident: Any = None) -> Any:
        """Frames of `msg`, trimmed."""
        return super().serialize({**msg, "content": trim(msg["header"]["msg_type"], msg["content"])}, ident)


class CellCompiler(XCachingCompiler):
    """Names each cell by its number instead of a temporary file."""

    def get_code_name(self, _raw: str, _code: str, number: int) -> str:
        """The name shown in tracebacks."""
        return f"<cell {number}>"


class Leave(ZMQExitAutocall):
    """The function `exit` of cells, which ends its cell as that of Python ends a program."""

    def __call__(self, code: object = None) -> NoReturn:
        """Raise `SystemExit`."""
        raise SystemExit(code)


class Shell(ZMQInteractiveShell):
    """Shows short tracebacks, survives a full memory, and ends cells, but not itself, by `SystemExit`."""

    memory = 0
    exiter = Instance(Leave, ())
    _process = 0  # that of the kernel while a cell runs

    async def run_ast_nodes(
        self,
        nodelist: Any,
        cell_name: str,
        interactivity: str = "last_expr",
        compiler: Any = compile,
        result: Any = None,
    ) -> Any:
        """Run a cell; a process that it forked ends with it, or it would answer in the kernel's place."""
        self._process = os.getpid()
        failed = await super().run_ast_nodes(nodelist, cell_name, interactivity, compiler, result)
        if self._is_fork():
            code = getattr(result.error_in_exec, "code", result.error_in_exec is not None)
            os._exit(code & 255 if isinstance(code, int) else 1)
        self._process = 0
        return failed

    def _is_fork(self) -> bool:
        return self._process not in (0, os.getpid())

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> Any:
        """Run a part of a cell; True if the cell is to end with it."""
        ends = await super().run_code(code_obj, result, async_=async_)  # type: ignore[no-untyped-call]
        if result is not None and isinstance(result.error_in_exec, SystemExit) and not result.error_in_exec.code:
            result.error_in_exec = None  # it ended as its author wants
        return ends

    def ask_exit(self) -> None:
        """End the cell."""
        raise SystemExit

    def showtraceback(self, exc_tuple: Any = None, *_args: Any, **_options: Any) -> None:
        """Show the current exception."""
        kind, error, trace = self._get_exc_info(exc_tuple)  # type: ignore[no-untyped-call]
        if isinstance(error, MemoryError):
            traceback.clear_frames(trace)
            give_headroom(self.memory)
        lines = short_traceback(error, trace)
        if isinstance(error, SystemExit):
            # IPython would advise to type `exit` now, in words of its own.
            warnings.filterwarnings("ignore", "To exit: use", UserWarning)
            lines = lines[-1:] * bool(error.code)
            if not self._is_fork():
                lines.append("The call ended here, as its code asked. Variables are kept.")
        if self._is_fork():  # the kernel alone may send messages
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            return
        self._showtraceback(kind, error, lines)  # type: ignore[no-untyped-call]
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
    """A kernel's application that listens on the given sockets and reads no configuration."""

    settings: ClassVar[dict[str, Any]] = {}

    def _do_nothing(self, *_arguments: Any, **_options: Any) -> None:
        """No setup: the settings are complete, and the end of the process is noticed without a heartbeat."""

    parse_command_line = load_config_file = _do_nothing  # a parser takes long to make; files are of earlier kernels
    init_connection_file = write_connection_file = init_heartbeat = _do_nothing

    def init_sockets(self) -> None:
        """Make the channels; where the other side listens, connect them at last, or a debugger's socket would, too."""
        self._reaching: list[tuple[Any, int]] = []
        super().init_sockets()  # type: ignore[no-untyped-call]
        for socket, port in self._reaching:
            socket.connect(f"ipc://{self.settings['sockets']}{self.settings['number']}-{port}")

    def _try_bind_socket(self, socket: Any, port: int) -> Any:
        channel = next(name for name, number in self.settings["ports"].items() if number == port)
        if not self.settings["listeners"]:
            if channel != "stdin":  # by which nobody asks
                self._reaching.append((socket, port))
            return port
        socket.setsockopt(zmq.USE_FD, self.settings["listeners"][channel])
        return super()._try_bind_socket(socket, port)  # type: ignore[no-untyped-call]


def make_app(settings: dict[str, Any]) -> Any:
    """The kernel's application, ready to be started."""
    memory = Shell.memory = settings["memory"]
    App.settings = settings
    app: Any = App.instance(
        session=TrimmedSession(key=settings["key"].encode(), username="kernel"),
        transport="ipc",
        ip="/k",  # no such path: the sockets are handed down
        kernel_class=Kernel,
        outstream_class=f"{Output.__module__}.{Output.__name__}",
        log_level=50,  # critical
        config=Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"cache_size": 0}}),
        **{f"{channel}_port": number for channel, number in settings["ports"].items()},
    )
    app.initialize()
    stdout: Any = sys.stdout
    warnings.formatwarning, warnings.showwarning = short_warning, show_warning
    shell = app.shell

    def before(_info: Any) -> None:
        BUDGET.reset()
        shell.history_manager.outputs.clear()
        give_headroom(memory)

    def after(_result: Any) -> None:
        stdout.write_tail()
        sys.stdout = sys.stderr = stdout  # or a cell that replaced them would mute all that follow

    shell.events.register("pre_run_cell", before)
    shell.events.register("post_run_cell", after)
    show: Any = page.as_hook(page.display_page)  # type: ignore[no-untyped-call]
    shell.set_hook("show_in_pager", show, 0)  # `name?` prints instead of paging
    return app
