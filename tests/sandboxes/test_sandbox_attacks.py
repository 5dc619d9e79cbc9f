"""What code in an isolated sandbox must not be able to do, tried; every time the agent is told, and goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import labmates
from labmates.sandboxes.session import KernelBackend, KernelSandbox
from tests.sandboxes.backends import ISOLATED, make_backend
from tests.sandboxes.memory import peak_memory, reset_peak_memory

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPOSITORY = Path(labmates.__file__).parent.parent
SECRET = "sk-never-to-be-seen"


@pytest.fixture(scope="module")
def secret() -> Iterator[None]:
    os.environ["OPENAI_API_KEY"] = SECRET
    yield
    del os.environ["OPENAI_API_KEY"]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=ISOLATED)
async def isolated_backend(secret: None, request: pytest.FixtureRequest) -> AsyncIterator[KernelBackend]:
    backend = make_backend(request.param)
    yield backend
    await backend.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def isolated(isolated_backend: KernelBackend, data: Path) -> KernelSandbox:
    return await isolated_backend.open(data)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def neighbour(isolated_backend: KernelBackend, data: Path) -> KernelSandbox:
    """Another agent's session, which must not notice anything."""
    session = await isolated_backend.open(data)
    await session.run(
        "kept = 'of the neighbour'; open('note.txt', 'w').write(kept); open('/tmp/note', 'w').write(kept)"
    )
    return session


async def works_as_before(session: KernelSandbox) -> None:
    result = await session.run("print(kept, open('note.txt').read(), df.shape)")
    assert result.text == "of the neighbour of the neighbour (3, 3)\n"


# The data of others

SEARCH = """
import os
found = []
for top, folders, names in os.walk('/'):
    folders[:] = [name for name in folders if name not in ('proc', 'sys', 'usr', 'lib', 'lib64', 'site-packages')]
    for path in (os.path.join(top, name) for name in names):
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 4096 and b'{marker}' in open(path, 'rb').read():
                found.append(path)
        except OSError:
            pass
print(sorted(found), list(df.columns))
"""


ROOTS = """
import glob
def text(path):
    try:
        return open(path).read()
    except OSError:
        return ''
print([path for path in glob.glob('/proc/*/root/data/*') if '{marker}' in text(path)])
"""


async def test_no_agent_reads_the_part_of_another(isolated_backend: KernelBackend, tmp_path: Path) -> None:
    parts = {name: tmp_path / f"data-{name}.csv" for name in ("readings", "register")}
    for name, path in parts.items():
        path.write_text(f"column_of_{name}\nmark-of-the-{name}-42\n")
    sessions = {name: await isolated_backend.open(path) for name, path in parts.items()}
    for mine, other in (("readings", "register"), ("register", "readings")):
        own = await sessions[mine].run(SEARCH.format(marker=f"mark-of-the-{mine}-42"))
        assert own.text == f"['/data/data.csv'] ['column_of_{mine}']\n"
        strange = await sessions[mine].run(SEARCH.format(marker=f"mark-of-the-{other}-42"))
        assert strange.text == f"[] ['column_of_{mine}']\n"
        tries = [f"/data/data-{other}.csv", "/data/../data-2.csv", str(parts[other])]
        for tried in tries:
            assert "FileNotFoundError" in (await sessions[mine].run(f"pd.read_csv({tried!r})")).text
        roots = await sessions[mine].run(ROOTS.format(marker=f"mark-of-the-{other}-42"))
        assert roots.text == "[]\n"
    for session in sessions.values():
        await session.close()


# The network


async def test_a_listener_on_this_machine_is_out_of_reach(isolated: KernelSandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()  # it does listen
        result = await isolated.run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
    assert "ConnectionRefusedError" in result.text


async def test_there_is_no_network_but_loopback(isolated: KernelSandbox) -> None:
    result = await isolated.run("import socket; [name for _, name in socket.if_nameindex()]")
    assert result.text == "['lo']\n"


@pytest.mark.parametrize("address", ["1.1.1.1", "172.17.0.1", "169.254.169.254", "10.0.0.1"])
async def test_the_world_and_the_gateway_are_out_of_reach(isolated: KernelSandbox, address: str) -> None:
    result = await isolated.run(f"import socket; socket.create_connection(('{address}', 80), 2)")
    assert (result.status, "unreachable" in result.text) == ("error", True)


async def test_names_are_not_looked_up(isolated: KernelSandbox) -> None:
    assert "gaierror" in (await isolated.run("import socket; socket.getaddrinfo('pypi.org', 443)")).text


async def test_no_interface_can_be_made(isolated: KernelSandbox) -> None:
    result = await isolated.run("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)")
    assert result.status == "error"


# Files and environment of this machine


@pytest.mark.parametrize(
    "path",
    ["/etc/shadow", str(REPOSITORY / "labmates" / "__init__.py"), str(REPOSITORY / "pyproject.toml"),
     str(Path.home() / ".bashrc"), "/var/run/docker.sock", "/run/docker.sock", "/proc/1/root/etc/shadow",
     "/proc/kcore", "/dev/mem", "/dev/sda", "/dev/vda"],
)  # fmt: skip
async def test_files_of_this_machine_cannot_be_read(isolated: KernelSandbox, path: str) -> None:
    code = f"import os\nos.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}, 'rb').read(64)"
    assert (await isolated.run(code)).status == "error"


async def test_the_engines_socket_is_nowhere(isolated: KernelSandbox) -> None:
    code = """
import os, stat
found = []
for folder, inner, names in os.walk('/'):
    inner[:] = [] if folder in ('/proc', '/sys') else inner
    for name in names:
        try:
            if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode):
                found.append(os.path.join(folder, name))
        except OSError:
            pass
found
"""
    assert (await isolated.run(code)).text == "[]\n"


async def test_a_users_file_with_a_secret_is_not_there(isolated: KernelSandbox, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(SECRET)
    path.chmod(0o644)
    assert "FileNotFoundError" in (await isolated.run(f"open({str(path)!r})")).text


async def test_our_environment_is_not_visible(isolated: KernelSandbox) -> None:
    code = "from pathlib import Path\nimport os\nenvironments = [str(os.environ)]\n"
    code += "for path in Path('/proc').glob('[0-9]*/environ'):\n"
    code += "    try: environments.append(path.read_text())\n    except OSError: pass\n"
    result = await isolated.run(f"{code}len(environments) > 1, any({SECRET[:8]!r} in text for text in environments)")
    assert result.text == "(True, False)\n"


async def test_our_own_package_cannot_be_imported(isolated: KernelSandbox) -> None:
    assert "ModuleNotFoundError" in (await isolated.run("import labmates")).text


# Writing


async def test_only_the_private_folders_can_be_written(isolated: KernelSandbox) -> None:
    code = """
import os
written = []
for folder, inner, _ in os.walk('/'):
    inner[:] = [] if folder.count('/') > 4 or folder in ('/proc', '/usr/share') else inner
    try:
        path = os.path.join(folder, 'probe')
        with open(path, 'x'):
            written.append(folder)
        os.unlink(path)
    except OSError:
        pass
print(*sorted({'/'.join(folder.split('/')[:3]) for folder in written}))
"""
    written = set((await isolated.run(code)).text.split())
    assert written - {"/dev/mqueue"} == {"/dev/shm", "/home/agent", "/tmp"}  # queues hold less than a megabyte


@pytest.mark.parametrize(
    "code",
    ["open('/data/data.csv', 'a')", "import os; os.unlink('/data/data.csv')", "import os; os.chmod('/data', 0o777)",
     "open('/run/labmates/settings.json', 'a')", "open('/opt/labmates/runner/nursery.py', 'a')",
     "open('/run/labmates/runner/nursery.py', 'a')",
     "open('/proc/sys/kernel/core_pattern', 'w')", "open('/proc/sysrq-trigger', 'w')",
     "import os; os.mknod('/tmp/disk', 0o60666, os.makedev(254, 0))",
     "import ctypes, os\nif ctypes.CDLL(None, use_errno=True).mount(b'none', b'/tmp', b'tmpfs', 0, 0): raise OSError",
     "import os; os.chroot('/tmp')", "import os; os.setuid(0)"],
)  # fmt: skip
async def test_what_is_not_private_cannot_be_changed(isolated: KernelSandbox, code: str) -> None:
    assert (await isolated.run(code)).status == "error"


async def test_the_disk_cannot_be_filled(isolated: KernelSandbox, neighbour: KernelSandbox) -> None:
    code = """
import os
written = {}
for folder in ('/tmp', '/home/agent', '/dev/shm'):
    files = [open(f'{folder}/fill{number}', 'wb') for number in range(3)]
    written[folder] = 0
    for file in files:
        try:
            for _ in range(200):
                written[folder] += os.write(file.fileno(), bytes(4 << 20))
        except OSError as error:
            last = error
    for file in files:
        file.close()
        os.unlink(file.name)
print({folder: size >> 20 for folder, size in written.items()}, last.strerror)
"""
    result = await isolated.run(code, timeout=120)
    assert "'/tmp': 256, '/home/agent': 256, '/dev/shm': 64} No space left on device" in result.text.replace(
        "255", "256"
    )
    await works_as_before(neighbour)


async def test_a_session_with_full_folders_goes_on(isolated: KernelSandbox) -> None:
    fill = "for folder in ('/tmp', '/home/agent', '/dev/shm'):\n    file = open(f'{folder}/fill', 'wb', buffering=0)\n"
    fill += "    try:\n        while True: file.write(bytes(1 << 20))\n    except OSError: pass"
    await isolated.run(fill, timeout=60)
    assert (await isolated.run("print('still here')")).text == "still here\n"
    await isolated.run("import os; os._exit(1)")
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    await isolated.run("import os\nfor folder in ('/tmp', '/home/agent', '/dev/shm'): os.unlink(f'{folder}/fill')")


# Rights


async def test_there_are_no_rights_and_no_way_to_gain_any(isolated: KernelSandbox) -> None:
    code = "lines = open('/proc/self/status').read().splitlines()\n"
    code += "status = dict(line.split(':\\t') for line in lines if line.startswith(('Cap', 'NoNewPrivs')))\n"
    result = await isolated.run(
        f"{code}print(*(status[name] for name in ('CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs')))"
    )
    assert result.text == f"{'0' * 16} {'0' * 16} {'0' * 16} 1\n"


async def test_code_does_not_run_as_root(isolated: KernelSandbox) -> None:
    assert (await isolated.run("import os; os.getuid() >= 1000, os.getgid() >= 1000, os.getgroups()")).text.startswith(
        "(True, True, "
    )


async def test_processes_outside_are_not_visible(isolated: KernelSandbox, neighbour: KernelSandbox) -> None:
    code = "import os; [open(f'/proc/{name}/cmdline').read()[:40] for name in os.listdir('/proc') if name.isdigit()]"
    result = await isolated.run(code)
    assert result.text.count("runner/__main__.py") + result.text.count("python") <= 4
    assert str(os.getpid()) not in (await isolated.run("import os; os.listdir('/proc')")).text


async def test_the_runner_cannot_be_looked_into(isolated: KernelSandbox) -> None:
    """It holds the control socket: with that, code could speak to this side as if it were the runner."""
    code = """
import ctypes, os
parent = os.getppid()
tried = {}
for name in ('fd', 'mem', 'environ', 'maps'):
    try:
        path = f'/proc/{parent}/{name}'
        tried[name] = os.listdir(path) if name == 'fd' else open(path, 'rb').read(1)
    except OSError as error:
        tried[name] = type(error).__name__
libc = ctypes.CDLL(None, use_errno=True)
tried['ptrace'] = libc.ptrace(16, parent, 0, 0)
try:
    pidfd = os.pidfd_open(parent)
    tried['getfd'] = libc.syscall(438, pidfd, 4, 0)
except OSError as error:
    tried['getfd'] = -1
print(tried)
"""
    refused = (
        "'fd': 'PermissionError', 'mem': 'PermissionError', 'environ': 'PermissionError', 'maps': 'PermissionError'"
    )
    assert (await isolated.run(code)).text == f"{{{refused}, 'ptrace': -1, 'getfd': -1}}\n"


# The kernel of the machine

CALLS = """
import ctypes, errno, platform, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == 'aarch64'
space = ctypes.create_string_buffer(256)
def tried(number, *arguments):
    ctypes.set_errno(0)
    done = libc.syscall(number, *arguments)
    return errno.errorcode[ctypes.get_errno()] if done == -1 else f'came through: {done}'
"""


@pytest.mark.parametrize(
    "call",
    [
        "217 if arm else 248, b'user', b'name', b'x', 1, -3",  # add_key
        "219 if arm else 250, 0, -3, 1",  # keyctl
        "425, 4, space",  # io_uring_setup
        "426, 0, 0, 0, 0, 0, 0",  # io_uring_enter
        "280 if arm else 321, 0, space, 128",  # bpf
        "241 if arm else 298, space, 0, -1, -1, 0",  # perf_event_open
        "282 if arm else 323, 1",  # userfaultfd, of user mode alone
        "270 if arm else 310, 1, space, 1, space, 1, 0",  # process_vm_readv
        "97 if arm else 272, 0x10000000",  # unshare
        "220 if arm else 56, 0x10000000 | 17, 0, 0, 0, 0",  # clone
        "40 if arm else 165, b'none', b'/tmp', b'tmpfs', 0, 0",  # mount
        "264 if arm else 303, -100, b'/', space, space, 0",  # name_to_handle_at
        "0x40000000 + 39",  # getpid of x32
    ],
)
async def test_system_calls_that_code_has_no_use_for_are_refused(isolated: KernelSandbox, call: str) -> None:
    assert (await isolated.run(f"{CALLS}tried({call})")).text == "'EPERM'\n"


async def test_new_forms_and_strange_sockets_are_said_to_be_missing(isolated: KernelSandbox) -> None:
    code = f"{CALLS}[tried(435, space, 64), *(tried(198 if arm else 41, family, 3, 0) for family in (17, 38, 40))]"
    assert (await isolated.run(code)).text == "['ENOSYS', 'EAFNOSUPPORT', 'EAFNOSUPPORT', 'EAFNOSUPPORT']\n"
    code = f"{CALLS}[tried(457, space, space, 64, 0), *(tried(198 if arm else 41, 16, 3, kind) for kind in (6, 9, 12))]"
    assert (await isolated.run(code)).text == "['ENOSYS', 'EAFNOSUPPORT', 'EAFNOSUPPORT', 'EAFNOSUPPORT']\n"
    code = "import socket\n[name for _, name in socket.if_nameindex()]"
    assert (await isolated.run(code)).text == "['lo']\n"


async def test_programs_that_code_starts_are_under_the_filter_too(isolated: KernelSandbox) -> None:
    inner = f"{CALLS}print(tried(425, 4, space))"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], capture_output=True).stdout"
    assert (await isolated.run(code)).text == "b'EPERM\\n'\n"


async def test_the_filter_cannot_be_taken_off(isolated: KernelSandbox) -> None:
    allow = "struct.pack('=HBBI', 6, 0, 0, 0x7fff0000)"
    code = f"""{CALLS}
import struct
class Program(ctypes.Structure):
    _fields_ = (('length', ctypes.c_ushort), ('filter', ctypes.c_void_p))
rule = ctypes.create_string_buffer({allow}, 8)
added = libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(rule))), 0, 0)
off = libc.prctl(22, 0, 0, 0, 0)
added, off, tried(425, 4, space)"""
    assert (await isolated.run(code)).text == "(0, -1, 'EPERM')\n"


async def test_nothing_answers_a_second_runner(isolated: KernelSandbox) -> None:
    code = "import socket\nsocket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('/run/labmates/control')"
    assert (await isolated.run(code)).status == "error"


# Processes


async def test_a_process_whose_name_is_no_text_costs_nobody_a_thing(isolated: KernelSandbox) -> None:
    code = """
import os, time
reads, writes = os.pipe()
if (child := os.fork()) == 0:
    open('/proc/self/comm', 'wb').write(b'\\xff\\xfe')
    os.write(writes, b'!')
    time.sleep(60)
    os._exit(0)
named = os.read(reads, 1)
"""
    result = await isolated.run(code)
    assert (result.status, result.state_lost) == ("ok", False)
    assert (await isolated.run("named")).text == "b'!'\n"
    await isolated.run("os.kill(child, 9), os.waitpid(child, 0)")  # others who use this sandbox count its processes


async def test_a_fork_bomb_ends_at_the_limit(isolated: KernelSandbox, neighbour: KernelSandbox) -> None:
    code = "import os\nchildren = []\ntry:\n    while len(children) < 1000:\n"
    code += "        children.append(os.posix_spawn('/usr/bin/sleep', ['sleep', '60'], {}))\nexcept OSError: pass\n"
    code += "for child in children:\n    os.kill(child, 9); os.waitpid(child, 0)\n100 < len(children) < 256"
    assert (await isolated.run(code)).text == "True\n"
    await works_as_before(neighbour)


LIVING = """
import os
def lives(process):
    try:
        return open(f'/proc/{process}/stat').read().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False
print(sum(lives(name) for name in os.listdir('/proc') if name.isdigit()))
"""


async def living(session: KernelSandbox) -> int:
    """Processes that run; a kernel that goes on keeps those that were ended until its code waits for them."""
    return int((await session.run(LIVING)).text)


OTHER = pytest.mark.slow("tests/sandboxes/test_sandbox_attacks.py")
"""An attack of a kind that has quicker ones."""


@pytest.mark.parametrize(
    "bomb",
    [pytest.param("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", marks=OTHER),
     pytest.param(
         "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)", marks=OTHER),
     "import subprocess\nsubprocess.run(['sh', '-c', 'b() { b | b & }; b'])\nwhile True: pass"],
)  # fmt: skip
async def test_a_fork_bomb_that_goes_on_is_ended(isolated: KernelSandbox, neighbour: KernelSandbox, bomb: str) -> None:
    result = await isolated.run(bomb, timeout=2)
    assert result.status in ("timeout", "died", "error")
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    for _ in range(40):  # the last of what was ended may be still there for a moment; a bomb that goes on would grow
        if (left := await living(isolated)) <= 6:
            break
        await asyncio.sleep(0.1)
    assert left <= 6
    await works_as_before(neighbour)


async def test_a_crowd_that_a_call_leaves_running_is_ended(isolated: KernelSandbox) -> None:
    await isolated.run("import subprocess\nstarted = []")
    code = "started += [subprocess.Popen(['sleep', '99'], start_new_session=True) for _ in range(COUNT)]"
    result = await isolated.run(code.replace("COUNT", "20"))
    assert (result.status, result.note) == ("ok", "")  # a pool of workers may stay
    assert (await isolated.run("{one.poll() for one in started}")).text == "{None}\n"
    result = await isolated.run(code.replace("COUNT", "40"))
    assert (result.status, result.note) == ("ok", "It left more than 32 processes running; they were ended.")
    assert (await isolated.run("{one.wait() for one in started}")).text == "{-9}\n"


async def test_a_thread_bomb_is_an_error(isolated: KernelSandbox) -> None:
    code = "import threading, time\nstop = threading.Event()\n"
    code += "try:\n    for _ in range(2000): threading.Thread(target=stop.wait, daemon=True).start()\n"
    code += "except RuntimeError as error: print(error)\nstop.set()"
    assert "can't start new thread" in (await isolated.run(code)).text
    assert (await isolated.run("1")).text == "1\n"


DAEMON = """
import os, sys, time
if (child := os.fork()) == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for descriptor in range(3, 64):
        try: os.close(descriptor)
        except OSError: pass
    time.sleep(1000)
os.waitpid(child, 0)
"""


async def test_a_daemon_is_ended_with_the_next_kernel(isolated: KernelSandbox) -> None:
    await isolated.run("import os; os._exit(1)")  # a kernel of its own, so that no other test's processes are counted
    before = await living(isolated)
    await isolated.run(DAEMON)
    assert await living(isolated) == before + 1
    await isolated.run("os._exit(1)")
    assert await living(isolated) == before


async def test_processes_that_a_cut_off_call_has_left_are_ended(isolated: KernelSandbox) -> None:
    await isolated.run("import subprocess; kept, started = 7, []")
    code = "while True:\n    if len(started) < 20:\n"
    code += "        started.append(subprocess.Popen(['sleep', '99'], start_new_session=True))"
    result = await isolated.run(code, timeout=1)
    assert (result.status, result.state_lost) == ("timeout", False)
    states = "print(*{open(f'/proc/{one.pid}/stat').read().split()[2] for one in started})"
    assert (await isolated.run(states)).text == "Z\n"  # ended; their parent has not looked yet
    await isolated.run("for one in started: one.wait()")
    assert (await isolated.run("kept")).text == "7\n"


async def test_a_session_that_ends_takes_its_daemons_along(isolated_backend: KernelBackend, data: Path) -> None:
    session = await isolated_backend.open(data)
    mark = f"{os.getpid()}77"
    await session.run(DAEMON.replace("time.sleep(1000)", f"os.execv('/usr/bin/sleep', ['sleep', '{mark}'])"))
    assert await turns_out(lambda: mark in commands()), "the daemon did not start"
    await session.close()
    # A namespace is taken down a moment after its first process.
    assert await turns_out(lambda: mark not in commands()), "the daemon lives on"


async def turns_out(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, at most a minute; whether it came true."""
    for _ in range(2400):
        if condition():
            return True
        await asyncio.sleep(0.025)
    return False


def commands() -> str:
    """Return the commands of all processes of this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(found)


async def test_orphans_are_collected(isolated: KernelSandbox) -> None:
    code = "import os, time\nfor _ in range(40):\n    if os.fork() == 0:\n        if os.fork(): os._exit(0)\n"
    code += "        time.sleep(0.05); os._exit(0)\n    os.wait()\n"
    code += """
def zombies():
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            count += b" Z " in open(f"/proc/{name}/stat", "rb").read()
        except OSError:  # it has just ended
            pass
    return count

end = time.monotonic() + 20
time.sleep(0.5)
while zombies() and time.monotonic() < end:
    time.sleep(0.1)  # on a busy machine the first process may be late
"""
    assert (await isolated.run(code + "zombies()", timeout=60)).text.splitlines()[-1] == "0"


KILLERS = [
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    # They kill the kernel's parents; until the kernel is killed in turn, its cell must not end by itself.
    "import os, signal, time; os.kill(-1, signal.SIGKILL); time.sleep(20)",
    "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(20)",
    "import os, signal; os.killpg(0, signal.SIGKILL)",
    "import os; os.abort()",
    "import ctypes; ctypes.string_at(0)",
    "get_ipython().kernel.do_shutdown(False); import os; os._exit(0)",
]


@pytest.mark.parametrize("code", KILLERS)
async def test_whatever_ends_the_kernel_the_agent_is_told_and_has_df_again(
    isolated: KernelSandbox, neighbour: KernelSandbox, code: str
) -> None:
    await isolated.run("kept = 1; df = None")
    result = await isolated.run(code, timeout=30)
    assert (result.status, result.state_lost) == ("died", True)
    assert "Python ended" in result.note
    assert "are gone" in result.note
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    await works_as_before(neighbour)


LATE_END = "import os, threading; threading.Timer(0.3, os._exit, [0]).start()"


@pytest.mark.parametrize("code", [LATE_END, "import os; os.kill(os.getppid(), 9); import time; time.sleep(0.2)"])
async def test_a_kernel_that_ends_after_its_call_is_noticed(isolated: KernelSandbox, code: str) -> None:
    await isolated.run("kept = 1")
    first = await isolated.run(code)
    if first.status == "ok" and isolated._kernel is not None:
        await isolated._kernel.exited.wait()
        second = await isolated.run("kept")
        assert (second.status, second.state_lost) == ("died", True)
        assert "was not run" in second.note
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize(
    "stopped", [pytest.param("os.getppid()", marks=OTHER), pytest.param("os.getpid()", marks=OTHER), "-1"]
)
async def test_stopping_processes_does_not_hold_us_up(
    isolated: KernelSandbox, neighbour: KernelSandbox, stopped: str
) -> None:
    result = await isolated.run(f"import os, signal; os.kill({stopped}, signal.SIGSTOP)", timeout=2)
    assert (result.status, result.state_lost) in (("died", True), ("timeout", True))
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    await works_as_before(neighbour)


STUBBORN = [
    # Made before: while the matrix is being made, an interrupt would be heard.
    ("large = np.random.default_rng(0).random((4000, 4000))", "np.linalg.svd(large)"),
    ("", "sum(range(10**13))"),
    ("", "import time\nwhile True:\n    try: time.sleep(0.01)\n    except BaseException: pass"),
    ("", "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(0.01)"),
]


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize(("before", "code"), STUBBORN)
async def test_code_that_ignores_interrupts_is_ended(
    isolated: KernelSandbox, neighbour: KernelSandbox, before: str, code: str
) -> None:
    assert (await isolated.run(before)).status == "ok"
    result = await isolated.run(code, timeout=0.5)
    assert (result.status, result.state_lost) == ("timeout", True)
    assert "did not react to the interrupt" in result.note
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    await works_as_before(neighbour)


@pytest.mark.parametrize(
    "code",
    ["import time; time.sleep(99)", "while True: pass", "import subprocess; subprocess.run(['sleep', '99'])",
     "!sleep 99", "import threading; threading.Event().wait()", "import queue; queue.Queue().get()"],
)  # fmt: skip
async def test_code_that_can_be_interrupted_keeps_its_variables(isolated: KernelSandbox, code: str) -> None:
    await isolated.run("kept = 7")
    result = await isolated.run(code, timeout=0.05)
    assert (result.status, result.state_lost) == ("timeout", False)
    assert (await isolated.run("kept")).text == "7\n"


# Memory


async def test_an_allocation_beyond_the_limit_is_an_error_and_the_neighbour_is_unharmed(
    isolated: KernelSandbox, neighbour: KernelSandbox
) -> None:
    await isolated.run("kept = 7")
    result = await isolated.run("x = np.ones(400_000_000)")
    assert "MemoryError" in result.text
    assert (await isolated.run("kept")).text == "7\n"
    await works_as_before(neighbour)


# Output


async def test_a_gigabyte_of_output_does_not_reach_us(isolated: KernelSandbox) -> None:
    before = reset_peak_memory()
    result = await isolated.run("for _ in range(1024): print('z' * (1 << 20))", timeout=120)
    assert peak_memory() - before < 60 << 20
    assert result.dropped_chars > 10**9
    assert len(result.text) < 8_200


async def test_output_of_a_child_is_cut_too(isolated: KernelSandbox) -> None:
    before = reset_peak_memory()
    result = await isolated.run("import subprocess; subprocess.run('yes | head -c 300000000', shell=True)", timeout=120)
    assert peak_memory() - before < 60 << 20
    assert len(result.text) < 8_200


FORGERIES = [
    # The kernel's own way to send, replaced: whatever it says is at most wrong for its own agent.
    "k = get_ipython().kernel\nk.session.send = lambda *a, **k: None\nprint('x')",
    pytest.param("k = get_ipython().kernel\nk.session.key = b'other'\nprint('x')", marks=OTHER),
    "import builtins, sys\nsys.stdout = None\nbuiltins.print = None",
    "k = get_ipython().kernel\nfor _ in range(50): "
    "k.iopub_thread.send_multipart([b'<IDS|MSG>', b'', b'{', b'[', b'', b'\\xff'])",
    "import json\nk = get_ipython().kernel\n"
    "k.session.send(k.iopub_socket, 'display_data', {'data': {'image/png': 'bm90IGEgcG5n'}, 'metadata': {}})",
    "import __main__\nk = get_ipython().kernel\nk.shell.run_cell = None\nk.do_execute = None",
    pytest.param("get_ipython().events.callbacks.clear()\nprint('y' * 30_000_000)", marks=OTHER),
]


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("code", FORGERIES)
async def test_a_kernel_whose_functions_are_replaced_harms_only_itself(
    isolated: KernelSandbox, neighbour: KernelSandbox, code: str
) -> None:
    before = reset_peak_memory()
    result = await isolated.run(code, timeout=2)
    assert peak_memory() - before < 120 << 20
    assert len(result.text) < 8_200
    assert all(image.startswith(b"\x89PNG") for image in result.images)
    await isolated.run("import os; os._exit(1)", timeout=1)
    assert (await isolated.run("df.shape", timeout=100)).text == "(3, 3)\n"
    await works_as_before(neighbour)


async def test_a_pickle_is_never_opened(isolated: KernelSandbox, tmp_path: Path) -> None:
    """What code returns is text, pictures and bytes: whoever opens the bytes knows where they come from."""
    target = tmp_path / "ran"
    code = f"""
import os, pickle
class Bomb:
    def __reduce__(self):
        return os.system, ('touch {target}',)
bomb = pickle.dumps(Bomb())
open('out/bomb.pkl', 'wb').write(bomb)
from IPython.display import display
display({{'application/x-python-pickle': bomb.hex(), 'text/plain': repr(bomb)}}, raw=True)
Bomb()
"""
    result = await isolated.run(code)
    assert [file.name for file in result.files] == ["bomb.pkl"]
    assert not target.exists()


async def test_links_in_out_lead_nowhere(isolated: KernelSandbox) -> None:
    code = """
import os
os.makedirs('out/inner', exist_ok=True)
os.symlink('/etc/passwd', 'out/link')
os.symlink('/proc/self/environ', 'out/inner/link')
os.symlink('/', 'out/root')
os.symlink('/home/agent/out', 'out/loop')
os.mkfifo('out/pipe')
open('out/plain.txt', 'w').write('plain')
"""
    result = await isolated.run(code)
    assert [(file.name, file.content) for file in result.files] == [("plain.txt", b"plain")]
    assert "left out" in result.note
    await isolated.run("import shutil; shutil.rmtree('out')")
    result = await isolated.run("os.symlink('/data', 'out')")
    assert result.files == ()
    await isolated.run("os.unlink('out'); os.mkdir('out')")


async def test_a_file_that_changes_while_it_is_read_is_only_a_file(isolated: KernelSandbox) -> None:
    code = """
import os, threading
def swap():
    while not os.path.exists('stop'):
        for source in ('/data/data.csv', '/etc/passwd'):
            try:
                os.symlink(source, 'out/new'); os.replace('out/new', 'out/swapped')
                open('out/new2', 'w').write('mine'); os.replace('out/new2', 'out/swapped')
            except OSError: pass
threading.Thread(target=swap, daemon=True).start()
"""
    await isolated.run(code)
    contents = {
        file.content for _ in range(60) for file in (await isolated.run("pass")).files if file.name == "swapped"
    }
    await isolated.run("open('stop', 'w').close()")
    assert contents <= {b"mine", b""}
    await isolated.run("import os; os._exit(1)")


async def test_attacks_at_the_same_time_leave_the_neighbour_alone(
    isolated: KernelSandbox, neighbour: KernelSandbox
) -> None:
    threads = threading.active_count()
    for code in ("import os; os.kill(-1, 9)", "x = ['x' * 10_000_000 for _ in range(1000)]", "open('/tmp/note')"):
        await isolated.run(code, timeout=5)
    await works_as_before(neighbour)
    assert threading.active_count() <= threads + 8


async def test_folders_of_two_sessions_are_their_own(isolated: KernelSandbox, neighbour: KernelSandbox) -> None:
    assert "FileNotFoundError" in (await isolated.run("open('/tmp/note')")).text
    assert (await neighbour.run("open('/tmp/note').read()")).text == "'of the neighbour'\n"


async def test_memory_that_is_shared_or_of_children_counts_too(isolated: KernelSandbox) -> None:
    """The kernel's own limit does not see these; the machine ends what is over, and the agent is told why."""
    shared = "import mmap\nblock = mmap.mmap(-1, 3 << 30)\nfor at in range(0, 3 << 30, 4096): block[at] = 1"
    shared += "\nimport time; time.sleep(60)"  # memory is looked at now and then
    result = await isolated.run(shared, timeout=60)
    assert (result.status, result.state_lost) == ("died", True)
    assert "out of memory" in result.note
    assert (await isolated.run("df.shape")).text == "(3, 3)\n"
    children = """
import contextlib, os, time
children = []
while len(children) < 4 and (child := os.fork()):
    children.append(child)
if len(children) < 4:
    block = bytearray(800 << 20)
    for at in range(0, len(block), 4096): block[at] = 1
    time.sleep(200)
print(os.waitstatus_to_exitcode(os.wait()[1]))
for child in children:
    with contextlib.suppress(ProcessLookupError): os.kill(child, 9)
"""
    result = await isolated.run(children, timeout=100)
    assert result.status == "died" or result.text.endswith("-9\n")  # a child is ended, or all are
    assert (await isolated.run("df.shape", timeout=100)).text == "(3, 3)\n"
