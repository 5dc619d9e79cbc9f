"""The Python of a local sandbox: the current interpreter, outside its virtual environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from platform import python_version

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


LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "statsmodels", "matplotlib", "seaborn")
"""Distributions that agents are told of, in the order of the prompt."""
PACKAGES = ("ipykernel", "ipython", "jinja2", *LIBRARIES)
"""Distributions that every sandbox holds: the kernel's, what pandas needs for styles, and the libraries."""

_NOT = "debugpy"  # of ipykernel; it is large, and nobody debugs in a sandbox


def local_libraries() -> Mapping[str, str]:
    """The versions of Python and of `LIBRARIES` on this machine, by name."""
    return {"Python": python_version(), **{name: version(name) for name in LIBRARIES}}


@cache
def local_modules() -> tuple[str, ...]:
    """Names of the modules of `PACKAGES`, and of what they require, as installed on this machine.

    A local sandbox finds no others: with pyarrow, pandas would take other types for texts, and code that works beside
    one machine's packages would fail on the next one.
    """
    names = {name for package in _required() for name in _modules(package)}
    return tuple(sorted(names - {_NOT}))


def _required() -> Iterator[Distribution]:
    from packaging.requirements import Requirement

    waiting, known = [*PACKAGES], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        yield package
        requirements = map(Requirement, package.requires or ())
        waiting += [one.name for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]


def _modules(package: Distribution) -> Iterator[str]:
    """Names of a package's modules; a few others, of its folders, do no harm."""
    yield from (package.read_text("top_level.txt") or "").split()
    for line in (package.read_text("RECORD") or "").splitlines():
        yield line.partition(",")[0].partition("/")[0].partition(".")[0]
