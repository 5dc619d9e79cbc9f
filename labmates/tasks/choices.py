"""Choices among fixed words in findings: signs, kinds. They are read in any letter case, as names are."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

_MINUS: Final = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{FULLWIDTH PLUS SIGN}": "+"})


def as_listed(value: object) -> object:
    """A text without surrounding blanks and capitals, its typographic signs made plain; all else as it is."""
    return value.strip().lower().translate(_MINUS) if isinstance(value, str) else value


Listed: Final = BeforeValidator(as_listed)
"""Put beside a `Literal` of lower-case words, it lets them be written in other letters."""

Sign = Literal["+", "-"]
AnySign = Annotated[Sign, Listed]
"""A sign as people write it."""
