from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.session import KernelSandbox
from tests.sandboxes.backends import make_backend, wait_until_gone

pytestmark = [pytest.mark.timeout(300), pytest.mark.needs("docker")]


@pytest.mark.needs("gvisor")
def test_auto_takes_gvisor() -> None:
    assert choose_backend("auto", trusted_code=False).backend.name == "gvisor"


@pytest.fixture
async def session(data: Path) -> AsyncIterator[KernelSandbox]:
    backend = make_backend("gvisor")
    yield await backend.open(data)
    await backend.close()
    await wait_until_gone("gvisor")


@pytest.mark.needs("gvisor")
async def test_code_under_gvisor_computes_draws_and_writes_files(session: KernelSandbox) -> None:
    drawn = await session.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()", timeout=60)
    assert len(drawn.images) == 1
    written = await session.run("open('out/a.txt', 'w').write('a' * 500_000); open('out/b.txt', 'w').write('b')")
    assert [(file.name, len(file.content)) for file in written.files] == [("a.txt", 500_000), ("b.txt", 1)]
    large = await session.run("open('out/large.bin', 'wb').write(bytes(9 << 20))")
    assert (large.files, "left out" in large.note) == ((), True)
    assert (await session.run("while True: pass", timeout=1)).status == "timeout"
    died = await session.run("import os; os._exit(1)")
    assert (died.status, died.state_lost) == ("died", True)
    answer = (await session.run("import platform; df.shape, platform.release()", timeout=60)).text
    assert answer.startswith("((3, 3), '4.")  # the version that gVisor's own kernel gives


@pytest.mark.needs("gvisor")
async def test_under_gvisor_one_process_and_its_threads_get_errors_at_their_limits(session: KernelSandbox) -> None:
    await session.run("kept = 7")
    assert "MemoryError" in (await session.run("x = np.ones(400_000_000)")).text
    bomb = "import threading\nstop = threading.Event()\ntry:\n    for _ in range(2000):\n"
    bomb += "        threading.Thread(target=stop.wait, daemon=True).start()\nexcept RuntimeError as error:\n"
    bomb += "    print(error)\nstop.set()"
    assert "can't start new thread" in (await session.run(bomb)).text
    assert (await session.run("kept")).text == "7\n"
