"""Commands as agents: a program in bubblewrap or Docker, from which only the server of its seat can be reached."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from labmates.agents.organisation_parts import Seat
from labmates.errors import MissingExtraError, UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.bubblewrap import bubblewrap_works, enclosed_program, process_limit
from labmates.sandboxes.folders import own_folder
from labmates.sandboxes.interpreter import FLAGS, this_interpreter
from labmates.sandboxes.local import end_if_too_large, kill_group
from labmates.sandboxes.output import Printed
from labmates.sandboxes.process import Limits
from labmates.sandboxes.runner import filter as call_filter
from labmates_doors.seats.containers import Ended, check_image, run_in_container
from labmates_doors.seats.endpoint import served
from labmates_doors.seats.session import SeatError, SeatSession

PORT = 8643
"""Where a program finds the server of its seat, on the only network that it has."""
ORDER = "{order}"
"""In a command, stands for the order; without it, the order comes on standard input."""
_COMPLAINT_CHARS = 1_000
_INSIDE = Path("/opt/labmates")
_OURS = Path(__file__).with_name("inside")


def check_command(name: str, seat: Seat) -> None:
    """Check that the command of a seat can be started.

    Raises
    ------
    UsageError
        If its program is missing, neither bubblewrap nor Docker works on this machine, or its image is missing.
    """
    if not (why := _uses_docker(seat)):
        if _program(seat.command[0]) is None:
            raise UsageError(f"the seat {name}: there is no program '{seat.command[0]}'; install it, or give its path")
        return
    try:
        check_image(seat.image)
    except (UsageError, MissingExtraError) as error:
        if seat.image:
            raise UsageError(f"the seat {name}: image: {error}") from None
        raise UsageError(
            f"the seat {name}: its command runs in bubblewrap, which does not work here: {why} (on Debian: apt-get "
            f"install bubblewrap), or in Docker: {error}"
        ) from None


def _uses_docker(seat: Seat) -> str | None:
    """Why the command of a seat runs in Docker; None if it runs in bubblewrap."""
    return "it names an image" if seat.image else bubblewrap_works()


async def run_command(session: SeatSession, seat: Seat) -> str:
    """Run a seat's command as the agent of a session and return its standard output.

    Raises
    ------
    SeatError
        If it can't be started, is killed or ends with an error.
    """
    with own_folder() as folder:
        socket = folder / "seat.sock"
        async with served(session, path=socket):
            files = {socket: _INSIDE / "seat.sock", Path(call_filter.__file__): _INSIDE / "filter.py"}
            files |= {_OURS / name: _INSIDE / name for name in ("relay.py", "mcp_stdio.py")}
            # A program finds its files in its own folder.
            arguments = [part.replace(ORDER, session.order) for part in seat.command]
            given = "" if any(ORDER in part for part in seat.command) else session.order
            start = _in_docker if _uses_docker(seat) else _in_bubblewrap
            return await start(session, seat, arguments, files, given, folder)


async def _in_bubblewrap(
    session: SeatSession, seat: Seat, command: list[str], files: dict[Path, Path], given: str, folder: Path
) -> str:
    relay = [str(this_interpreter().executable), *FLAGS, *_relay(process_limit() or 0)]
    whole, environment = enclosed_program([*relay, *_inside(command)], {**_files(seat.command), **files}, folder)
    variables = {**environment, **seat.environment, **_environment(session, _python())}
    return await _ended(whole, variables, given)


async def _in_docker(
    session: SeatSession, seat: Seat, command: list[str], files: dict[Path, Path], given: str, folder: Path
) -> str:
    (folder / "input").write_text(given)
    (folder / "input").chmod(0o644)
    own = _program(command[0]) == this_interpreter().executable
    words = ["python3", *_relay(0), *(["python3", *command[1:]] if own else command)]
    variables = {**seat.environment, **_environment(session, ["python3"])}
    try:
        ended = await run_in_container(
            seat.image, words, {**_named(seat.command), **files}, variables, folder / "input"
        )
    except (SandboxError, UsageError) as error:
        raise SeatError(f"the agent's program could not be started: {error}") from error
    return _printed(ended)


def _relay(processes: int) -> list[str]:
    return [str(_INSIDE / "relay.py"), str(PORT), str(_INSIDE / "seat.sock"), str(processes)]


def _printed(ended: Ended) -> str:
    """The standard output of a program that ended well.

    Raises
    ------
    SeatError
        If it did not.
    """
    if ended.is_too_large:
        raise SeatError("the agent's program took more memory than a sandbox has, and was ended")
    if code := ended.status:
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        raise SeatError(f"the agent's program {how}. {str(ended.complaint)[-_COMPLAINT_CHARS:].strip()}".rstrip())
    return str(ended.printed)


def _environment(session: SeatSession, python: Sequence[str]) -> dict[str, str]:
    """Environment variables that describe a program's seat; the host's are not inherited."""
    url = f"http://127.0.0.1:{PORT}"
    stdio = [*python, str(_INSIDE / "mcp_stdio.py")]
    return {
        "LABMATES_URL": url,
        "LABMATES_KEY": session.key,
        "LABMATES_SEAT": session.speaker.agent,
        "LABMATES_MODEL": session.speaker.model,
        "LABMATES_MCP_URL": f"{url}/mcp",
        "LABMATES_MCP_COMMAND": json.dumps(stdio),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": session.key,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": session.key,
    }


async def _ended(command: Sequence[str], environment: dict[str, str], given: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SeatError(f"the agent's program could not be started: {error}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    watching = asyncio.create_task(end_if_too_large(process.pid, Limits().memory))
    try:
        printed, complaint, _ = await asyncio.gather(
            _read(process.stdout), _read(process.stderr), _feed(process.stdin, given)
        )
        code = await process.wait()
    finally:
        watching.cancel()
        kill_group(process.pid)
        await process.wait()
    return _printed(Ended(code, printed, complaint, watching.done() and not watching.cancelled()))


async def _read(stream: asyncio.StreamReader) -> Printed:
    written = Printed()
    while piece := await stream.read(1 << 16):
        written.write(piece)
    return written


async def _feed(stream: asyncio.StreamWriter, text: str) -> None:
    with suppress(ConnectionError):
        stream.write(text.encode())
        await stream.drain()
    stream.close()


def _program(name: str) -> Path | None:
    """The program of a command, with no symbolic link in its path; our own Python for ``python``."""
    path = shutil.which(name)
    if path is None:
        return None
    own = this_interpreter().executable
    real = Path(path).resolve()
    return own if name in ("python", "python3") or real == own else real


def _inside(command: Sequence[str]) -> list[str]:
    """The command as it runs inside: its program by its path, and Python as in the lab's sandboxes."""
    program = _program(command[0])
    assert program is not None
    start = _python() if program == this_interpreter().executable else [str(program)]
    return [*start, *command[1:]]


def _python() -> list[str]:
    """The command of our Python with our packages; no other program gets a variable that names them."""
    interpreter = this_interpreter()
    packages = os.pathsep.join(map(str, interpreter.packages))
    return ["/usr/bin/env", f"PYTHONPATH={packages}", str(interpreter.executable), *FLAGS]


def _files(command: Sequence[str]) -> dict[Path, Path]:
    """Files that a command names: its program with its folder, and others outside the system folders."""
    program = _program(command[0])
    assert program is not None
    seen = [Path("/usr"), *this_interpreter().roots]
    return {
        path: path
        for path in (program, *_named(command))
        if not any(path.is_relative_to(root) for root in seen) and not path.is_relative_to("/proc")
    }


def _named(command: Sequence[str]) -> dict[Path, Path]:
    """Files that the arguments of a command name."""
    named = [Path(part) for part in command[1:] if Path(part).is_absolute() and Path(part).exists()]
    return {path: path for path in named}
