"""The packages for an image, downloaded on this machine with the user's pip settings."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from labmates.errors import UsageError
from labmates.sandboxes.base import SandboxError
from labmates.sandboxes.folders import cache_folder, remove_folder
from labmates.sandboxes.image.names import REQUIREMENTS

WHEELS = "wheels"
"""Name of the cache of downloaded packages."""
_OLDEST_GLIBC = {"x86_64": 5, "i686": 5}  # oldest minor version with wheels, by machine type
_OLDEST_GLIBC_ELSE = 17
_OLD_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_ERROR_LINES = 12


@dataclass(frozen=True)
class Target:
    """Compatibility requirements of packages."""

    python: str  # full version, "3.12.7": some packages refuse certain patch releases
    machine: str  # Python's machine type, "x86_64"
    glibc: tuple[int, int]  # version of the C library

    def platforms(self) -> list[str]:
        """The platform tags of compatible packages, best first."""
        major, newest = self.glibc
        oldest = _OLDEST_GLIBC.get(self.machine, _OLDEST_GLIBC_ELSE)
        tags = [f"linux_{self.machine}"]
        for minor in range(newest, oldest - 1, -1):
            tags.append(f"manylinux_{major}_{minor}_{self.machine}")
            if minor in _OLD_NAMES:
                tags.append(f"{_OLD_NAMES[minor]}_{self.machine}")
        return tags


def pinned_packages(target: Target) -> list[str]:
    """The packages for `target`, as ``name==version``; pip would evaluate markers for its own Python instead."""
    from packaging.requirements import Requirement

    environment = {
        "python_full_version": target.python,
        "python_version": ".".join(target.python.split(".")[:2]),
        "implementation_name": "cpython",
        "implementation_version": target.python,
        "platform_python_implementation": "CPython",
        "platform_machine": target.machine,
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
    }
    lines = [line.partition("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines()]
    wanted = [Requirement(line) for line in lines if line]
    return [f"{r.name}{r.specifier}" for r in wanted if r.marker is None or r.marker.evaluate(environment)]


def download_wheels(target: Target, tell: Callable[[str], None]) -> Path:
    """A folder with the packages for `target`, downloaded if missing.

    Raises `UsageError` if this Python has no pip; `SandboxError` if a download fails.
    """
    packages = pinned_packages(target)
    key = hashlib.sha256("\n".join([*packages, *target.platforms(), target.python]).encode()).hexdigest()[:16]
    folder = cache_folder(WHEELS) / key
    if folder.is_dir():
        tell(f"taking {len(packages)} packages from {folder}")
        return folder
    if find_spec("pip") is None:
        raise UsageError(
            f"downloading packages needs pip, which {sys.executable} lacks; add it with: "
            f"{sys.executable} -m ensurepip (or: uv pip install pip)"
        )
    tell(f"downloading {len(packages)} packages for Python {target.python} on {target.machine}, about 120 MB")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix="unfinished-"))
    except OSError as error:
        raise SandboxError(f"can't write packages in {folder.parent}: {error}") from error
    try:
        _pip_download(packages, target, made)
        if not folder.is_dir():
            made.rename(folder)
    finally:
        remove_folder(made)
    return folder


def _pip_download(packages: list[str], target: Target, folder: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:", "--no-deps"]
    fits = ["--implementation", "cp", "--python-version", target.python]
    fits += [word for tag in target.platforms() for word in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "download", *options, *fits, "--dest", str(folder), *packages]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        why = "\n".join(lines[-_ERROR_LINES:])
        raise SandboxError(f"the packages for the image can't be downloaded (is there a network?). pip says:\n{why}")
