"""Decisions from replies: one JSON object within any other text, with strictly checked values.

`labmates.models.objects` finds the object. Its values are not coerced: 2.7 is not 2, "3" is not 3, and an extra key,
such as ``reasoning``, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from labmates.models.objects import UnusableAnswerError, read_object
from labmates.models.reply import Reply

MOST_CHARS = 50_000
"""Only this many trailing characters are parsed."""


class Form(BaseModel):
    """Base of the schemas of decisions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


FormT = TypeVar("FormT", bound=Form)


class Numbers(Form):
    """Whole numbers by name; see `numbers_form`."""

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name, in the order of the form."""
        return self.model_dump()


def read_decision(reply: Reply, form: type[FormT]) -> FormT:
    """The decision in a reply.

    Raises
    ------
    UnusableAnswerError
        If the reply was cut off or is empty, or has no JSON object of that form, or several different ones.
    """
    if "cut" in reply.faults:
        raise UnusableAnswerError("it was cut off by the limit on its length before it ended; be shorter")
    if not reply.text.strip():
        raise UnusableAnswerError("it has no text")
    return read_object(reply.text, form, start=max(len(reply.text) - MOST_CHARS, 0))


def numbers_form(
    bounds: Mapping[str, tuple[int, int]], *, total: int | None = None, most: int | None = None
) -> type[Numbers]:
    """The form of a decision on whole numbers.

    Parameters
    ----------
    bounds
        Lower and upper bound of each number, by name.
    total
        Required sum; None for any.
    most
        Upper bound of the sum.
    """
    return _numbers_form(tuple((name, *limits) for name, limits in bounds.items()), total, most)


@lru_cache(maxsize=1024)
def _numbers_form(bounds: tuple[tuple[str, int, int], ...], total: int | None, most: int | None) -> type[Numbers]:
    class Sum(Numbers):
        @model_validator(mode="after")
        def _adds_up(self) -> Self:
            actual = sum(self.values.values())
            if total is not None and actual != total:
                raise ValueError(f"the numbers have to add up to {total}, not {actual}")
            if most is not None and actual > most:
                raise ValueError(f"the numbers may add up to {most} at the most, not {actual}")
            return self

    fields: dict[str, Any] = {name: (int, Field(ge=low, le=high)) for name, low, high in bounds}
    return create_model("Decision", __base__=Sum, **fields)
