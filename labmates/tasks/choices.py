"""Choices among fixed words in findings (signs, kinds), in any letter case."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

_MINUS: Final = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{FULLWIDTH PLUS SIGN}": "+"})


def as_listed(value: object) -> object:
    """A text in lower case, stripped, with plain signs; any other value unchanged."""
    return value.strip().lower().translate(_MINUS) if isinstance(value, str) else value


Listed: Final = BeforeValidator(as_listed)
"""Annotation that accepts a `Literal` of lower-case words in any letter case."""

Sign = Literal["+", "-"]
AnySign = Annotated[Sign, Listed]
"""A sign in any typographic form."""
