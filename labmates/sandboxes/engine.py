"""The Docker engine: connection, and explanations of its errors."""

from __future__ import annotations

import os
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labmates.errors import MissingExtraError, UsageError
from labmates.sandboxes.base import SandboxError
from labmates.util.process_ids import this_owner

if TYPE_CHECKING:
    from docker import DockerClient

_DEFAULT_SOCKET = "/var/run/docker.sock"
_PROBE_SECONDS = 10.0  # a busy engine answers in a second
_CALL_SECONDS = 120.0  # creating containers on a busy disk is slow, but not that slow
_OLDEST_API = (1, 41)  # of Docker 20.10
_ADVICE_LOCAL = (
    "sandboxes talk to this machine through sockets in a folder, so only a Linux engine on this machine will do; "
    "unset DOCKER_HOST, or let it name a unix socket"
)
GVISOR = "runsc"
"""The name of gVisor's runtime."""
SANDBOX_LABEL = "labmates.sandbox"
"""Label of labmates containers; its value is their purpose."""
OWNER_LABEL = "labmates.owner"
"""Label of a container's owner, in the format of `labmates.util.process_ids.this_owner`."""
_EXPLAIN_CHARS = 400
_GONE = (404, 409)  # status for a container that is missing or being removed
_FAULTS = (
    (
        ("no space left on device", "disk quota exceeded"),
        "the Docker engine's disk is full; 'labmates sandbox clean' and 'docker system prune' make room",
    ),
    (("no such image",), "the image of the sandbox is not there; build it with: labmates sandbox build"),
    (("no such container", "is not running"), "the container is gone: something outside of labmates has ended it"),
    (
        ("resource temporarily unavailable", "cannot allocate memory", "too many open files", "cannot fork"),
        "this machine has no room for another container; run fewer at once with --max-sandboxes",
    ),
    (
        ("bind source path does not exist", "error while creating mount source path"),
        f"the engine does not see the folders of this machine: {_ADVICE_LOCAL}",
    ),
)  # the engine's wordings, and their meaning


class EngineError(UsageError):
    """No Docker engine is usable; the text gives the reason and a remedy."""


def connect() -> DockerClient:
    """A client of the engine in ``DOCKER_HOST``, by default this machine's engine.

    Blocks for some milliseconds, or for 10 s if a listening server does not answer. Raises `MissingExtraError` if the
    Docker SDK is not installed; `EngineError` if there is no usable engine.
    """
    if find_spec("docker") is None:
        raise MissingExtraError("the Docker sandbox", "lab")
    path = socket_path()
    _try_socket(path)
    client = _client(path)
    try:
        _check(client.version())
    except BaseException:
        client.close()
        raise
    client.api.timeout = _CALL_SECONDS
    return client


def socket_path() -> Path:
    """The path of the engine's socket. Raises `EngineError` if ``DOCKER_HOST`` is not a unix socket."""
    host = os.environ.get("DOCKER_HOST", "") or f"unix://{_DEFAULT_SOCKET}"
    scheme, _, path = host.partition("://")
    if scheme != "unix" or not path.startswith("/"):
        raise EngineError(f"DOCKER_HOST is '{_without_user(host)}', but {_ADVICE_LOCAL}")
    return Path(path)


def offers_gvisor(client: DockerClient) -> bool:
    """Whether the engine has gVisor's runtime. Raises `EngineError` if the engine does not answer."""
    try:
        return GVISOR in (client.info().get("Runtimes") or {})
    except docker_errors() as error:
        raise EngineError(explain_docker_error(error)) from error


def check_gvisor(client: DockerClient) -> None:
    """Check that the engine has gVisor's runtime. Raises `EngineError` if it lacks the runtime."""
    if not offers_gvisor(client):
        raise EngineError(
            f"the Docker engine has no runtime '{GVISOR}'; install gVisor "
            "(https://gvisor.dev/docs/user_guide/install/) and add the runtime with: "
            f"sudo {GVISOR} install -- --host-uds=open; sudo systemctl restart docker"
        )


def container_labels(what: str) -> dict[str, str]:
    """The labels of this process's container for the purpose `what`, one word."""
    return {SANDBOX_LABEL: what, OWNER_LABEL: this_owner()}


def docker_errors() -> tuple[type[Exception], ...]:
    """Exceptions of the SDK and its libraries."""
    import urllib3
    from docker.errors import DockerException, StreamParseError

    return DockerException, StreamParseError, urllib3.exceptions.HTTPError, OSError


def explain_docker_error(error: Exception) -> str:
    """Explanation of one of the `docker_errors`, with a remedy."""
    import requests
    import urllib3
    from docker.errors import DockerException

    if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
        return f"the Docker engine did not answer within {_CALL_SECONDS:g} s; it may be overloaded or stuck"
    if isinstance(error, DockerException):
        return explain_docker_text(str(getattr(error, "explanation", None) or error))
    if isinstance(error, (requests.RequestException, urllib3.exceptions.HTTPError)):
        return "the connection to the Docker engine broke; does it still run, and has its disk room?"
    return str(error)


def explain_docker_text(text: str) -> str:
    """Explanation of an engine's error message; unknown messages are quoted."""
    short = " ".join(text.split())[:_EXPLAIN_CHARS]
    for signs, meaning in _FAULTS:
        if any(sign in text.lower() for sign in signs):
            return f"{meaning} (Docker says: {short})"
    return f"Docker says: {short}"


def remove_container(client: DockerClient, container: str) -> None:
    """Remove a container, running or not; a missing container, or a removal in progress, is not an error.

    Raises `SandboxError` if the engine fails.
    """
    from docker.errors import APIError

    try:
        client.api.remove_container(container, force=True, v=True)
    except docker_errors() as error:
        if not (isinstance(error, APIError) and error.status_code in _GONE):
            raise SandboxError(f"a container can't be removed: {explain_docker_error(error)}") from error


def _try_socket(path: Path) -> None:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(_PROBE_SECONDS)
            probe.connect(str(path))
    except FileNotFoundError:
        raise EngineError(_no_socket(path)) from None
    except PermissionError:
        raise EngineError(_no_permission(path)) from None
    except ConnectionRefusedError:
        if path.is_socket():
            raise EngineError(
                f"the Docker engine is stopped (nobody listens on {path}); start it: sudo systemctl start docker"
            ) from None
        raise EngineError(f"{path} is not the socket of a Docker engine; is a mount missing?") from None
    except (TimeoutError, BlockingIOError):  # the latter if the queue of connections is full
        raise EngineError(_no_answer(path)) from None
    except OSError as error:
        raise EngineError(f"the Docker engine can't be reached at {path}: {error.strerror or error}") from None


def _client(path: Path) -> DockerClient:
    import docker
    import requests

    try:
        return docker.DockerClient(base_url=f"unix://{path}", version="auto", timeout=_PROBE_SECONDS)
    except docker.errors.InvalidVersion as error:
        raise EngineError(_too_old(str(error))) from None
    except docker.errors.DockerException as error:
        if isinstance(error.__cause__, requests.Timeout):
            raise EngineError(_no_answer(path)) from None
        raise EngineError(f"the server on {path} does not respond like a Docker engine: {error}") from None


def _check(version: dict[str, Any]) -> None:
    api = str(version.get("ApiVersion", ""))
    if tuple(int(part) if part.isdecimal() else 0 for part in api.split(".")) < _OLDEST_API:
        raise EngineError(_too_old(f"its API has version {api}"))
    system = str(version.get("Os", "")).lower()
    if system != "linux":
        raise EngineError(f"the Docker engine runs {system or 'an unknown system'} containers, but {_ADVICE_LOCAL}")
    product = str((version.get("Platform") or {}).get("Name", ""))
    if product.startswith("Docker Desktop"):
        raise EngineError(f"{product} runs its engine in a virtual machine, but {_ADVICE_LOCAL} (Docker Engine)")
    kernel = str(version.get("KernelVersion", ""))
    if kernel and kernel != os.uname().release:
        raise EngineError(
            f"the Docker engine runs on another machine (kernel {kernel}, here {os.uname().release}), but "
            f"{_ADVICE_LOCAL}"
        )


def _no_socket(path: Path) -> str:
    rootless = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "docker.sock"
    if rootless != path and rootless.is_socket():
        return f"there is no {path}, but a rootless engine: export DOCKER_HOST=unix://{rootless}"
    if shutil.which("dockerd") is not None:
        return f"the Docker engine is stopped (there is no {path}); start it: sudo systemctl start docker"
    return (
        f"no Docker engine is installed (there is no {path}); on Debian and Ubuntu: sudo apt-get install docker.io; "
        "on others see https://docs.docker.com/engine/install/"
    )


def _no_permission(path: Path) -> str:
    return (
        f"you may not use the Docker engine (permission denied on {path}). Safest is an engine of your own in rootless "
        "mode, see https://docs.docker.com/engine/security/rootless/. Or join the group docker: "
        "sudo usermod -aG docker $USER, then log in again; but mind that its members can do on this machine whatever "
        "root can"
    )


def _no_answer(path: Path) -> str:
    return (
        f"something listens on {path} but did not answer within {_PROBE_SECONDS:g} s; restart the Docker engine: "
        "sudo systemctl restart docker"
    )


def _too_old(why: str) -> str:
    return f"the Docker engine is too old ({why}); update it to 20.10 or newer"


def _without_user(host: str) -> str:
    """An address without a possible password."""
    scheme, separator, rest = host.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
