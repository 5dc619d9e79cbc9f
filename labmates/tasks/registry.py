"""Tasks by name; other packages add theirs through the entry-point group ``labmates.tasks``."""

from __future__ import annotations

from typing import Any

from labmates.errors import UsageError
from labmates.registry import Registry
from labmates.tasks.base import Task

TASKS: Registry[type[Task[Any, Any]]] = Registry(
    "task",
    "labmates.tasks",
    {
        "ecology": "labmates.tasks.ecology.task:EcologyTask",
        "anomaly": "labmates.tasks.anomaly.task:AnomalyTask",
        "geospatial": "labmates.tasks.geospatial.task:GeospatialTask",
        "biomarker": "labmates.tasks.biomarker.task:BiomarkerTask",
    },
)


def get_task(name: str) -> Task[Any, Any]:
    """The task called `name`.

    Raises
    ------
    UsageError
        If there is none, or if a plug-in's entry is no complete subclass of `labmates.tasks.base.Task`.
    """
    with TASKS.guarded(name, "can't be used"):
        return make_task(TASKS.get(name))


def make_task(task: object) -> Task[Any, Any]:
    """An instance of a class of tasks.

    Raises
    ------
    UsageError
        If it is no complete subclass of `labmates.tasks.base.Task`.
    """
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise UsageError(f"a task must be a subclass of labmates.tasks.base.Task, not {task!r}")
    try:
        return task()
    except TypeError as error:
        raise UsageError(f"the task can't be instantiated: {error}") from error
