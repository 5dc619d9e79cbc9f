"""Removal of leftovers of killed processes, and of other versions' images."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import OWNER_LABEL, SANDBOX_LABEL, docker_errors, explain_docker_error, remove_container
from labmates.sandboxes.folders import sweep_folders
from labmates.sandboxes.image.names import KIND_LABEL, REPOSITORIES, image_tag
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


def sweep_containers(client: DockerClient) -> list[str]:
    """Remove the containers of dead processes, and return the names of removed ones.

    Takes one request, and one more per removed container. Raises `SandboxError` if the engine can't list containers.
    """
    labelled = _containers(client, SANDBOX_LABEL)
    return _remove(client, [one for one in labelled if owner_state(one["Labels"].get(OWNER_LABEL, "")) == "dead"])


def old_images(client: DockerClient) -> list[str]:
    """The labmates images that this version does not use, dependent ones first; those without name by identifier."""
    old: list[str] = []
    for image in sorted(_ask(client.api.images, filters={"label": KIND_LABEL}), key=_age):
        kind = image["Labels"][KIND_LABEL]
        tags = [tag for tag in image["RepoTags"] or () if tag != "<none>:<none>"]
        if kind != "base" if tags else kind != "build" or _age(image) > _BUILD_SECONDS:
            old += [name for name in tags or [image["Id"]] if name != image_tag() and _is_ours(name)]
    return old


def clean(client: DockerClient | None) -> Removed:
    """Remove leftovers of killed processes, and images of other versions of labmates.

    Without an engine, only folders are removed. Raises `SandboxError` if the engine can't list its objects.
    """
    removed = Removed(folders=[str(folder) for folder in sweep_folders()])
    if client is not None:
        builds = _containers(client, f"{KIND_LABEL}=build")
        ended = [one for one in builds if one["State"] != "running" and _age(one) > _BUILD_SECONDS]
        removed.containers.extend([*sweep_containers(client), *_remove(client, ended)])
        removed.images.extend(_remove_images(client, old_images(client)))
    return removed


def _remove(client: DockerClient, containers: Iterable[dict[str, Any]]) -> list[str]:
    removed = []
    for container in containers:
        with contextlib.suppress(SandboxError):  # a failure must not keep the others
            remove_container(client, container["Id"])
            removed.append(_name(container))
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
