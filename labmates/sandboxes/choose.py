"""Which back end runs the agents' code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from labmates.errors import MissingExtraError, UsageError, unknown_name

if TYPE_CHECKING:
    from labmates.sandboxes.base import SandboxBackend

SANDBOXES = {
    "auto": "bubblewrap where it works; without it, only the project's own scripted baselines run",
    "docker": "a Docker container",
    "bubblewrap": "Linux namespaces: no network, no files of this machine",
    "unsafe-local": "a plain process: code can do whatever you can do",
}
"""Names that `choose_backend` takes, with one line on each for the command line."""

_MODULES = ("ipykernel", "matplotlib", "scipy", "seaborn", "sklearn", "statsmodels")  # of the extra `local`
_INSTALL = "install it (Debian and Ubuntu: apt-get install bubblewrap)"


@dataclass(frozen=True)
class Choice:
    """A back end that was chosen.

    Attributes
    ----------
    backend
        The back end; its `name` is to be recorded.
    note
        One line that the user should see, or None.
    """

    backend: SandboxBackend
    note: str | None = None


def choose_backend(name: str, *, trusted_code: bool) -> Choice:
    """Return the back end called `name`, one of `SANDBOXES`.

    The first call may take some tenths of a second, since it tries bubblewrap out.

    Parameters
    ----------
    name
        What the user asked for.
    trusted_code
        True if all code comes from the project's own scripted baselines.

    Raises
    ------
    UsageError
        If there is no such back end, or it does not work on this machine; the text says what to do.
    MissingExtraError
        If packages are missing that agents' code relies on.
    """
    if name not in SANDBOXES:
        raise unknown_name("sandbox", name, SANDBOXES)
    if name == "docker":
        raise UsageError("this version has no Docker sandbox yet; use --sandbox bubblewrap")
    if not sys.platform.startswith("linux"):
        raise UsageError("agents' code runs on Linux only")
    missing = [module for module in _MODULES if find_spec(module) is None]
    if missing:
        raise MissingExtraError(f"running agents' code on this machine (missing: {', '.join(missing)})", "local")
    if name == "unsafe-local":
        return Choice(_plain(name), "WARNING: agents' code runs on this machine without any isolation.")
    return _isolated(name, trusted_code)


def _isolated(name: str, trusted_code: bool) -> Choice:
    from labmates.sandboxes.bubblewrap import BubblewrapLauncher, bubblewrap_works
    from labmates.sandboxes.session import KernelBackend

    why = bubblewrap_works()
    if why is None:
        return Choice(KernelBackend("bubblewrap", BubblewrapLauncher()))
    if name == "auto" and trusted_code:
        note = "bubblewrap does not work here: the scripted baselines' own code runs as a plain process."
        return Choice(_plain("plain"), note)
    raise UsageError(
        f"agents' code needs a sandbox, but bubblewrap does not work here: {why}. Either {_INSTALL}, or let the code "
        "do whatever it wants on this machine with --sandbox unsafe-local."
    )


def _plain(name: str) -> SandboxBackend:
    from labmates.sandboxes.local import PlainLauncher
    from labmates.sandboxes.session import KernelBackend

    return KernelBackend(name, PlainLauncher())
