"""Kernels in bubblewrap: no network, no privileges, and no files of the host except the interpreter's.

Code runs under the runner's filter of system calls. The total memory of a session's processes is watched, since control
groups may not be writable here: above the limit, the session ends within a quarter of a second. Processor time is
unlimited, and ``/usr`` is readable.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labmates.errors import UsageError
from labmates.sandboxes.folders import in_thread, new_folder, remove_folder
from labmates.sandboxes.interpreter import FLAGS, hidden_paths, outermost, this_interpreter
from labmates.sandboxes.local import (
    LocalEnclosure,
    LocalLauncher,
    kernel_command,
    local_environment,
    runner_settings,
)
from labmates.sandboxes.process import RUNNER, Folders, Limits, starting
from labmates.sandboxes.warmup import Warmup, warm_up

_HOME, _TMP, _DATA = Path("/home/agent"), Path("/tmp"), Path("/data")  # noqa: S108
_RUN, _OURS = Path("/run/labmates"), Path("/opt/labmates")
_SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")  # for finding libraries
_NAMESPACES = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
_FIRST_UID, _UIDS = 61_184, 4_000  # systemd's range of dynamic users
_PROBE_SECONDS = 20.0
_FAILS = "bubblewrap does not work here: "
_COUNTED_PER_NAMESPACE = (5, 14)  # first Linux version that counts processes per user namespace
_SETPRIV = ("setpriv", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


@dataclass(frozen=True)
class Way:
    """A way to drop privileges by bubblewrap's options; `drops_user` starts as root and changes to a separate user."""

    options: tuple[str, ...]
    drops_user: bool = False

    def user_command(self) -> list[str]:
        """The command prefix that changes to a new user, whose processes can be counted."""
        if not self.drops_user:
            return []
        uid = str(_FIRST_UID + secrets.randbelow(_UIDS))
        return [*_SETPRIV, "--reuid", uid, "--regid", uid, "--"]

    def counts_processes(self) -> bool:
        """Whether a limit on processes counts only those of one session."""
        release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
        return self.drops_user or release >= _COUNTED_PER_NAMESPACE


_USER_NAMESPACE = ("--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL")
_WAYS = (
    # As root, a user namespace maps to root outside, so the user must really change.
    Way(
        ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"),
        drops_user=True,
    ),
    Way((*_USER_NAMESPACE, "--disable-userns")),
    Way(_USER_NAMESPACE),
)


def bubblewrap_works() -> str | None:
    """The reason why bubblewrap does not work on this machine; None if it works.

    What works is remembered. What fails is tried again, since a busy machine may have been too slow.
    """
    try:
        _way()
    except UsageError as error:
        return str(error).removeprefix(_FAILS)
    return None


def enclosed_program(
    command: Sequence[str], files: Mapping[Path, Path], folder: Path
) -> tuple[list[str], dict[str, str]]:
    """The command and the whole environment of a program in bubblewrap, without network.

    The environment has no variables for Python. `files` maps readable files and folders to their paths inside;
    bubblewrap needs a private `folder`. Raises `UsageError` if bubblewrap does not work on this machine.
    """
    enclosure = _enclosure(_way(), Limits(), dict(files), folder)
    return [*enclosure, *command], {"PATH": "/usr/bin:/bin", "HOME": str(_HOME), "LANG": "C.UTF-8"}


def process_limit(limits: Limits | None = None, way: Way | None = None) -> int | None:
    """The limit on processes and threads; None if the kernel counts those of other sessions, too."""
    return (limits or Limits()).processes if (way or _way()).counts_processes() else None


class BubblewrapLauncher(LocalLauncher):
    """Starts kernels in bubblewrap; the `way` to drop privileges is by default the first one that works.

    Raises `UsageError` if no way works on this machine.
    """

    def __init__(self, limits: Limits | None = None, way: Way | None = None) -> None:
        super().__init__(limits)
        self._way = way or _way()

    async def launch(self, folders: Folders) -> LocalEnclosure:
        """Start an enclosure; see `labmates.sandboxes.process.Launcher`."""
        warmup = warm_up()
        inside = Warmup(*(_OURS / name if path else None for name, path in _warmup_binds(warmup)))
        command = await in_thread(self._command, folders, warmup, inside)
        environment = local_environment(_HOME, _TMP, inside)
        return await LocalEnclosure.start(
            command, environment, folders.private, replaces_kernels=True, memory=self._limits.memory
        )

    def _command(self, folders: Folders, warmup: Warmup, inside: Warmup) -> list[str]:
        """The command of an enclosure; writes its settings."""
        settings = {
            **runner_settings(self._limits, inside),
            "memory": self._limits.data,
            "control": str(_RUN / folders.control.name),
            "data": str(_DATA / "data.csv"),
            "alone": True,
            "processes": process_limit(self._limits, self._way),
        }
        with starting():
            path = folders.write_settings(settings)
        binds = {
            RUNNER: _OURS / RUNNER.name,
            folders.run: _RUN,
            folders.data: _DATA,
            **{path: _OURS / name for name, path in _warmup_binds(warmup) if path},
        }
        enclosure = _enclosure(self._way, self._limits, binds, folders.private)
        return [*enclosure, *kernel_command(_OURS / RUNNER.name, _RUN / path.name)]


def _warmup_binds(warmup: Warmup) -> tuple[tuple[str, Path | None], ...]:
    return ("bytecode", warmup.bytecode), ("fonts", warmup.fonts)


def _enclosure(way: Way, limits: Limits, binds: dict[Path, Path], folder: Path) -> list[str]:
    """The command up to the inner command, with `binds` (outside to inside) mounted read-only."""
    empty = folder / "empty"
    with starting():
        empty.mkdir()
    scratch = ["--perms", "1777", "--size", str(limits.scratch), "--tmpfs"]
    roots = outermost((Path("/usr"), *this_interpreter().roots))
    options = [
        *way.options,
        *_NAMESPACES,
        *("--die-with-parent", "--new-session", "--hostname", "sandbox"),
        # The writable folders come first: Python may be below one of them (a checkout in /tmp).
        *_parents((_HOME,), ()),
        *(*scratch, str(_TMP)),
        *(*scratch, str(_HOME)),
        *_parents((*roots, *binds.values(), *map(Path, _SYSTEM_FILES)), roots),
        *_read_only((root, root) for root in roots),
        *_system_links(),
        *_read_only(_masks(roots, empty)),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(limits.shared_memory), "--tmpfs", "/dev/shm"),  # noqa: S108
        *_read_only(binds.items()),
        # The remaining writable file systems are bubblewrap's, without size limits.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", str(_HOME)),
    ]
    program = shutil.which("bwrap") or "bwrap"  # from this process's PATH, not the kernel's
    return [program, *options, "--", *way.user_command()]


def _parents(paths: Iterable[Path], roots: tuple[Path, ...]) -> list[str]:
    """The options to create the parents of `paths`, which bubblewrap would create for root only."""
    above = dict.fromkeys(parent for path in paths for parent in reversed(path.parents[:-1]))
    missing = [
        path for path in above if path not in (_TMP, _HOME) and not any(path.is_relative_to(root) for root in roots)
    ]
    return [word for path in missing for word in ("--perms", "0755", "--dir", str(path))]


def _read_only(binds: Iterable[tuple[Path, Path]]) -> list[str]:
    return [word for outside, inside in binds for word in ("--ro-bind", str(outside), str(inside))]


def _system_links() -> list[str]:
    """The options for ``/bin``, ``/lib`` and so on, which are links into ``/usr`` or folders."""
    words: list[str] = []
    for path in map(Path, _SYSTEM_LINKS):
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    return words + [word for path in _SYSTEM_FILES for word in ("--ro-bind-try", path, path)]


def _masks(roots: tuple[Path, ...], empty: Path) -> list[tuple[Path, Path]]:
    """Mounts that hide paths within the `roots`."""
    hidden = dict.fromkeys(form for path in hidden_paths() for form in (path, path.resolve()))
    return [
        (empty if path.is_dir() else Path(os.devnull), path)
        for path in hidden
        if any(path.is_relative_to(root) for root in roots)
    ]


@cache
def _way() -> Way:
    """The first way that works; raises `UsageError` with the reason why the last one fails."""
    if shutil.which("bwrap") is None:
        raise UsageError(f"{_FAILS}there is no program 'bwrap'")
    why: str | None = None
    for way in _WAYS:
        if way.drops_user and (os.geteuid() != 0 or shutil.which("setpriv") is None):
            continue
        why = _try(way)
        if why is None:
            return way
    raise UsageError(f"{_FAILS}{why}")


def _try(way: Way) -> str | None:
    folder = new_folder()
    try:
        python = (str(this_interpreter().executable), *FLAGS, "-c", "import zmq")
        command = [*_enclosure(way, Limits(), {}, folder), *python]
        environment = local_environment(_HOME, _TMP, Warmup())
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        remove_folder(folder)
    return None if done.returncode == 0 else done.stderr.strip()[-300:] or f"exit status {done.returncode}"
