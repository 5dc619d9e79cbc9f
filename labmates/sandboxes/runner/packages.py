"""The packages that code finds, the same ones whatever else is installed on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class Packages(PathFinder):
    """Finds modules as Python does, but only named ones in the folders of packages.

    Nothing is left in ``sys.modules`` for what is not found: libraries look there for others.
    """

    names: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The place of a module; None if it is not found."""
        if path is None and fullname not in cls.names:
            path = [folder for folder in sys.path if folder not in cls.folders]
        return super().find_spec(fullname, path, target)


def find_only(names: Iterable[str]) -> None:
    """Find only modules of these `names` in the folders of packages, from now on and in all forks."""
    Packages.names = frozenset(names)
    Packages.folders = frozenset(os.environ["PYTHONPATH"].split(os.pathsep))
    sys.meta_path[:] = [Packages if finder is PathFinder else finder for finder in sys.meta_path]
