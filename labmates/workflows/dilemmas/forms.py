"""The forms of answers to a mechanism's questions: as models that check them, and as text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, create_model, model_validator

from labmates.agents.decisions import Form
from labmates.mechanisms.base import Blank, Sheet


class Filled(Form):
    """A sheet that somebody has filled in."""

    @property
    def values(self) -> dict[str, Any]:
        """The answer, by the names of its blanks."""
        return self.model_dump(by_alias=True)


def form_of(sheet: Sheet) -> type[Filled]:
    """The model that checks an answer."""
    return _form_of(sheet.blanks, sheet.total)


@lru_cache(maxsize=1024)
def _form_of(blanks: tuple[Blank, ...], total: int | None) -> type[Filled]:
    class Sum(Filled):
        @model_validator(mode="after")
        def _adds_up(self) -> Self:
            if total is not None and (total_given := sum(self.values.values())) != total:
                raise ValueError(f"the numbers have to add up to {total}, not {total_given}")
            return self

    # A blank may have any name, also one that is none in Python.
    fields: dict[str, Any] = {f"blank_{place}": _field(blank) for place, blank in enumerate(blanks)}
    return create_model("Answer", __base__=Sum, **fields)


def _field(blank: Blank) -> Any:
    match blank.allowed:
        case None:
            return bool, Field(alias=blank.name)
        case range() as numbers:
            return int, Field(alias=blank.name, ge=numbers[0], le=numbers[-1])
        case tuple() as texts:
            return Literal[texts], Field(alias=blank.name)


def keys_of(sheet: Sheet) -> str:
    """The keys of an answer in words, one a line."""
    lines = [
        f'- "{blank.name}": {_allowed(blank)}{f", {blank.about}" if blank.about else ""}' for blank in sheet.blanks
    ]
    total = [] if sheet.total is None else [f"Together they add up to {sheet.total}."]
    return "\n".join([*lines, *total])


def _allowed(blank: Blank) -> str:
    match blank.allowed:
        case None:
            return "true or false"
        case range() as numbers:
            return f"a whole number from {numbers[0]} to {numbers[-1]}"
        case tuple() as texts:
            return " or ".join(f'"{text}"' for text in texts)
