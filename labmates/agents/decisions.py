"""Decisions from replies: one JSON object within any other text, with strictly checked values.

How the object is found is told in `labmates.models.objects`. Nothing in it is bent until it fits: 2.7 is no 2, "3" is
no 3, and a key too many, such as ``reasoning``, is a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from labmates.models.objects import UnusableAnswerError, read_object
from labmates.models.reply import Reply

MOST_CHARS = 50_000
"""So much of a reply is read, from its end."""


class Form(BaseModel):
    """The schema of a decision; base of all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


FormT = TypeVar("FormT", bound=Form)


class Numbers(Form):
    """Whole numbers by name, made by `numbers_form`."""

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name, in the order of the form."""
        return self.model_dump()


def read_decision(reply: Reply, form: type[FormT]) -> FormT:
    """The decision in a reply.

    Raises
    ------
    UnusableAnswerError
        If there is none: the reply was cut off or is empty, or it holds no JSON object of that form, or several that
        differ.
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
        The least and the most of each number, by name.
    total
        What they have to add up to; None if they need not.
    most
        The most that they may add up to.
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
