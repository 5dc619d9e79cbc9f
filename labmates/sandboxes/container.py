"""Enclosures in Docker containers: an unprivileged user, no network, and writes only to memory.

A container's root is read-only; its private folders are temporary file systems of limited size, which count as its
memory. It sees two folders of this machine, read-only: one with the settings and the control socket, one with the data
set. Its network has only the loopback device. Kernels' sockets are created here and passed as descriptors, so that the
container can't write to a folder of this machine. The runner comes with the settings, so that the image stays the same
when it changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import (
    GVISOR,
    EngineError,
    container_labels,
    docker_errors,
    explain_docker_error,
    remove_container,
)
from labmates.sandboxes.image.names import LIBRARIES_LABEL, find_image, image_tag
from labmates.sandboxes.leftovers import sweep_containers
from labmates.sandboxes.process import RUNNER, Folders, Limits, kernel_environment

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_USER = "10001:10001"
HOME = Path("/home/agent")
"""The user's home in a container."""
_TMP, _DATA, _RUN = Path("/tmp"), Path("/data"), Path("/run/labmates")  # noqa: S108
_FONTS = "/opt/labmates/fonts"
_HOSTS, _KNOWN_HOSTS = Path("/etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n"
_LOG_LINES = 20
_LOG = {"max-size": "1m", "max-file": "1", "compress": "false"}
_AT_ONCE = 4  # concurrent requests to the engine
_POLL_SECONDS = 1.0  # shorter intervals of many sessions would overload the engine


class ImageMissingError(EngineError):
    """The engine lacks the sandbox image."""


class ContainerEnclosure:
    """A started container; the `gate` bounds concurrent requests to the engine."""

    replaces_kernels = True

    def __init__(self, client: DockerClient, container: Container, gate: asyncio.Semaphore, reach: str) -> None:
        self.reach = reach
        self._client = client
        self._container = container
        self._gate = gate
        self._removal: asyncio.Task[None] | None = None

    async def ended(self) -> str:
        """Wait for the container's end and describe it; see `labmates.sandboxes.process.Enclosure`."""
        while True:
            how: str | None = await self._ask(_ending, self._container)
            if how is not None:
                return how
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self) -> None:
        """Remove the container, running or not."""
        if self._removal is None:
            self._removal = asyncio.create_task(self._ask(remove_container, self._client, self._container.id))
        await asyncio.shield(self._removal)

    async def _ask(self, request: Any, *arguments: Any) -> Any:
        async with self._gate:
            return await asyncio.to_thread(request, *arguments)


class ContainerLauncher:
    """Starts containers with the engine's default `runtime` or another one; closes the client.

    Raises `ImageMissingError` if the image was not built.
    """

    def __init__(self, client: DockerClient, limits: Limits | None = None, runtime: str | None = None) -> None:
        image = find_image(client)
        if image is None:
            raise ImageMissingError(
                f"the sandbox image {image_tag()} is missing; build it with: labmates sandbox build"
            )
        self._client = client
        self._image = image.id  # not by name, which a later build may move
        self._libraries: dict[str, str] = json.loads(image.labels[LIBRARIES_LABEL])
        self._limits = limits or Limits()
        self._runtime = runtime
        # gVisor can connect to sockets of the host, but not accept connections on inherited descriptors.
        self._reach = str(_RUN / "k") if runtime == GVISOR else ""
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._group: str | None = None

    def prepare(self) -> None:
        """Remove leftovers of killed processes; see `labmates.sandboxes.process.Launcher`."""
        sweep_containers(self._client)
        try:
            driver = self._client.info().get("CgroupDriver")
        except docker_errors() as error:
            raise SandboxError(f"the engine does not describe itself: {explain_docker_error(error)}") from error
        # Otherwise all containers share one process's part of the processors.
        self._group = "/" if driver == "cgroupfs" else None

    def libraries(self) -> Mapping[str, str]:
        """The versions in the image; see `labmates.sandboxes.process.Launcher`."""
        return self._libraries

    def close(self) -> None:
        """Close the connections to the engine."""
        self._client.close()

    async def launch(self, folders: Folders) -> ContainerEnclosure:
        """Start an enclosure; see `labmates.sandboxes.process.Launcher`."""
        async with self._gate:
            starting = asyncio.create_task(asyncio.to_thread(self._start, folders))
            try:
                container = await asyncio.shield(starting)
            except asyncio.CancelledError:
                with contextlib.suppress(SandboxError):  # a request can't be cancelled, so wait for its result
                    await asyncio.to_thread(remove_container, self._client, (await starting).id)
                raise
        return ContainerEnclosure(self._client, container, self._gate, self._reach)

    def _start(self, folders: Folders) -> Container:
        container = None
        try:
            folders.write_settings(self._settings(folders))
            ignored = shutil.ignore_patterns("__pycache__")
            runner = shutil.copytree(RUNNER, folders.run / RUNNER.name, ignore=ignored)
            for path in (runner, *runner.iterdir()):
                path.chmod(0o755)  # as the settings
            hosts = folders.run / _HOSTS.name
            hosts.write_text(_KNOWN_HOSTS)
            hosts.chmod(0o644)  # as the settings
            container = self._client.containers.create(self._image, **self._options(folders))
            container.start()
        except docker_errors() as error:
            if container is not None:
                remove_container(self._client, container.id)
            raise SandboxError(f"a sandbox could not be started: {explain_docker_error(error)}") from error
        return container

    def _settings(self, folders: Folders) -> dict[str, Any]:
        limits = self._limits
        return {
            "control": str(_RUN / folders.control.name),
            "sockets": self._reach,
            "data": str(_DATA / "data.csv"),
            "alone": True,
            "memory": limits.data,
            "address_space": self._runtime == GVISOR,  # its kernel does not count mapped memory as data
            "file_bytes": limits.scratch,
            "open_files": limits.open_files,
            "processes": None,  # the engine counts them
            "fonts": _FONTS,
            "modules": None,  # the image holds no others
        }

    def _options(self, folders: Folders) -> dict[str, Any]:
        from docker.types import LogConfig, Mount

        return {
            **confinement(self._limits),
            "command": [str(_RUN / "settings.json")],
            "environment": kernel_environment(HOME, _TMP),
            "labels": container_labels("session"),
            "mounts": [
                Mount(str(inside), str(outside), type="bind", read_only=True)
                for outside, inside in ((folders.run, _RUN), (folders.data, _DATA), (folders.run / _HOSTS.name, _HOSTS))
            ],
            # Skips even an empty network, half of the time of a start; the hosts file is mounted instead.
            "network_disabled": True,
            "cgroup_parent": self._group,
            "log_config": LogConfig(type="local", config=_LOG),
            "runtime": self._runtime,
        }


def confinement(limits: Limits) -> dict[str, Any]:
    """The options of an unprivileged container without network, with only private folders writable."""
    scratch = f"rw,nosuid,nodev,size={limits.scratch},mode=1777"
    return {
        "tmpfs": {str(HOME): scratch, str(_TMP): scratch},
        "user": _USER,
        "working_dir": str(HOME),
        "hostname": "sandbox",
        "network_mode": "none",
        "ipc_mode": "private",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": limits.memory,
        "memswap_limit": limits.memory,
        "shm_size": limits.shared_memory,
        "nano_cpus": int(limits.processors * 1e9),
        "pids_limit": limits.processes,
        "init": True,  # collects orphans
    }


def _ending(container: Container) -> str | None:
    try:
        container.reload()
        state = container.attrs["State"]
        if state["Running"] or state["Status"] == "created":
            return None
        if state["OOMKilled"]:
            return "out of memory"
        wrote = container.logs(tail=_LOG_LINES).decode(errors="replace").strip()
        return f"exit status {state['ExitCode']}. {state['Error']} {wrote}".rstrip()
    except docker_errors() as error:
        return explain_docker_error(error)
