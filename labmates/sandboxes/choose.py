"""The choice of a back end for the agents' code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from labmates.errors import LabmatesError, MissingExtraError, UsageError, unknown_name
from labmates.registry import Registry

if TYPE_CHECKING:
    from labmates.sandboxes.base import SandboxBackend

SANDBOXES = {
    "auto": "gvisor where the engine has its runtime, else docker where its engine and image are there, else "
    "bubblewrap; with none, only the project's own scripted baselines run",
    "docker": "a Docker container: no network, no files of this machine, limits on all that it uses",
    "gvisor": "a Docker container whose system calls go to gVisor's own kernel, where the engine has its runtime runsc",
    "bubblewrap": "Linux namespaces: no network, no files of this machine",
    "unsafe-local": "a plain process: code can do whatever you can do",
}
"""Names for `choose_backend`, with a description for the command line."""

BACKENDS: Registry[Callable[[], SandboxBackend]] = Registry("sandbox", "labmates.sandboxes")
"""Constructors of other packages' back ends, by name."""

_MODULES = ("ipykernel", "matplotlib", "scipy", "seaborn", "sklearn", "statsmodels")  # of the extra `lab`
_INSTALL = "install it (Debian and Ubuntu: apt-get install bubblewrap)"


@dataclass(frozen=True)
class Choice:
    """A chosen back end, with an optional note for the user."""

    backend: SandboxBackend
    note: str | None = None


def choose_backend(name: str, *, trusted_code: bool) -> Choice:
    """The back end `name`, one of `SANDBOXES` or of another package.

    The first call may take some tenths of a second to query the Docker engine or to test bubblewrap. `trusted_code`
    is true if all code comes from the project's scripted baselines. Raises `UsageError` if the back end is unknown or
    does not work on this machine; the text gives a remedy; `MissingExtraError` if packages for agents' code are
    missing.
    """
    if name in BACKENDS:
        with BACKENDS.guarded(name, "can't be used"):
            return Choice(BACKENDS.get(name)())
    if name not in SANDBOXES:
        raise unknown_name("sandbox", name, (*SANDBOXES, *BACKENDS))
    if not sys.platform.startswith("linux"):
        raise UsageError("agents' code runs on Linux only")
    if name in ("docker", "gvisor"):
        return Choice(_docker(name))
    if name == "unsafe-local":
        _check_modules()
        return Choice(_plain(name), "WARNING: agents' code runs on this machine without any isolation.")
    why: LabmatesError | None = None
    if name == "auto":
        try:
            return Choice(_docker(name))
        except (UsageError, MissingExtraError) as error:
            why = error
    return _bubblewrap(name, trusted_code, why)


def _docker(name: str) -> SandboxBackend:
    from labmates.sandboxes.container import ContainerLauncher
    from labmates.sandboxes.engine import GVISOR, check_gvisor, connect, offers_gvisor
    from labmates.sandboxes.session import KernelBackend

    client = connect()
    try:
        if name == "gvisor":
            check_gvisor(client)
        elif name == "auto":
            name = "gvisor" if offers_gvisor(client) else "docker"
        return KernelBackend(name, ContainerLauncher(client, runtime=GVISOR if name == "gvisor" else None))
    except BaseException:
        client.close()
        raise


def _bubblewrap(name: str, trusted_code: bool, no_docker: LabmatesError | None) -> Choice:
    from labmates.sandboxes.bubblewrap import BubblewrapLauncher, bubblewrap_works
    from labmates.sandboxes.container import ImageMissingError
    from labmates.sandboxes.session import KernelBackend

    why = bubblewrap_works()
    if why is None:
        _check_modules()
        note = f"Code runs in bubblewrap: {no_docker}" if isinstance(no_docker, ImageMissingError) else None
        return Choice(KernelBackend("bubblewrap", BubblewrapLauncher()), note)
    if name == "auto" and trusted_code:
        _check_modules()
        note = "There is no isolated sandbox here: the scripted baselines' own code runs as a plain process."
        return Choice(_plain("plain"), note)
    docker = f" {str(no_docker).rstrip('.')}." if no_docker is not None else ""
    raise UsageError(
        f"agents' code needs a sandbox.{docker} bubblewrap does not work here: {why}. Either {_INSTALL}, or see what "
        "'labmates sandbox doctor' advises, or give the code full access to this machine with --sandbox unsafe-local."
    )


def _check_modules() -> None:
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        raise MissingExtraError(f"running agents' code on this machine (missing: {', '.join(missing)})", "lab")


def _plain(name: str) -> SandboxBackend:
    from labmates.sandboxes.local import PlainLauncher
    from labmates.sandboxes.session import KernelBackend

    return KernelBackend(name, PlainLauncher())
