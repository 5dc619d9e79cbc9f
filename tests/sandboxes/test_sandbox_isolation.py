"""What code in bubblewrap must not be able to do."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

import labmates
from labmates.sandboxes import bubblewrap, interpreter
from labmates.sandboxes.bubblewrap import BubblewrapLauncher
from labmates.sandboxes.session import KernelBackend, KernelSandbox

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.needs("bubblewrap")]

REPOSITORY = Path(labmates.__file__).parent.parent


@pytest.fixture(scope="module")
def secret() -> Iterator[None]:
    os.environ["OPENAI_API_KEY"] = "sk-never-to-be-seen"
    yield
    del os.environ["OPENAI_API_KEY"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def isolated(secret: None, data: Path) -> AsyncIterator[KernelSandbox]:
    backend = KernelBackend("bubblewrap", BubblewrapLauncher())
    yield await backend.open(data)
    await backend.close()


async def test_a_listener_on_this_machine_is_out_of_reach(isolated: KernelSandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()  # it does listen
        result = await isolated.run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert "ConnectionRefusedError" in result.text


async def test_there_is_no_network_but_loopback(isolated: KernelSandbox) -> None:
    result = await isolated.run("import socket; [name for _, name in socket.if_nameindex()]")
    assert result.text == "['lo']\n"


async def test_our_environment_is_not_visible(isolated: KernelSandbox) -> None:
    code = "from pathlib import Path\nimport os\nenvironments = [str(os.environ)]\n"
    code += "for path in Path('/proc').glob('[0-9]*/environ'):\n"
    code += "    try: environments.append(path.read_text())\n    except OSError: pass\n"
    result = await isolated.run(f"{code}len(environments) > 1, any('sk-never' in text for text in environments)")
    assert result.text == "(True, False)\n"


@pytest.mark.parametrize(
    "path",
    ["/etc/shadow", "/etc/passwd", str(REPOSITORY / "labmates" / "__init__.py"), str(REPOSITORY / "pyproject.toml"),
     str(Path.home() / ".bashrc"), "/var/log", "/proc/1/root/etc/shadow"],
)  # fmt: skip
async def test_files_of_this_machine_cannot_be_read(isolated: KernelSandbox, path: str) -> None:
    code = f"import os\nos.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}).read()"
    assert (await isolated.run(code)).status == "error"


async def test_our_own_package_cannot_be_imported(isolated: KernelSandbox) -> None:
    assert "ModuleNotFoundError" in (await isolated.run("import labmates")).text


async def test_only_the_private_folders_can_be_written(isolated: KernelSandbox) -> None:
    code = """
import os
written = []
for folder, inner, _ in os.walk('/'):
    inner[:] = [] if folder.count('/') > 4 or folder in ('/proc', '/usr/share') else inner
    try:
        with open(os.path.join(folder, 'probe'), 'x'):
            written.append(folder)
    except OSError:
        pass
print(*sorted({'/'.join(folder.split('/')[:3]) for folder in written}))
"""
    assert (await isolated.run(code)).text == "/dev/shm /home/agent /tmp\n"


async def test_the_data_cannot_be_changed(isolated: KernelSandbox, data: Path) -> None:
    assert (await isolated.run("open('/data/data.csv', 'a')")).status == "error"


async def test_private_folders_have_a_size(isolated: KernelSandbox) -> None:
    code = "import os\nsizes = [os.statvfs(path) for path in ('/tmp', '/home/agent', '/dev/shm')]\n"
    result = await isolated.run(code + "[size.f_blocks * size.f_frsize >> 20 for size in sizes]")
    assert result.text == "[256, 256, 64]\n"


async def test_there_are_no_rights_and_no_way_to_gain_any(isolated: KernelSandbox) -> None:
    code = "lines = open('/proc/self/status').read().splitlines()\n"
    code += "status = dict(line.split(':\\t') for line in lines if line.startswith(('Cap', 'NoNewPrivs')))\n"
    result = await isolated.run(
        f"{code}print(*(status[name] for name in ('CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs')))"
    )
    assert result.text == f"{'0' * 16} {'0' * 16} {'0' * 16} 1\n"


async def test_processes_outside_are_not_visible(isolated: KernelSandbox) -> None:
    result = await isolated.run("import os; max(int(name) for name in os.listdir('/proc') if name.isdigit()) < 1000")
    assert result.text == "True\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_code_that_root_starts_does_not_run_as_root(isolated: KernelSandbox) -> None:
    result = await isolated.run("import os; print(os.getuid(), open('/proc/self/uid_map').read().split())")
    uid, maps = result.text.split(" ", 1)
    assert int(uid) > 60_000
    assert "'0', '0', '4294967295'" in maps  # no user namespace: the number means the same outside


async def test_a_fork_bomb_ends_at_the_limit(isolated: KernelSandbox) -> None:
    code = "import os\nchildren = []\ntry:\n    while len(children) < 1000:\n"
    code += "        children.append(os.posix_spawn('/usr/bin/sleep', ['sleep', '60'], {}))\nexcept OSError: pass\n"
    code += "for child in children:\n    os.kill(child, 9); os.waitpid(child, 0)\n100 < len(children) < 256"
    assert (await isolated.run(code)).text == "True\n"


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
