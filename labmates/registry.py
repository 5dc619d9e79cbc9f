"""Registries: named objects of labmates, of its experiments and of other packages."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import WeakSet

from labmates.errors import LabmatesError, UsageError, unknown_name
from labmates.util.grouping import grouped

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
V = TypeVar("V")
MOST_SECONDS = 15.0
"""A plug-in that takes longer to be imported and looked at hangs."""


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
        The entry-point group through which other packages add entries, for instance ``"labmates.tasks"``.
    own
        Our own entries, except those that experiments declare: name to ``"module:attribute"``.
    families
        Our own entries that are too many to list, by prefix of their names: ``"module:function"``, which takes the
        rest of a name and returns the entry or raises `UsageError`. Experiments declare a family by a name that ends
        with a slash.
    """

    def __init__(
        self, what: str, group: str, own: Mapping[str, str] | None = None, families: Mapping[str, str] | None = None
    ) -> None:
        self.what = what
        self.group = group
        self._given = own or {}
        self._given_families = families or {}
        self._loaded: dict[str, T] = {}
        self._replaced: set[str] = set()
        self._plugins: dict[str, list[EntryPoint]] | None = None
        _REGISTRIES.add(self)

    @cached_property
    def _own(self) -> Mapping[str, str]:
        return {**self._given, **{name: at for name, at in _declared()[self.group].items() if not name.endswith("/")}}

    @cached_property
    def _families(self) -> Mapping[str, str]:
        declared = {start: at for start, at in _declared()[self.group].items() if start.endswith("/")}
        return {**self._given_families, **declared}

    def names(self) -> list[str]:
        """Names of all entries, sorted."""
        return sorted({*self._own, *self._loaded, *self._entry_points()})

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
        return (name in self._own or self.in_family(name)) and name not in self._replaced

    def in_family(self, name: str) -> bool:
        """Whether the name belongs to a family of unlisted entries; the entry itself may not exist."""
        return name.startswith(tuple(self._families))

    def package(self, name: str) -> str | None:
        """The package (``"name version"``) of a plug-in's entry; None for other entries."""
        points = self._points(name)
        return _packages(points) if points else None

    def shadowed(self) -> list[str]:
        """One line for each plug-in that is ignored because labmates has an entry of that name."""
        return [
            f"the {self.what} '{name}' is labmates' own; that of {_packages(points)} is ignored"
            for name, points in self._entry_points().items()
            if name in self._own
        ]

    def register(self, name: str, entry: T) -> None:
        """Add or replace an entry, in this process."""
        self._loaded[name] = entry
        self._replaced.add(name)

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
            points = self._points(name)
            if not points:
                raise
            why = str(error) if isinstance(error, LabmatesError) else f"{type(error).__name__}: {error}"
            point = f"{_packages(points)}, entry point {self.group}: {name} = {points[0].value}"
            raise PluginError(f"the {self.what} '{name}' ({point}) {fails}: {why}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._own or self.in_family(str(name)) or name in self.names()

    def _load(self, name: str) -> T:
        if name in self._own:
            return cast(T, _attribute(self._own[name]))
        for start, maker in self._families.items():
            if name.startswith(start):
                return cast(T, _attribute(maker)(name.removeprefix(start)))
        points = self._points(name)
        if not points:
            raise unknown_name(self.what, name, self.names())
        if len(points) > 1:
            raise PluginError(
                f"several packages declare the {self.what} '{name}': {_packages(points)}; uninstall all but one"
            )
        with self.guarded(name, "can't be imported"):
            return cast(T, points[0].load())

    def _points(self, name: str) -> list[EntryPoint]:
        """The entry points of a plug-in's entry; none for other entries."""
        return [] if name in self._own or name in self._replaced else self._entry_points().get(name, [])

    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        if self._plugins is None:
            self._plugins = _entry_points(self.group) if _may_be_declared(self.group) else {}
        return self._plugins


_REGISTRIES: WeakSet[Registry[Any]] = WeakSet()


def look_up_plugins() -> None:
    """Look up the plug-ins of all registries now: it reads files, which must not block an event loop later."""
    for registry in _REGISTRIES:
        registry.names()


def _may_be_declared(group: str) -> bool:
    # Spares `labmates --help` the imports of importlib.metadata and pathlib, the slowest part of its start.
    if "importlib.metadata" in sys.modules or any(map(os.path.isfile, sys.path)):  # a file is an archive
        return True
    for folder in filter(os.path.isdir, sys.path):
        for entry in os.scandir(folder):
            if entry.name.endswith("-info"):
                with (
                    suppress(OSError),  # a package without entry points
                    open(f"{entry.path}/entry_points.txt", "rb") as declared,  # noqa: PTH123
                ):
                    if group.encode() in declared.read():
                        return True
    return False


def _entry_points(group: str) -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    return grouped((point.name, point) for point in entry_points(group=group))


@cache
def _declared() -> Mapping[str, Mapping[str, str]]:
    """The entries that the experiments' packages declare as ``ENTRIES``: ``"module:attribute"`` by group and name."""
    workflows = importlib.import_module("labmates.workflows")
    declared: defaultdict[str, dict[str, str]] = defaultdict(dict)
    root = workflows.__path__[0]
    names = filter(lambda name: os.path.isfile(f"{root}/{name}/__init__.py"), os.listdir(root))  # noqa: PTH113, PTH208
    for folder in sorted(names):
        package = importlib.import_module(f"labmates.workflows.{folder}")
        for group, entries in getattr(package, "ENTRIES", {}).items():
            declared[group] |= {name: package.__name__ + where for name, where in entries.items()}
    return declared


class lazy:  # noqa: N801 - it reads as a function: run=lazy("module:function")
    """An object given as ``"module:attribute"`` and imported at first use; callable if the object is."""

    def __init__(self, where: str) -> None:
        self._where = where

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


def _packages(points: list[EntryPoint]) -> str:
    return " and ".join(f"{p.dist.name} {p.dist.version}" if p.dist else "an unknown package" for p in points)


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
