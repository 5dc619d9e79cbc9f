"""Use of a task that need not be installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labmates.errors import LabmatesError, UsageError
from labmates.tasks.base import Task
from labmates.tasks.registry import load_task, resolve_reference
from labmates_author.trial import exception_text


@contextmanager
def using_task(reference: str) -> Iterator[Task[Any, Any]]:
    """Use a task by its reference; exceptions of its code become usage errors that name it."""
    try:
        yield load_task(resolve_reference(reference))
    except LabmatesError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in may raise anything
        raise UsageError(
            f"the task '{reference}' {exception_text(error)}; for details: labmates tasks check"
        ) from error
