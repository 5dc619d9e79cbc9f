"""Programs in Docker containers: one container for a program, from its start to its end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.container import HOME, confinement
from labmates.sandboxes.engine import connect, docker_errors, explain_docker_error, remove_container
from labmates.sandboxes.folders import in_thread
from labmates.sandboxes.image.names import find_image, image_tag
from labmates.sandboxes.labels import container_labels
from labmates.sandboxes.leftovers import sweep_containers
from labmates.sandboxes.process import Limits

if TYPE_CHECKING:
    from docker import DockerClient

_INPUT = Path("/opt/labmates/input")
_LOG = {"max-size": "2m", "max-file": "2", "compress": "false"}


@dataclass(frozen=True)
class Ended:
    """A program's end: its exit status, what it wrote on its two streams, and whether it took too much memory."""

    status: int
    printed: str
    complaint: str
    is_too_large: bool


def check_image(image: str) -> None:
    """Check that programs can run in an image; the empty name stands for the sandbox's own.

    Raises
    ------
    UsageError
        If there is no engine, or the image is missing.
    """
    client = connect()
    try:
        if find_image(client, image or None) is None:
            how = f"build or pull '{image}'" if image else "build it with: labmates sandbox build"
            raise UsageError(f"the image {image or image_tag()} is missing; {how}")
    finally:
        client.close()


async def run_in_container(
    image: str, command: Sequence[str], files: Mapping[Path, Path], environment: Mapping[str, str], given: Path
) -> Ended:
    """Run a program to its end in a container without a network.

    Parameters
    ----------
    image
        Name of the image; empty for the sandbox's own.
    files
        Files and folders that the program may read, from their paths outside to those inside.
    given
        The file with its standard input.

    Raises
    ------
    SandboxError
        If the engine does not start it.
    """
    client, name = await asyncio.to_thread(connect), f"labmates-seat-{secrets.token_hex(8)}"
    options = {
        **confinement(Limits()),
        "image": image or image_tag(),
        "name": name,
        "entrypoint": ["/bin/sh", "-c", f'exec "$@" < {_INPUT}', "sh"],
        "command": list(command),
        "environment": {"HOME": str(HOME), "LANG": "C.UTF-8", **environment},
    }
    try:
        await in_thread(_start, client, {**files, given: _INPUT}, options)
        return await asyncio.to_thread(_ended, client, name)
    except docker_errors() as error:
        raise SandboxError(f"a container could not be started: {explain_docker_error(error)}") from error
    finally:
        await in_thread(remove_container, client, name)
        client.close()


def _start(client: DockerClient, files: Mapping[Path, Path], options: dict[str, Any]) -> None:
    from docker.types import LogConfig, Mount

    sweep_containers(client)
    mounts = [Mount(str(inside), str(outside), type="bind", read_only=True) for outside, inside in files.items()]
    log = LogConfig(type="local", config=_LOG)
    client.containers.create(
        **{**options, "mounts": mounts, "labels": container_labels("seat"), "log_config": log}
    ).start()


def _ended(client: DockerClient, name: str) -> Ended:
    container = client.containers.get(name)
    status = container.wait()["StatusCode"]
    container.reload()
    printed, complaint = (
        container.logs(stdout=stdout, stderr=not stdout).decode(errors="replace") for stdout in (True, False)
    )
    return Ended(status, printed, complaint, container.attrs["State"]["OOMKilled"])
