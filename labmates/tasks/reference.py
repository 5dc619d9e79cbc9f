"""Tasks by reference: a registered name, or a class in a file or module that nobody has installed yet."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from labmates.errors import UsageError, unknown_name
from labmates.tasks.base import Task
from labmates.tasks.registry import TASKS, get_task, make_task

FORMS = "a task's name, path/to/file.py:Class or module:Class"


def resolve_reference(text: str) -> str:
    """A reference in a form that any process understands, without importing anything of a plug-in.

    Raises
    ------
    UsageError
        If there is no such name or file.
    """
    place, _, attribute = text.partition(":")
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            raise UsageError(f"there is no file '{place}'; give {FORMS}")
        return f"{path}:{attribute}"
    if attribute:
        return text
    if text not in TASKS:
        raise unknown_name("task", text, TASKS.names())
    return text


def load_task(reference: str) -> Task[Any, Any]:
    """The task that a resolved reference means.

    In a file the class may be left out if it defines only one task.

    Raises
    ------
    UsageError
        If the class is missing or no complete task; importing it may raise anything else.
    """
    place, colon, attribute = reference.rpartition(":")
    if not colon:
        return get_task(reference)
    module = import_place(place)
    if attribute and not hasattr(module, attribute):
        raise UsageError(f"'{place}' has no '{attribute}'; its tasks are: {', '.join(_tasks_in(module)) or 'none'}")
    if not attribute and len(_tasks_in(module)) != 1:
        raise UsageError(f"say which task of '{place}' is meant: {', '.join(_tasks_in(module)) or 'it has none'}")
    return make_task(getattr(module, attribute or _tasks_in(module)[0]))


def import_place(place: str) -> ModuleType:
    """A module, given by its name or as a file; importing it may raise anything."""
    return _from_file(Path(place)) if place.endswith(".py") else _from_name(place)


def _tasks_in(module: ModuleType) -> list[str]:
    """The names of the tasks that a module itself defines."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__
    ]


def _from_name(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    """Import a file: as part of its package if it lies in one, so that its relative imports work."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if len(parts) > 1:
        return importlib.import_module(".".join(parts))
    # Under a name that no installed module can have.
    spec = importlib.util.spec_from_file_location(f"<{path.name}>", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
