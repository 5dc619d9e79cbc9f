"""Programs in Docker containers, one container per program."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.container import HOME, confinement
from labmates.sandboxes.engine import connect, container_labels, docker_errors, explain_docker_error, remove_container
from labmates.sandboxes.folders import in_thread
from labmates.sandboxes.image.names import find_image, image_tag
from labmates.sandboxes.leftovers import sweep_containers
from labmates.sandboxes.output import Printed
from labmates.sandboxes.process import Limits

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_INPUT = Path("/opt/labmates/input")


@dataclass(frozen=True)
class Ended:
    """A program's end: exit status, output, errors, and whether it exceeded its memory."""

    status: int
    printed: Printed
    complaint: Printed
    is_too_large: bool


def check_image(image: str) -> None:
    """Check that programs can run in an image; an empty name is the sandbox image.

    Raises `UsageError` if the engine or the image is missing.
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
    """Run a program to its end in a container without network; an empty name is the sandbox image.

    `files` maps readable files and folders to their paths inside; `given` is the file with the standard input. Raises
    `SandboxError` if the engine does not start it.
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
    waiting = ThreadPoolExecutor(1)  # separate: concurrent programs could occupy all threads of the loop
    try:
        container = await in_thread(_create, client, {**files, given: _INPUT}, options)
        return await asyncio.get_running_loop().run_in_executor(waiting, _run, container)
    except docker_errors() as error:
        raise SandboxError(f"a container could not be started: {explain_docker_error(error)}") from error
    finally:
        await in_thread(remove_container, client, name)
        waiting.shutdown(wait=False)
        client.close()


def _create(client: DockerClient, files: Mapping[Path, Path], options: dict[str, Any]) -> Container:
    from docker.types import LogConfig, Mount

    sweep_containers(client)
    mounts = [Mount(str(inside), str(outside), type="bind", read_only=True) for outside, inside in files.items()]
    return client.containers.create(
        **{**options, "mounts": mounts, "labels": container_labels("seat"), "log_config": LogConfig(type="none")}
    )


def _run(container: Container) -> Ended:
    """Run a container to its end, and read its output as it arrives; the engine stores none."""
    written = Printed(), Printed()
    streams = container.attach(stream=True, demux=True)
    with closing(streams._response):  # closing the stream itself leaves its connection open
        container.start()
        for pieces in streams:
            for stream, piece in zip(written, pieces, strict=True):
                stream.write(piece or b"")
    status = container.wait()["StatusCode"]
    container.reload()
    return Ended(status, *written, container.attrs["State"]["OOMKilled"])
