"""What is special about bubblewrap; what holds for every isolated back end is tested with all of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

import labmates
from labmates.sandboxes import bubblewrap, interpreter
from labmates.sandboxes.bubblewrap import BubblewrapLauncher
from labmates.sandboxes.session import KernelBackend, KernelSandbox
from tests.sandboxes.backends import make_backend

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.needs("bubblewrap")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def isolated(data: Path) -> AsyncIterator[KernelSandbox]:
    backend = make_backend("bubblewrap")
    yield await backend.open(data)
    await backend.close()


async def test_private_folders_have_a_size(isolated: KernelSandbox) -> None:
    code = "import os\nsizes = [os.statvfs(path) for path in ('/tmp', '/home/agent', '/dev/shm')]\n"
    result = await isolated.run(code + "[size.f_blocks * size.f_frsize >> 20 for size in sizes]")
    assert result.text == "[256, 256, 64]\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_code_that_root_starts_does_not_run_as_root(isolated: KernelSandbox) -> None:
    result = await isolated.run("import os; print(os.getuid(), open('/proc/self/uid_map').read().split())")
    uid, maps = result.text.split(" ", 1)
    assert int(uid) > 60_000
    assert "'0', '0', '4294967295'" in maps  # no user namespace: the number means the same outside


async def test_packages_that_hold_the_truth_are_masked_where_they_are_installed(
    monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    ours = interpreter.this_interpreter()
    package = Path(labmates.__file__).parent
    installed = replace(ours, roots=(*ours.roots, package.parent), packages=(*ours.packages, package.parent))
    installed = replace(installed, roots=interpreter.outermost(installed.roots))
    monkeypatch.setattr(bubblewrap, "this_interpreter", lambda: installed)
    backend = KernelBackend("bubblewrap", BubblewrapLauncher())
    session = await backend.open(data)
    result = await session.run(f"import os; os.listdir({str(package)!r}), os.path.exists({str(package.parent)!r})")
    await backend.close()
    assert result.text == "([], True)\n"


async def test_a_user_namespace_isolates_as_well(data: Path) -> None:
    way = bubblewrap._WAYS[-1]
    if (why := bubblewrap._try(way)) is not None:
        pytest.skip(f"no user namespaces: {why}")
    backend = KernelBackend("bubblewrap", BubblewrapLauncher(way=way))
    session = await backend.open(data)
    result = await session.run("import os; os.getuid(), os.access('/home', os.W_OK), os.access('/tmp', os.W_OK)")
    await backend.close()
    assert result.text == "(1000, False, True)\n"
