"""Nothing is left behind, however a session ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import cast

import pytest
from blockbuster import blockbuster_ctx

from labmates.sandboxes import folders
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.control import listening
from labmates.sandboxes.engine import connect
from labmates.sandboxes.leftovers import sweep_containers
from labmates.sandboxes.process import Enclosure
from labmates.sandboxes.session import _accept
from tests.sandboxes.backends import BACKENDS, descriptors, leftovers, make_backend, wait_until_gone

every = pytest.mark.parametrize("name", BACKENDS)


def data_to_come() -> asyncio.Future[Path]:
    """Return a data set that is still being made: until it is there, no session is open."""
    return asyncio.get_running_loop().create_future()


@every
async def test_many_sessions_leave_no_process_folder_or_descriptor(name: str, data: Path) -> None:
    backend = make_backend(name)
    await (await backend.open(data)).close()  # what is made once, is made now
    await backend.close()
    await wait_until_gone(name)
    before = descriptors()
    backend = make_backend(name)
    sessions = await asyncio.gather(*(backend.open(data) for _ in range(3)))
    assert [(await session.run("len(df)")).text for session in sessions] == ["3\n"] * 3
    await asyncio.gather(*(session.close() for session in sessions))
    await backend.close()
    assert descriptors() <= before  # fewer where the loop closes something of the first session only now
    await wait_until_gone(name)


@every
async def test_no_part_of_a_session_blocks_the_event_loop(name: str, data: Path) -> None:
    backend = make_backend(name)
    with blockbuster_ctx("labmates"):  # as in LangGraph's server
        session = await backend.open(data)
        assert (await session.run("len(df)")).text == "3\n"
        await session.close()
    await backend.close()


async def test_closing_a_back_end_closes_its_sessions_and_may_be_done_twice(data: Path) -> None:
    backend = make_backend("unsafe-local")
    session = await backend.open(data)
    await backend.close()
    await backend.close()
    await wait_until_gone("unsafe-local")
    with pytest.raises(SandboxError, match="closed"):
        await session.run("1")
    with pytest.raises(SandboxError, match="closed"):
        await backend.open(data)


@every
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5])
async def test_a_cancelled_open_leaves_nothing(name: str, seconds: float) -> None:
    before = descriptors()
    backend = make_backend(name)
    opening = asyncio.create_task(backend.open(data_to_come()))  # under way, however fast the machine is
    await asyncio.sleep(seconds)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await wait_until_gone(name)
    await backend.close()
    assert descriptors() <= before


class _Enclosure:
    """One that never ends."""

    async def ended(self) -> str:
        await asyncio.Event().wait()
        return ""


@pytest.mark.parametrize("steps", range(8))
async def test_a_runner_that_connects_as_opening_is_cancelled_is_let_go(steps: int, tmp_path: Path) -> None:
    path = tmp_path / "control"
    with warnings.catch_warnings(record=True) as left_open:
        async with listening(path) as listener:
            await _connect_and_cancel(listener, path, steps)
    assert [str(one.message) for one in left_open] == []


async def _connect_and_cancel(listener: socket.socket, path: Path, steps: int) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as runner:
        warnings.simplefilter("always", ResourceWarning)
        accepting = asyncio.create_task(_accept(listener, cast(Enclosure, _Enclosure())))
        await asyncio.sleep(0.01)
        runner.connect(str(path))
        for _ in range(steps):
            await asyncio.sleep(0)
        accepting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            (await accepting).close()
        del accepting
        gc.collect()


async def test_closing_a_back_end_ends_an_open_that_is_under_way(data: Path) -> None:
    backend = make_backend("unsafe-local")
    coming = data_to_come()
    opening = asyncio.create_task(backend.open(coming))
    await asyncio.sleep(0.3)
    await backend.close()
    coming.set_result(data)
    with pytest.raises(SandboxError):
        await opening
    await wait_until_gone("unsafe-local")


async def test_a_close_that_is_cancelled_goes_on(data: Path) -> None:
    session = await make_backend("unsafe-local").open(data)
    closing = asyncio.create_task(session.close())
    await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing
    await wait_until_gone("unsafe-local")


def test_an_event_loop_that_ends_takes_its_sessions_along(data: Path) -> None:
    async def interrupted() -> None:
        backend = make_backend("unsafe-local")
        try:
            session = await backend.open(data)
            asyncio.get_running_loop().call_later(0.2, asyncio.current_task().cancel)  # type: ignore[union-attr]
            await session.run("while True: pass")
        finally:
            await backend.close()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    asyncio.run(wait_until_gone("unsafe-local"))


async def test_a_data_set_that_is_no_table_is_a_sandbox_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.touch()
    with pytest.raises(SandboxError, match="EmptyDataError"):
        await make_backend("unsafe-local").open(path)
    await wait_until_gone("unsafe-local")


OWNER = """
import asyncio, sys
from pathlib import Path
from labmates.sandboxes.choose import choose_backend

async def main():
    session = await choose_backend(sys.argv[1], trusted_code=True).backend.open(Path(sys.argv[2]))
    print("open", flush=True)
    await session.run("while True: pass", timeout=600)

asyncio.run(main())
"""


@every
def test_a_killed_owner_takes_its_kernels_along_and_its_folders_are_swept(name: str, data: Path) -> None:
    command = [sys.executable, "-c", OWNER, name, str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(folders.__file__).parents[2]) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        kind = "container running" if name == "docker" else "process"
        assert any(what.startswith(kind) for what in leftovers(name, owner.pid))
        # Not when it is dead: another process of labmates may sweep them before we look.
        assert any("folder" in what for what in leftovers(name, owner.pid))
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    asyncio.run(wait_until_gone(name, owner.pid, kind))
    folders.sweep_folders()
    if name == "docker":
        sweep_containers(connect())
    asyncio.run(wait_until_gone(name, owner.pid))  # another process may be in the middle of removing them


def test_sweeping_spares_the_folders_of_the_living_and_of_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = folders.new_folder()
    _, _, namespace, pid, start, _ = ours.name.split("-", 5)
    elsewhere = tmp_path / f"labmates-sandbox-1{namespace}-{pid}-1-x"  # another process namespace
    reused = tmp_path / f"labmates-sandbox-{namespace}-{pid}-1-x"  # an earlier process of our number
    unknown = tmp_path / "labmates-sandbox-notes"
    for folder in (elsewhere, reused, unknown):
        folder.mkdir()
    assert int(pid) == os.getpid()
    assert int(start) > 0
    assert folders.sweep_folders() == [reused]
    assert ours.is_dir()
    assert ours.stat().st_mode & 0o777 == 0o700
    assert elsewhere.is_dir()
    assert unknown.is_dir()
