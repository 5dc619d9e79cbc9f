"""Removal of leftovers of killed processes, and of other versions' images."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import OWNER_LABEL, SANDBOX_LABEL, docker_errors, explain_docker_error, remove_container
from labmates.sandboxes.folders import cache_folder, remove_folder, sweep_folders
from labmates.sandboxes.image.names import KIND_LABEL, REPOSITORIES, image_tag, packages_tag
from labmates.sandboxes.image.wheels import WHEELS
from labmates.util.process_ids import owner_state

if TYPE_CHECKING:
    from docker import DockerClient

_BUILD_SECONDS = 3600  # minimum age of a build's leftovers, since the build may still be running


@dataclass(frozen=True)
class Removed:
    """Removed leftovers: names of containers, paths of folders, and names (or identifiers) of images."""

    containers: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


def sweep_containers(client: DockerClient, *, everything: bool = False) -> list[str]:
    """Remove the containers of dead processes (or of all, with `everything`), and return the names of removed ones.

    Takes one request, and one more per removed container. Raises `SandboxError` if the engine can't list containers.
    """
    return _remove_containers(client, orphaned_containers(client, everything=everything))


def orphaned_containers(client: DockerClient, *, everything: bool = False) -> dict[str, str]:
    """The identifiers and names of containers of dead processes, or of all."""
    return {
        container["Id"]: _name(container)
        for container in _containers(client, SANDBOX_LABEL)
        if everything or owner_state(container["Labels"].get(OWNER_LABEL, "")) == "dead"
    }


def old_images(client: DockerClient, *, everything: bool = False) -> dict[str, int]:
    """The labmates images that this version does not use (or all, with `everything`), dependent ones first.

    The values are sizes in bytes, which overlap; images without name appear by identifier.
    """
    in_use = () if everything else (image_tag(), packages_tag())
    sizes: dict[str, int] = {}
    for image in sorted(_ask(client.api.images, filters={"label": KIND_LABEL}), key=_age):
        kind = image["Labels"][KIND_LABEL]
        tags = [tag for tag in image["RepoTags"] or () if tag != "<none>:<none>"]
        if everything or (kind != "base" if tags else kind != "build" or _age(image) > _BUILD_SECONDS):
            names = tags or [image["Id"]]
            sizes.update({name: image["Size"] for name in names if name not in in_use and _is_ours(name)})
    return sizes


def clean(client: DockerClient | None, *, images: bool = False, everything: bool = False) -> Removed:
    """Remove leftovers of killed processes, and images of other versions of labmates.

    Without an engine, only folders are removed. `images` removes all labmates images and downloaded packages, too;
    `everything` removes the containers of living processes, too. Raises `SandboxError` if the engine can't list its
    objects.
    """
    removed = Removed(folders=[str(folder) for folder in sweep_folders()])
    if images:
        wheels = cache_folder(WHEELS)
        if wheels.is_dir():
            remove_folder(wheels)
            removed.folders.append(str(wheels))
    if client is not None:
        removed.containers.extend(sweep_containers(client, everything=everything))
        removed.containers.extend(_remove_containers(client, stopped_builds(client, everything=everything)))
        removed.images.extend(_remove_images(client, old_images(client, everything=images)))
    return removed


def stopped_builds(client: DockerClient, *, everything: bool = False) -> dict[str, str]:
    """The identifiers and names of containers of builds, by default only of builds that have surely ended."""
    return {
        container["Id"]: _name(container)
        for container in _containers(client, f"{KIND_LABEL}=build")
        if everything or (container["State"] != "running" and _age(container) > _BUILD_SECONDS)
    }


def _remove_containers(client: DockerClient, containers: dict[str, str]) -> list[str]:
    removed = []
    for container, name in containers.items():
        with contextlib.suppress(SandboxError):  # a failure must not keep the others
            remove_container(client, container)
            removed.append(name)
    return removed


def _remove_images(client: DockerClient, names: Iterable[str]) -> list[str]:
    removed = []
    for name in names:
        with contextlib.suppress(*docker_errors()):
            client.api.remove_image(name)
            removed.append(name)
    return removed


def _containers(client: DockerClient, label: str) -> list[dict[str, Any]]:
    return _ask(client.api.containers, all=True, filters={"label": label})


def _ask(request: Callable[..., list[dict[str, Any]]], **options: Any) -> list[dict[str, Any]]:
    try:
        return request(**options)
    except docker_errors() as error:
        raise SandboxError(f"the engine does not list its objects: {explain_docker_error(error)}") from error


def _name(container: dict[str, Any]) -> str:
    names = container["Names"] or [container["Id"][:12]]
    return str(names[0]).lstrip("/")


def _age(thing: dict[str, Any]) -> float:
    return time.time() - float(thing["Created"])


def _is_ours(name: str) -> bool:
    return name.startswith("sha256:") or name.rpartition(":")[0] in REPOSITORIES
