"""Base images, from a registry or built from Debian's packages, and temporary containers that try images."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.engine import (
    container_labels,
    docker_errors,
    explain_docker_error,
    explain_docker_text,
    remove_container,
)
from labmates.sandboxes.image.names import BASE_IMAGE, KIND_LABEL, find_image
from labmates.sandboxes.image.wheels import Target

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.images import Image


DEFAULT_BASE = "python:3.12-slim"
"""The default base."""
DEBIAN = "debian"
"""Name of the base that is built on this machine, without a registry."""
_SUITE = "trixie"
_MMDEBSTRAP = (
    "mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-venv",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")),
    "--aptopt=Acquire::Languages none", _SUITE, "-",
)  # fmt: skip
_OLDEST_PYTHON = (3, 11)
_EXAMINE = (
    "import json, platform, sys; "
    "print(json.dumps([platform.python_version(), platform.machine(), *platform.libc_ver(), "
    "sys.implementation.name]))"
)
_PULL_ADVICE = (
    f"on a machine without a registry make the base from Debian's packages: labmates sandbox build --base {DEBIAN}"
)
_STOP_SECONDS = 20.0
_ERROR_LINES = 8


def get_base(client: DockerClient, name: str, tell: Callable[[str], None], *, renew: bool = False) -> Image:
    """The base image `name` (an image or `DEBIAN`), pulled or built if missing.

    `renew` rebuilds `DEBIAN`. Raises `UsageError` if the program to build a base is not installed; `SandboxError` if
    the base can't be pulled or built.
    """
    tag = f"{BASE_IMAGE}:{_SUITE}" if name == DEBIAN else name
    image = find_image(client, tag)
    if image is None or (name == DEBIAN and renew):
        if name == DEBIAN:
            _make_debian(client, tell)
        else:
            _pull(client, name, tell)
        image = find_image(client, tag)
    if image is None:
        raise SandboxError(f"the base {name} was fetched, but the engine does not have it")
    return image


def examine_base(client: DockerClient, image: Image) -> Target:
    """The target of packages for `image`, reported by its Python.

    Raises `SandboxError` if it has no suitable Python.
    """
    code, text = run_once(client, image, ["python3", "-c", _EXAMINE])
    if code != 0:
        raise SandboxError(f"the base has no usable python3: {text[-300:].strip()}")
    try:
        version, machine, libc, libc_version, implementation = json.loads(text)
        python = tuple(int(part) for part in version.split(".")[:2])
    except (ValueError, AttributeError) as error:
        raise SandboxError(f"the base's python3 gives no usable answer: {text[:300]!r}") from error
    if implementation != "cpython" or python < _OLDEST_PYTHON:
        raise SandboxError(f"the base has {implementation} {version}, but CPython 3.11 or newer is needed")
    if libc != "glibc":
        raise SandboxError("the base has no glibc (Alpine?); few packages support other C libraries")
    major, minor = (int(part) for part in libc_version.split(".")[:2])
    return Target(version, machine, (major, minor))


def _pull(client: DockerClient, name: str, tell: Callable[[str], None]) -> None:
    tell(f"pulling {name}")
    fault = ""
    try:
        for answer in client.api.pull(name, stream=True, decode=True):
            fault = fault or str(answer.get("error", ""))
    except docker_errors() as error:
        fault = explain_docker_error(error)
    if fault:
        raise SandboxError(f"can't pull the base {name}: {' '.join(fault.split())}; {_PULL_ADVICE}")


def _make_debian(client: DockerClient, tell: Callable[[str], None]) -> None:
    if shutil.which(_MMDEBSTRAP[0]) is None:
        raise UsageError(
            f"making a base from Debian's packages needs the program {_MMDEBSTRAP[0]} (Debian and Ubuntu: "
            f"sudo apt-get install {_MMDEBSTRAP[0]}); with a registry, leave --base out"
        )
    tell(f"making a base from the packages of Debian {_SUITE}, about 40 MB to download")
    with tempfile.TemporaryFile() as archive:
        _run_to_end(_MMDEBSTRAP, archive)
        archive.seek(0)
        _import(client, archive)


def _run_to_end(command: tuple[str, ...], output: IO[bytes]) -> None:
    """Run `command`; after an interruption it gets time to clean up."""
    with tempfile.TemporaryFile() as complaints:
        # An interruption during the start would leave it running.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints)  # noqa: S603
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise
        complaints.seek(0)
        lines = complaints.read().decode(errors="replace").strip().splitlines()
    if code != 0:
        why = "\n".join(lines[-_ERROR_LINES:]) or f"exit status {code}"
        raise SandboxError(
            f"{command[0]} failed (is there a network, room on the disk and, if this is not Debian, its package "
            f"debian-archive-keyring?):\n{why}"
        )


def _import(client: DockerClient, archive: IO[bytes]) -> None:
    changes = [f"LABEL {KIND_LABEL}=base"]
    try:
        output = client.api.import_image_from_data(archive, repository=BASE_IMAGE, tag=_SUITE, changes=changes)
    except docker_errors() as error:
        raise SandboxError(f"the engine rejected the base: {explain_docker_error(error)}") from error
    answers: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines() if line.strip()]
    for answer in answers:
        if "error" in answer:
            raise SandboxError(f"the engine rejected the base: {explain_docker_text(str(answer['error']))}")


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
