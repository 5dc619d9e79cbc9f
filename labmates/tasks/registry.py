"""Tasks by name, and plug-ins by reference: a class in a file or module that need not be installed.

Other packages add tasks through the entry-point group ``labmates.tasks``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from labmates.errors import UsageError, unknown_name
from labmates.registry import Registry
from labmates.tasks.base import Task

TASKS: Registry[type[Task[Any, Any]]] = Registry("task", "labmates.tasks")


def get_task(name: str) -> Task[Any, Any]:
    """The task called `name`.

    Raises `UsageError` if it is unknown, or a plug-in's entry is not a complete subclass of `labmates.tasks.base.Task`.
    """
    with TASKS.guarded(name, "can't be used"):
        return make_task(TASKS.get(name))


def make_task(task: object) -> Task[Any, Any]:
    """An instance of a class of tasks.

    Raises `UsageError` if it is not a complete subclass of `labmates.tasks.base.Task`.
    """
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise UsageError(f"a task must be a subclass of labmates.tasks.base.Task, not {task!r}")
    try:
        return task()
    except TypeError as error:
        raise UsageError(f"the task can't be instantiated: {error}") from error


def resolve_reference(text: str, registry: Registry[Any] = TASKS) -> str:
    """A reference in a form for any process, without importing a plug-in.

    Raises `UsageError` if the name or file is unknown.
    """
    place, _, attribute = text.partition(":")
    if place.endswith(".py"):
        path = Path(place).resolve()
        if not path.is_file():
            forms = f"a {registry.what}'s name, path/to/file.py:Class or module:Class"
            raise UsageError(f"there is no file '{place}'; give {forms}")
        return f"{path}:{attribute}"
    if attribute:
        return text
    if text not in registry:
        raise unknown_name(registry.what, text, registry.names())
    return text


def load_task(reference: str) -> Task[Any, Any]:
    """The task of a resolved reference; the class may be omitted for a file with a single task.

    Raises
    ------
    UsageError
        If the class is missing or not a complete task. Importing it may raise any other exception.
    """
    if ":" not in reference:
        return get_task(reference)
    return make_task(find_class(reference, TASKS.what, lambda value: issubclass(value, Task)))


def find_class(reference: str, what: str, is_one: Callable[[type], bool]) -> Any:
    """The class of a resolved reference to a file or a module.

    Parameters
    ----------
    what
        The noun for the class in messages.
    is_one
        Tests classes of the module. The reference may omit the class if only one matches.

    Raises
    ------
    UsageError
        If the class is missing. Importing the module may raise any other exception.
    """
    place, _, attribute = reference.rpartition(":")
    module = import_place(place)
    classes = {name: value for name, value in vars(module).items() if isinstance(value, type)}
    names = [name for name, value in classes.items() if value.__module__ == module.__name__ and is_one(value)]
    if attribute and not hasattr(module, attribute):
        raise UsageError(f"'{place}' has no '{attribute}'; its {what}s are: {', '.join(names) or 'none'}")
    if not attribute and len(names) != 1:
        raise UsageError(f"choose a {what} of '{place}': {', '.join(names) or 'it has none'}")
    return getattr(module, attribute or names[0])


def import_place(place: str) -> ModuleType:
    """A module by its name or file; importing it may raise any exception."""
    return _from_file(Path(place)) if place.endswith(".py") else _from_name(place)


def _from_name(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    """Import a file, as part of its package if it has one, so that relative imports work."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    sys.path.insert(0, str(root))
    if len(parts) > 1:
        return importlib.import_module(".".join(parts))
    # The name can't collide with an installed module.
    spec = importlib.util.spec_from_file_location(f"<{path.name}>", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
