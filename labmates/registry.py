"""Things found by name: our own, and those that other packages add through entry points."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from labmates.errors import UsageError, unknown_name

T = TypeVar("T")


class Registry(Generic[T]):
    """Named objects, loaded when they are first asked for.

    Parameters
    ----------
    what
        What one entry is called in messages, for instance ``"task"``.
    group
        The entry-point group through which other packages add entries, for instance ``"labmates.tasks"``.
    own
        Our own entries: name to ``"module:attribute"``.
    """

    def __init__(self, what: str, group: str, own: dict[str, str]) -> None:
        self.what = what
        self.group = group
        self._own = own
        self._loaded: dict[str, T] = {}
        self._replaced: set[str] = set()
        self._plugins: dict[str, EntryPoint] | None = None

    def names(self) -> list[str]:
        """Names of all entries, sorted; a plug-in can't take the name of one of ours."""
        return sorted({*self._own, *self._loaded, *self._entry_points()})

    def get(self, name: str) -> T:
        """Return the entry called `name`.

        Raises
        ------
        UsageError
            If no entry has that name, or if a plug-in can't be imported.
        """
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def is_own(self, name: str) -> bool:
        """Tell whether the entry is the project's own, not a plug-in's and not registered at run time."""
        return name in self._own and name not in self._replaced

    def register(self, name: str, entry: T) -> None:
        """Add an entry for this process, or put it in the place of the one with that name."""
        self._loaded[name] = entry
        self._replaced.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def _load(self, name: str) -> T:
        if name in self._own:
            module, _, attribute = self._own[name].partition(":")
            return cast(T, getattr(importlib.import_module(module), attribute))
        plugins = self._entry_points()
        if name not in plugins:
            raise unknown_name(self.what, name, self.names())
        try:
            return cast(T, plugins[name].load())
        except Exception as error:
            raise UsageError(
                f"the {self.what} '{name}' of the plug-in '{plugins[name].value}' can't be imported: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._plugins is None:
            self._plugins = {point.name: point for point in entry_points(group=self.group)}
        return self._plugins
