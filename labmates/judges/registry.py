"""Judges by name; other packages add theirs through the entry-point group ``labmates.judges``.

Judges that ask a model are in the group ``labmates.model_judges``: ``rubric`` judges as ``rubric:provider:name``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labmates.errors import LabmatesError, UsageError
from labmates.judges.base import Judge
from labmates.registry import Registry
from labmates.tasks.registry import find_class, resolve_reference

if TYPE_CHECKING:
    from labmates.judges.interview import ModelJudge

JUDGES: Registry[Callable[[], Judge]] = Registry("judge", "labmates.judges")
MODEL_JUDGES: Registry[type[ModelJudge]] = Registry("judge model", "labmates.model_judges")


def get_judge(name: str) -> Judge:
    """The registered judge `name`.

    Raises
    ------
    UsageError
        If the name is unknown, or the judge of a plug-in can't be created.
    """
    with JUDGES.guarded(name, "can't be made"):
        return JUDGES.get(name)()


def load_judge(reference: str) -> Judge:
    """The judge of a resolved reference (`labmates.tasks.registry.resolve_reference`).

    Raises
    ------
    UsageError
        If the class is missing. Importing or creating the judge may raise any other exception.
    """
    if ":" not in reference:
        return get_judge(reference)
    judge: Judge = find_class(reference, JUDGES.what, lambda value: callable(getattr(value, "score", None)))()
    return judge


def registered_name(reference: str) -> str:
    """The name of a judge; a judge in a file, ``path/to/file.py:Class``, is registered for this process.

    Raises
    ------
    UsageError
        If the file or the class is missing or fails, or has the name of one of labmates' judges.
    """
    if not reference.partition(":")[0].endswith(".py"):
        return reference
    try:
        judge = load_judge(resolve_reference(reference, JUDGES))
    except LabmatesError:
        raise
    except (Exception, SystemExit) as error:  # a file may raise anything
        raise UsageError(f"the judge '{reference}' can't be loaded: {type(error).__name__}: {error}") from error
    name = getattr(judge, "name", None)
    if not isinstance(name, str) or not name:
        raise UsageError(f"the judge '{reference}' has no name: set its attribute 'name'")
    if JUDGES.is_own(name):
        raise UsageError(f"the judge '{reference}' has the name of labmates' judge '{name}'; choose another name")
    JUDGES.register(name, type(judge))
    return name
