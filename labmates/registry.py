"""Registries: named objects of labmates, of its experiments and of other packages."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakSet

from labmates.errors import LabmatesError, UsageError, unknown_name

T = TypeVar("T")
V = TypeVar("V")
MOST_SECONDS = 15.0
"""A plug-in that takes longer to be imported and looked at hangs."""
CORE = "labmates"
"""The distribution of the core."""


class PluginError(UsageError):
    """An entry of another package is unusable; the text names the package and the entry point."""


class Registry(Generic[T]):
    """Named objects, loaded at first use.

    An unusable plug-in doesn't affect other entries: it is listed by name, and fails only when it is requested.

    Parameters
    ----------
    what
        Noun for an entry in messages, for instance ``"task"``.
    group
        The entry-point group through which packages, this one included, add entries, for instance
        ``"labmates.tasks"``. A name that ends with a slash is a family, whose members are too many to list: its
        function takes the rest of a name and returns the entry or raises `UsageError`.
    """

    def __init__(self, what: str, group: str) -> None:
        self.what = what
        self.group = group
        self._loaded: dict[str, T] = {}
        self._replaced: set[str] = set()
        self._plugins: Mapping[str, Sequence[Point]] | None = None
        _REGISTRIES.add(self)

    def names(self) -> list[str]:
        """Names of all entries, sorted; members of families are not listed."""
        return sorted({*self._loaded, *(name for name in self._points if not name.endswith("/"))})

    def get(self, name: str) -> T:
        """The entry called `name`.

        Raises `UsageError` if no entry has that name; `PluginError` if a plug-in can't be imported, or if several
        packages declare that name.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def is_own(self, name: str) -> bool:
        """Whether the entry is the project's own: neither a plug-in's nor registered at run time."""
        return any(point.distribution in _ours() for point in self._found(name))

    def in_family(self, name: str) -> bool:
        """Whether the name belongs to a family of unlisted entries; the entry itself may not exist."""
        return self._family(name) is not None

    def package(self, name: str) -> str | None:
        """The package (``"name version"``) of an entry from another package; None for other entries."""
        points = [point for point in self._found(name) if point.distribution != CORE]
        return _packages(points) if points else None

    def shadowed(self) -> list[str]:
        """One line for each plug-in that is ignored because labmates has an entry of that name."""
        return [
            f"the {self.what} '{name}' is labmates' own; that of {_packages(ignored)} is ignored"
            for name, points in self._points.items()
            if self.is_own(name) and (ignored := [point for point in points if point.distribution not in _ours()])
        ]

    def module(self, name: str) -> str:
        """The module that declares an entry; it is not imported for that."""
        points = self._found(name)
        return points[0].value.partition(":")[0] if points else str(getattr(self.get(name), "__module__", ""))

    def register(self, name: str, entry: T) -> None:
        """Add or replace an entry, in this process."""
        self._loaded[name] = entry
        self._replaced.add(name)

    def refuse_missing(self, name: str, *, shown: str = "") -> None:
        """Raise a `UsageError` if a package of this project has the entry and is not installed.

        The error calls the entry `shown`, by default its name.
        """
        for listed, package in satellites().get(self.group, {}).items() if name not in self else ():
            is_group = listed.startswith(f"{name}/") or (listed.endswith("/") and name.startswith(listed))
            if (name == listed or is_group) and listed not in self:
                raise UsageError(
                    f"the {self.what} '{shown or name}' is in the package {package}: pip install {package}"
                )

    def missing(self) -> frozenset[str]:
        """Packages of this project that bring entries and are not installed."""
        brought = satellites().get(self.group, {}).items()
        return frozenset(package for name, package in brought if name not in self)

    @contextmanager
    def guarded(self, name: str, fails: str) -> Iterator[None]:
        """Run the block on the entry called `name`; any exception of a plug-in's entry becomes a `PluginError`.

        `fails` completes the message, for instance ``"can't be made"``. Raises `PluginError` if the entry is a
        plug-in's and the block raised; exceptions of other entries pass.
        """
        try:
            yield
        except PluginError:
            raise
        except (Exception, SystemExit) as error:
            points = self._found(name)
            if not points or self.is_own(name):
                raise
            why = str(error) if isinstance(error, LabmatesError) else f"{type(error).__name__}: {error}"
            point = f"{_packages(points)}, entry point {self.group}: {name} = {points[0].value}"
            raise PluginError(f"the {self.what} '{name}' ({point}) {fails}: {why}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._loaded or bool(self._found(str(name)))

    def _load(self, name: str) -> T:
        points = self._found(name)
        if not points:
            self.refuse_missing(name)
            raise unknown_name(self.what, name, self.names())
        if len(points) > 1:
            raise PluginError(
                f"several packages declare the {self.what} '{name}': {_packages(points)}; uninstall all but one"
            )
        with self.guarded(name, "can't be imported"):
            found = _attribute(points[0].value)
            family = self._family(name)
            return cast(T, found if family is None else found(name.removeprefix(family)))

    def _found(self, name: str) -> Sequence[Point]:
        """The entry points of an entry; our own only, if there is one."""
        if name in self._replaced:
            return []
        points = self._points.get(self._family(name) or name, [])
        return [point for point in points if point.distribution in _ours()] or points

    def _family(self, name: str) -> str | None:
        if name in self._points and not name.endswith("/"):
            return None
        return next((start for start in self._points if start.endswith("/") and name.startswith(start)), None)

    @property
    def _points(self) -> Mapping[str, Sequence[Point]]:
        if self._plugins is None:
            self._plugins = entry_points(tuple(sys.path)).get(self.group, {})
        return self._plugins


_REGISTRIES: WeakSet[Registry[Any]] = WeakSet()


def look_up_plugins() -> None:
    """Look up the plug-ins of all registries now: it reads files, which must not block an event loop later."""
    for registry in _REGISTRIES:
        registry.names()


class Point(NamedTuple):
    """An entry point: what an installed package declares under a name.

    Attributes
    ----------
    value
        Where the entry is: ``"module:attribute"``.
    metadata
        The folder of the package's metadata.
    """

    value: str
    metadata: str

    @property
    def distribution(self) -> str:
        """The package's name, normalised."""
        return _distribution(self.metadata)

    @property
    def package(self) -> str:
        """The package's name and version."""
        for file in ("METADATA", "PKG-INFO"):
            with suppress(OSError), open(f"{self.metadata}/{file}", encoding="utf-8") as text:  # noqa: PTH123
                told = dict(line.rstrip().split(": ", 1) for line in text if line.startswith(("Name: ", "Version: ")))
                return f"{told.get('Name', self.distribution)} {told.get('Version', '')}".rstrip()
        return self.distribution


@lru_cache(maxsize=8)
def entry_points(path: tuple[str, ...]) -> Mapping[str, Mapping[str, Sequence[Point]]]:
    """All entry points of installed packages in groups of labmates, by group and name.

    `importlib.metadata` finds the same, but its import is the slowest part of the start of ``labmates --help``.
    """
    found: defaultdict[str, defaultdict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    known = set()
    for folder in filter(os.path.isdir, path):
        for entry in sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith("-info")):
            if _distribution(entry) in known:  # an installation that another one hides
                continue
            known.add(_distribution(entry))
            with suppress(OSError), open(f"{entry}/entry_points.txt", encoding="utf-8") as text:  # noqa: PTH123
                group = ""
                for line in map(str.strip, text):
                    if line.startswith("["):
                        group = line.strip("[]")
                    elif group.startswith("labmates.") and "=" in line:
                        name, _, value = (part.strip() for part in line.partition("="))
                        found[group][name].append(Point(value, entry))
    return found


@cache
def _distribution(metadata: str) -> str:
    return os.path.basename(metadata).removesuffix("-info").partition("-")[0].replace("_", "-").lower()  # noqa: PTH119


@cache
def satellites() -> Mapping[str, Mapping[str, str]]:
    """The package that brings an entry, by group and name, for all packages of this project beside the core.

    The build makes this table from their entry points, whether they are installed or not.
    """
    import json

    try:
        with open(f"{__file__.removesuffix('registry.py')}_satellites.json", encoding="utf-8") as table:  # noqa: PTH123
            return cast("Mapping[str, Mapping[str, str]]", json.load(table))
    except FileNotFoundError:  # not installed, but read from a checkout
        return {}


@cache
def _ours() -> frozenset[str]:
    return frozenset([CORE, *(package for names in satellites().values() for package in names.values())])


class lazy:  # noqa: N801 - it reads as a function: run=lazy("module:function")
    """An object given as ``"module:attribute"`` and imported at first use; callable if the object is."""

    def __init__(self, where: str) -> None:
        self._where = where

    @property
    def module(self) -> str:
        """The module of the object."""
        return self._where.partition(":")[0]

    @cached_property
    def target(self) -> Any:
        """The imported object."""
        return _attribute(self._where)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the imported object."""
        return self.target(*arguments, **named)


def _attribute(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return attrgetter(attribute)(importlib.import_module(module))


def _packages(points: Sequence[Point]) -> str:
    return " and ".join(point.package for point in points)


def look_at_all(registry: Registry[Any], look: Callable[[str], V], warn: Callable[[str], None]) -> dict[str, V]:
    """The result of `look` for each entry of a registry; warns of plug-ins that can't be used."""
    for line in registry.shadowed():
        warn(line)
    seen = {}
    for name in registry:
        limit = time_limit(MOST_SECONDS) if registry.package(name) else nullcontext()
        try:
            with registry.guarded(name, "can't be used"), limit:
                seen[name] = look(name)
        except PluginError as error:
            warn(str(error))
    return seen


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in what takes longer; for the main thread."""

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"it did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
