"""What is special about Docker; what holds for every isolated back end is tested with all of them."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from docker.errors import APIError

import labmates
from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.container import ContainerLauncher
from labmates.sandboxes.engine import GVISOR, connect, offers_gvisor
from labmates.sandboxes.process import Limits
from labmates.sandboxes.session import KernelBackend, KernelSandbox
from tests.sandboxes.backends import descriptors, leftovers, make_backend, wait_until_gone
from tests.sandboxes.memory import peak_memory, reset_peak_memory

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.needs("docker")]

OWN_NETWORK = str(Path("/proc/self/ns/net").readlink())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[KernelBackend]:
    backend = make_backend("docker")
    yield backend
    await backend.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(backend: KernelBackend, data: Path) -> KernelSandbox:
    return await backend.open(data)


def container_of(session: KernelSandbox) -> Any:
    assert session._place is not None
    return session._place.enclosure._container  # type: ignore[attr-defined]


async def test_a_container_has_the_limits_and_rights_that_it_should(session: KernelSandbox) -> None:
    container = container_of(session)
    await asyncio.to_thread(container.reload)
    host, config = container.attrs["HostConfig"], container.attrs["Config"]
    assert config["User"] == "10001:10001"
    assert (host["NetworkMode"], host["ReadonlyRootfs"], host["Privileged"]) == ("none", True, False)
    assert config["NetworkDisabled"] is True
    assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], None)
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert (host["Memory"], host["MemorySwap"]) == (2 << 30, 2 << 30)
    assert (host["PidsLimit"], host["NanoCpus"], host["Init"]) == (256, 10**9, True)
    assert host["Devices"] in (None, [])
    mounts = {mount["Destination"]: mount["RW"] for mount in container.attrs["Mounts"]}
    assert mounts == {"/data": False, "/run/labmates": False, "/etc/hosts": False}
    assert host["LogConfig"]["Config"]["max-size"] == "1m"


async def test_every_container_has_a_network_of_its_own_that_knows_no_host_but_itself(
    backend: KernelBackend, session: KernelSandbox, data: Path
) -> None:
    code = "import os; print(os.readlink('/proc/self/ns/net'), open('/etc/resolv.conf').read().strip())"
    neighbour = await backend.open(data)
    found = [(await one.run(code)).text.strip() for one in (session, neighbour)]
    await neighbour.close()
    assert len({*found, OWN_NETWORK}) == 3
    addresses = "import socket; sorted({one[4][0] for one in socket.getaddrinfo('localhost', 80)})"
    assert (await session.run(addresses)).text == "['127.0.0.1', '::1']\n"


async def test_files_count_as_memory_but_leave_room_to_work(session: KernelSandbox) -> None:
    code = "open('/tmp/a', 'wb').write(bytes(200 << 20)); open('/home/agent/b', 'wb').write(bytes(200 << 20))"
    assert (await session.run(code)).status == "ok"
    assert (await session.run("np.ones(100_000_000).sum()", timeout=60)).status == "ok"
    await session.run("import os; os.unlink('/tmp/a'); os.unlink('/home/agent/b')")


async def test_a_container_that_somebody_removes_is_replaced(session: KernelSandbox) -> None:
    await session.run("kept = 1")
    running = asyncio.create_task(session.run("import time; time.sleep(60)", timeout=60))
    await asyncio.sleep(0.5)
    await asyncio.to_thread(container_of(session).remove, force=True)
    result = await running
    assert (result.status, result.state_lost) == ("died", True)
    assert "variables and files of earlier calls are gone" in result.note
    assert (await session.run("df.shape")).text == "(3, 3)\n"


@pytest.mark.usefixtures("short_waits")
async def test_a_container_that_is_frozen_is_replaced(session: KernelSandbox) -> None:
    await session.run("kept = 1")
    for attempt in range(20):  # an engine under load may fail to freeze a container at the first try
        try:
            await asyncio.to_thread(container_of(session).pause)
            break
        except APIError:
            assert attempt < 19
            await asyncio.sleep(0.25)
    result = await session.run("1", timeout=1)
    assert result.state_lost
    assert (await session.run("df.shape")).text == "(3, 3)\n"


async def test_limits_can_be_chosen(data: Path) -> None:
    limits = Limits(memory=300 << 20, scratch=8 << 20, processes=40)
    backend = KernelBackend("docker", ContainerLauncher(connect(), limits))
    session = await backend.open(data)
    assert "MemoryError" in (await session.run("np.ones(40_000_000)")).text
    assert "OSError" in (await session.run("open('/tmp/x', 'wb').write(bytes(9 << 20))")).text
    await backend.close()


async def test_a_container_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    before = leftovers("docker")
    launcher = ContainerLauncher(connect(), Limits(memory=1 << 20))  # less than the engine allows
    backend = KernelBackend("docker", launcher)
    with pytest.raises(SandboxError, match="memory"):
        await backend.open(data)
    await backend.close()
    await wait_until_gone("docker", spared=before)


async def test_the_engine_is_asked_for_the_runtime_of_gvisor(data: Path) -> None:
    client = connect()
    backend = KernelBackend("gvisor", ContainerLauncher(client, runtime=GVISOR))
    if offers_gvisor(client):
        client.close()
        pytest.skip("the engine has gVisor's runtime")
    with pytest.raises(SandboxError, match="runsc"):
        await backend.open(data)
    await backend.close()
    with pytest.raises(UsageError, match="no runtime 'runsc'; install gVisor"):
        choose_backend("gvisor", trusted_code=True)


@pytest.mark.slow("tests/sandboxes/test_sandbox_conformance.py")
@pytest.mark.timeout(400)
async def test_sessions_eight_at_a_time_leak_nothing(data: Path) -> None:
    before = leftovers("docker")

    async def use(number: int) -> None:
        # Each time with a client of its own: one keeps as many connections as were ever in use at once.
        backend, gate = make_backend("docker"), asyncio.Semaphore(8)

        async def use_one() -> str:
            async with gate:
                session = await backend.open(data)
                result = await session.run(
                    "open('out/x', 'w').write('x' * 1000); print(df['count'].sum())", timeout=120
                )
                assert [len(file.content) for file in result.files] == [1000]
                await session.close()
                return result.text

        assert await asyncio.gather(*(use_one() for _ in range(number))) == ["6\n"] * number
        await backend.close()

    await use(8)  # what is made once, is made now
    gc.collect()
    open_before, memory_before = descriptors(), reset_peak_memory()
    await use(24)
    assert peak_memory() - memory_before < 40 << 20
    assert descriptors() <= open_before
    await wait_until_gone("docker", spared=before)


OWNER = """
import asyncio, sys
from pathlib import Path
from labmates.sandboxes.choose import choose_backend

async def main():
    backend = choose_backend("docker", trusted_code=True).backend
    sessions = await asyncio.gather(*(backend.open(Path(sys.argv[1])) for _ in range(int(sys.argv[2]))))
    print("open", flush=True)
    await asyncio.gather(*(session.run("while True: pass", timeout=600) for session in sessions))

asyncio.run(main())
"""


@contextmanager
def starting(data: Path, sessions: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that owns so many sessions, in each of which code runs."""
    command = [sys.executable, "-c", OWNER, str(data), str(sessions)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(labmates.__file__).parents[1]) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        yield owner


async def test_clean_removes_all_that_a_killed_owner_of_eight_sessions_has_left(data: Path) -> None:
    with starting(data, sessions=8) as owner:
        owned = leftovers("docker", owner.pid)
        assert sum(what.startswith("container running") for what in owned) == 8
        assert sum(what.startswith("folder") for what in owned) == 8
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    await wait_until_gone("docker", owner.pid, "container running")  # without their owner they end by themselves
    # How much of it is still there is not known: whatever starts meanwhile in other processes sweeps, too.
    clean = [str(Path(sys.executable).with_name("labmates")), "sandbox", "clean"]
    done = subprocess.run(clean, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert done.returncode == 0, done.stderr
    await wait_until_gone("docker", owner.pid, "")


async def test_the_next_start_removes_them_as_well(data: Path) -> None:
    with starting(data, sessions=1) as owner:
        assert leftovers("docker", owner.pid)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    await wait_until_gone("docker", owner.pid, "container running")
    backend = make_backend("docker")
    await (await backend.open(data)).close()
    await wait_until_gone("docker", owner.pid, "")
    await backend.close()
