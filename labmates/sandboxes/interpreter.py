"""The Python of a local sandbox: the current interpreter, outside its virtual environment."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

FLAGS = ("-S", "-s", "-P")
"""Options for Python to find packages only through ``PYTHONPATH``, without ``.pth`` files."""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and its files.

    The path of `executable` has no symbolic link. `roots` are disjoint files and folders with the interpreter, its
    standard library and the installed packages; `packages` are the package folders in search order.
    """

    executable: Path
    roots: tuple[Path, ...]
    packages: tuple[Path, ...]


@cache
def this_interpreter() -> Interpreter:
    """The files that a child needs to import the packages of this process.

    The folders of editable installs (in ``.pth`` files) are left out. This, and `hidden_paths`, keeps the generators of
    the ground truth out of the sandbox.
    """
    executable = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    prefix = executable.parent.parent
    packages = tuple(
        path
        for path in map(Path, dict.fromkeys(sys.path))
        if path.name in ("site-packages", "dist-packages") and path.is_dir()
    )
    libraries = (path for path in (prefix / "lib", prefix / "lib64") if path.is_dir())
    return Interpreter(executable, outermost((executable, *libraries, *packages)), packages)


def outermost(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """`paths` without those inside another one."""
    return tuple(
        path
        for path in dict.fromkeys(paths)
        if not any(path != other and path.is_relative_to(other) for other in paths)
    )


@cache
def hidden_paths() -> tuple[Path, ...]:
    """Files and folders to hide from sandboxes: this package and all plug-ins' packages; they hold the truth."""
    points = entry_points()
    groups = [group for group in points.groups if group.startswith("labmates.")]
    # Not `point.module`, which raises for invalid values; the registry reports those.
    plugins = {re.split(r"\W", point.value.strip(), maxsplit=1)[0] for g in groups for point in points.select(group=g)}
    paths: list[Path] = []
    for name in sorted({"labmates", *filter(str.isidentifier, plugins)}):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            paths += map(Path, spec.submodule_search_locations)
        elif spec is not None and spec.origin is not None:
            paths.append(Path(spec.origin))
    return tuple(path for path in paths if path.exists())
