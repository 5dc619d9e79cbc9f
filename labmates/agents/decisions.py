"""Decisions from replies: one JSON object within any other text, with strictly checked values.

`labmates.models.objects` finds the object. Its values are not coerced: 2.7 is not 2, "3" is not 3, and an extra key,
such as ``reasoning``, is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from labmates.models.objects import NoAnswerError, UnusableAnswerError, form_request, read_object
from labmates.models.reply import Reply

MOST_CHARS = 50_000
"""Only this many trailing characters are parsed."""


class Form(BaseModel):
    """Base of the schemas of decisions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # What the values have to add up to, or may at the most; underlined, as fields may have any name.
    _total: ClassVar[int | None] = None
    _most: ClassVar[int | None] = None
    rule: ClassVar[str] = ""
    """This in words."""
    not_keys: ClassVar[Mapping[str, str]] = {}
    """Why these names are no keys."""

    @property
    def values(self) -> dict[str, Any]:
        """The values by name, in the order of the form."""
        return self.model_dump(by_alias=True)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.rule:
            _check_sum(self.values, self._total, self._most)
        return self


FormT = TypeVar("FormT", bound=Form)


def read_decision(reply: Reply, form: type[FormT], *, reasoned: bool = False) -> FormT:
    """The decision in a reply; the last object in one that was to reason first (`reasoned`).

    Raises `UnusableAnswerError` if the reply was cut off or is empty, or has no JSON object of that form, or several
    different ones.
    """
    if "cut" in reply.faults:
        limit = f" of {reply.limit} tokens" if reply.limit else ""
        problem = f"it was cut off at its length limit{limit}, before it ended; be shorter"
        raise UnusableAnswerError(problem, form=form_request(form, reasoned=reasoned), omits_reply=not reasoned)
    if "filtered" in reply.faults and not reply.text.strip():
        problem = "a content filter of the provider blocked it"
        raise UnusableAnswerError(problem, form=form_request(form, reasoned=reasoned))
    if not reply.text.strip():
        raise NoAnswerError("it has no text", form=form_request(form, reasoned=reasoned))
    return read_object(reply.text, form, start=max(len(reply.text) - MOST_CHARS, 0), reasoned=reasoned)


def numbers_form(
    bounds: Mapping[str, tuple[int, int]],
    *,
    most: int | None = None,
    not_keys: Mapping[str, str] | None = None,
) -> type[Form]:
    """The form of a decision on whole numbers.

    Parameters
    ----------
    bounds
        Lower and upper bound of each number, by name.
    most
        Upper bound of the sum.
    not_keys
        Names that could be taken for keys, and why they are none.
    """
    named = tuple((name, *limits) for name, limits in bounds.items())
    return _numbers_form(named, most, tuple((not_keys or {}).items()))


@lru_cache(maxsize=1024)
def _numbers_form(
    bounds: tuple[tuple[str, int, int], ...], most: int | None, others: tuple[tuple[str, str], ...]
) -> type[Form]:
    fields: dict[str, Any] = {name: (int, Field(ge=low, le=high)) for name, low, high in bounds}
    return summed(create_model("Decision", __base__=Form, **fields), most=most, not_keys=dict(others))


def summed(
    form: type[Form], *, total: int | None = None, most: int | None = None, not_keys: Mapping[str, str] | None = None
) -> type[Form]:
    """A form whose values add up to `total`, or to `most` at the most; None bounds nothing."""
    form._total, form._most, form.not_keys = total, most, not_keys or {}
    if total is not None:
        form.rule = f"The numbers have to add up to exactly {total}."
    elif most is not None:
        form.rule = f"The numbers may add up to {most} at the most."
    return form


def _check_sum(values: Mapping[str, int], total: int | None, most: int | None = None) -> None:
    """Check the sum of an answer's numbers; a `ValueError` shows how they add up, and each change that mends them."""
    actual = sum(values.values())
    beyond = actual - total if total is not None else max(actual - most, 0) if most is not None else 0
    if not beyond:
        return
    limit, end = (
        (f"have to add up to {total}", "") if most is None else (f"may add up to {most} at the most", " at the most")
    )
    added = f"{' + '.join(map(str, values.values()))} is {abs(beyond)} too {'many' if beyond > 0 else 'few'}"
    # Small models repeat a sum that is too large until they read which numbers to write instead.
    changes = [f"{json.dumps(name)} to {value - beyond}{end}" for name, value in values.items() if value >= beyond]
    change = f"change one of them: {', or '.join(changes)}" if changes else "lower several of them"
    raise ValueError(f"the numbers {limit}, not {actual} ({added}); {change}")
