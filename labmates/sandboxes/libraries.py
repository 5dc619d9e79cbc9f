"""The libraries of agents' code: what a sandbox holds and what agents are told of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from platform import python_version

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
