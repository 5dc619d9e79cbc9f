"""Temporary containers for single commands, without network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import container_labels, docker_errors, explain_docker_error, remove_container

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image

_SECONDS = 120.0
_MEMORY = 2 << 30


def run_once(client: DockerClient, image: Image, command: Sequence[str]) -> tuple[int, str]:
    """Run `command` in a read-only container of `image`, and return its exit code and output.

    Raises `SandboxError` if the container can't be run, or does not end within two minutes.
    """
    container = None
    try:
        container = client.containers.create(
            image,
            entrypoint=list(command),
            command=[],
            labels=container_labels("trial"),
            network_mode="none",
            read_only=True,
            tmpfs={"/home/agent": "mode=1777", "/tmp": "mode=1777"},  # noqa: S108
            mem_limit=_MEMORY,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            log_config={"type": "local"},
        )
        container.start()
        code = int(container.wait(timeout=_SECONDS)["StatusCode"])
        return code, container.logs().decode(errors="replace")
    except docker_errors() as error:
        raise SandboxError(f"a container to try the image can't be run: {explain_docker_error(error)}") from error
    finally:
        if container is not None:
            remove_container(client, container.id)
