"""A trial of gVisor: whether the engine's runtime enforces the limits."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from labmates.errors import LabmatesError
from labmates.loops import run_async
from labmates.sandboxes.container import ContainerLauncher
from labmates.sandboxes.engine import GVISOR, connect, offers_gvisor
from labmates.sandboxes.folders import cache_folder
from labmates.sandboxes.image.names import image_tag
from labmates.sandboxes.process import Limits
from labmates.sandboxes.session import KernelBackend, KernelSandbox

if TYPE_CHECKING:
    from docker import DockerClient

TRIAL_LIMITS = Limits(memory=512 << 20, processes=96)
_SECONDS = 60.0
_REMEDY = f"is {GVISOR} configured with --ignore-cgroups?"
_HOARD = """
import os, time
children = []
while len(children) < 8:
    child = os.fork()
    if child == 0:
        block = bytearray(80 << 20)
        for at in range(0, len(block), 4096): block[at] = 1
        time.sleep(2)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""  # 640 MB in eight processes, each within the limit
_CROWD = """
import os, signal
children = []
try:
    while len(children) < 200: children.append(os.posix_spawn('/usr/bin/sleep', ['sleep', '60'], {}))
except OSError:
    pass
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(len(children))
"""


def why_not_gvisor(client: DockerClient, *, again: bool = False) -> str | None:
    """The reason why `auto` skips gVisor; None if it runs code within the limits.

    The trial takes some 15 s; its result is cached for this version of the engine, the runtime and the image, unless it
    is repeated `again`.
    """
    if not offers_gvisor(client):
        return f"the engine has no runtime {GVISOR}"
    path = cache_folder("gvisor") / f"{_fingerprint(client)}.json"
    if not again:
        with contextlib.suppress(OSError, ValueError):
            reason: str | None = json.loads(path.read_bytes())
            return reason
    reason = _try()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(reason))
        fresh.replace(path)
    return reason


def _fingerprint(client: DockerClient) -> str:
    runtime = client.info()["Runtimes"][GVISOR]
    try:
        stat = Path(runtime["path"]).stat()
        program = [stat.st_mtime_ns, stat.st_size]
    except OSError:  # a bare name, which the engine looks up in its own PATH
        program = []
    parts = [client.version()["Version"], os.uname().release, runtime, program, image_tag()]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _try() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        data.write_text("a\n1\n2\n")
        try:
            return run_async(lambda: _trial(data))
        except LabmatesError as error:
            return str(error)


async def _trial(data: Path) -> str | None:
    backend = KernelBackend("gvisor", ContainerLauncher(connect(), TRIAL_LIMITS, runtime=GVISOR))
    try:
        return await find_fault(await backend.open(data))
    finally:
        await backend.close()


async def find_fault(session: KernelSandbox) -> str | None:
    """The fault of a session with `TRIAL_LIMITS` and a column `a` of sum 3; None without a fault.

    Its code requests more memory and processes than the limits allow.
    """
    if (answer := (await session.run("print(df['a'].sum())", timeout=_SECONDS)).text) != "3\n":
        return f"1 + 2 is {answer!r} under it"
    if (await session.run(_HOARD, timeout=_SECONDS)).text.endswith(f"{[0] * 8}\n"):
        return f"processes got more memory than the limit of {TRIAL_LIMITS.memory >> 20} MB; {_REMEDY}"
    if (await session.run(_CROWD, timeout=_SECONDS)).text.endswith("200\n"):
        return f"200 processes ran at once, in spite of a limit of {TRIAL_LIMITS.processes}; {_REMEDY}"
    answer = (await session.run("print(df['a'].sum())", timeout=_SECONDS)).text
    return None if answer == "3\n" else "no kernel starts after one that exceeded its limits"
