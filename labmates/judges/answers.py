"""Reading what a model answers: one JSON object, whatever stands around it, and never a guess.

Code fences and prose around the object are skipped. Two objects that both fit but differ, and a key that is given
twice, are refused: which one was meant can't be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from labmates.errors import explain
from labmates.models.objects import ONCE, RepeatedKeyError, find_objects

ModelT = TypeVar("ModelT", bound=BaseModel)

MOST_CHARS = 50_000
"""So much of an answer is read."""


class UnusableAnswerError(Exception):
    """An answer can't be used; the text says why, and goes back to the model."""


def read_object(text: str, model: type[ModelT]) -> ModelT:
    """Return the one JSON object in `text` that is a valid `model`.

    Raises
    ------
    UnusableAnswerError
        If there is none, or more than one and they differ.
    """
    valid: list[ModelT] = []
    faults: list[str] = []
    for found in objects_in(text):
        try:
            valid.append(model.model_validate(found))
        except ValidationError as error:
            faults.append("; ".join(explain(error).splitlines()))
    if not valid:
        raise UnusableAnswerError(faults[0] if faults else "there is no whole JSON object in it")
    if any(one != valid[0] for one in valid):
        raise UnusableAnswerError("it holds several JSON objects that differ; give one alone")
    return valid[0]


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the first `MOST_CHARS` of `text`, those within another one left out.

    Raises
    ------
    UnusableAnswerError
        If an object has the same key twice.
    """
    try:
        for found in find_objects(text[:MOST_CHARS], ONCE):
            yield found.value
    except RepeatedKeyError as error:
        raise UnusableAnswerError(str(error)) from error
