"""Diagnosis of the sandboxes on this machine, with remedies."""

from __future__ import annotations

import asyncio
import importlib.metadata
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from labmates.errors import LabmatesError
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.engine import GVISOR, connect, docker_errors, explain_docker_error, offers_gvisor
from labmates.sandboxes.folders import orphaned_folders
from labmates.sandboxes.image.names import BASE_LABEL, find_image, image_tag
from labmates.sandboxes.leftovers import old_images, orphaned_containers, stopped_builds
from labmates.sandboxes.libraries import PACKAGES
from labmates.util.loops import run_async

if TYPE_CHECKING:
    from docker import DockerClient

ISOLATED = ("docker", "bubblewrap")
"""The isolated sandboxes, best first."""
_BUILD_BYTES = 3 << 30  # for the image, its ingredients, and intermediate builds
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "processor time"}
_BUILD = "labmates sandbox build (on a machine without a registry: labmates sandbox build --base debian)"
_CLEAN = "labmates sandbox clean"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    sandbox: str  # one of `ISOLATED`; empty if the check concerns no single sandbox
    name: str  # of the check
    state: Literal["ok", "note", "problem"]  # with a problem, the sandbox does not work
    text: str
    advice: str = ""  # the remedy


def examine() -> Iterator[Finding]:
    """Yield the results of all checks; the last ones test the back ends without problems."""
    findings = []
    for finding in itertools.chain(_docker(), (check() for check in (_bubblewrap, _packages, _folders))):
        findings.append(finding)
        yield finding
    for name in working(findings):
        yield _trial(name)


def working(findings: Iterable[Finding]) -> list[str]:
    """The sandboxes without problems."""
    broken = {finding.sandbox for finding in findings if finding.state == "problem"}
    return [name for name in ISOLATED if name not in broken]


def taken_by_auto() -> tuple[str | None, str]:
    """The sandbox that ``--sandbox auto`` chooses for a model's code, or None, and a remark."""
    try:
        choice = choose_backend("auto", trusted_code=False)
    except LabmatesError as error:
        return None, str(error)
    run_async(choice.backend.close)
    return choice.backend.name, choice.note or ""


def _docker() -> Iterator[Finding]:
    try:
        client = connect()
    except LabmatesError as error:
        yield Finding("docker", "Docker engine", "problem", str(error))
        return
    try:
        for check in _ENGINE_CHECKS:
            yield check(client)
    except LabmatesError as error:
        yield Finding("docker", "Docker engine", "problem", str(error))
    except docker_errors() as error:
        yield Finding("docker", "Docker engine", "problem", explain_docker_error(error))
    finally:
        client.close()


def _engine(client: DockerClient) -> Finding:
    version, options = client.version(), client.info().get("SecurityOptions") or []
    rootless = ", rootless" if any("rootless" in option for option in options) else ""
    text = f"version {version['Version']} (API {version['ApiVersion']}), on this machine{rootless}"
    return Finding("docker", "Docker engine", "ok", text)


def _limits(client: DockerClient) -> Finding:
    info = client.info()
    missing = [what for name, what in _LIMITS.items() if info.get(name) is False]
    if missing:
        advice = (
            "turn their control groups on (for memory, boot with cgroup_enable=memory; a rootless engine needs cgroup "
            "v2 and systemd, see https://docs.docker.com/engine/security/rootless/)"
        )
        return Finding("docker", "limits", "problem", f"the engine can't limit {', '.join(missing)}", advice)
    if info.get("SwapLimit") is False:
        text = "the engine can't limit swap: a sandbox may use more than its memory where this machine has swap"
        return Finding("docker", "limits", "note", text, "boot with swapaccount=1, or use cgroup v2")
    return Finding("docker", "limits", "ok", "memory, swap, processes and processor time can be limited")


def _gvisor(client: DockerClient) -> Finding:
    if offers_gvisor(client):
        return Finding("", "gVisor", "ok", "--sandbox auto uses it")
    return Finding("", "gVisor", "note", f"the engine has no runtime {GVISOR}; --sandbox auto uses docker")


def _image(client: DockerClient) -> Finding:
    image = find_image(client)
    if image is None:
        return Finding("docker", "image", "problem", f"there is no image {image_tag()}", _BUILD)
    size, base = image.attrs["Size"], image.labels.get(BASE_LABEL, "unknown")
    return Finding("docker", "image", "ok", f"{image_tag()}, {size / 1e6:.0f} MB, based on {base}")


def _old_images(client: DockerClient) -> Finding:
    old = old_images(client)
    if not old:
        return Finding("docker", "old images", "ok", "none")
    names = ", ".join(name[:19] if name.startswith("sha256:") else name for name in old)
    return Finding("docker", "old images", "note", f"{len(old)} that this version does not use: {names}", _CLEAN)


def _disk(client: DockerClient) -> Finding:
    root = str(client.info().get("DockerRootDir", ""))
    try:
        free = shutil.disk_usage(root).free
    except OSError:
        return Finding("docker", "disk", "note", f"the engine's folder {root} can't be looked at")
    text = f"{free / 1e9:.1f} GB free for the engine in {root}"
    if free >= _BUILD_BYTES:
        return Finding("docker", "disk", "ok", text)
    advice = f"building the image takes about 3 GB; make room with {_CLEAN} --images, or docker system prune"
    return Finding("docker", "disk", "note", text, advice)


def _containers(client: DockerClient) -> Finding:
    containers = {**orphaned_containers(client), **stopped_builds(client)}
    if not containers:
        return Finding("docker", "left containers", "ok", "none")
    text = f"{len(containers)} of killed runs and builds: {', '.join(containers.values())}"
    return Finding("docker", "left containers", "note", text, _CLEAN)


# In this order; each check may assume that the engine answers.
_ENGINE_CHECKS: tuple[Callable[[DockerClient], Finding], ...] = (
    _engine, _limits, _disk, _image, _gvisor, _old_images, _containers,
)  # fmt: skip


def _trial(name: str) -> Finding:
    async def summed(data: Path) -> str:
        backend = choose_backend(name, trusted_code=False).backend
        try:
            return (await (await backend.open(data)).run("df['a'].sum()")).text.strip()
        finally:
            await backend.close()

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.csv"
        data.write_text("a\n1\n2\n")
        try:
            answer = asyncio.run(summed(data))
        except LabmatesError as error:
            return Finding(name, f"{name} trial", "problem", str(error))
    if answer not in ("3", "np.int64(3)"):
        return Finding(name, f"{name} trial", "problem", f"1 + 2 is {answer!r} there")
    return Finding(
        name, f"{name} trial", "ok", f"runs; the first answer came after {time.perf_counter() - start:.1f} s"
    )


def _bubblewrap() -> Finding:
    from labmates.sandboxes.bubblewrap import bubblewrap_works

    why = bubblewrap_works()
    if why is None:
        return Finding("bubblewrap", "bubblewrap", "ok", "works")
    advice = (
        "install it (Debian and Ubuntu: apt-get install bubblewrap). Where it may not make namespaces (in a container, "
        "or by a rule of AppArmor), use Docker"
    )
    return Finding("bubblewrap", "bubblewrap", "problem", f"does not work: {why}", advice)


def _packages() -> Finding:
    missing = [name for name in PACKAGES if not _is_installed(name)]
    if missing:
        text = f"missing for code on this machine: {', '.join(missing)}"
        return Finding("bubblewrap", "packages", "problem", text, "pip install 'labmates[lab]'")
    return Finding("bubblewrap", "packages", "ok", "all there that code in bubblewrap relies on")


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _folders() -> Finding:
    folders = orphaned_folders()
    if not folders:
        return Finding("", "left folders", "ok", "none")
    return Finding("", "left folders", "note", f"{len(folders)} of killed runs: {', '.join(map(str, folders))}", _CLEAN)
