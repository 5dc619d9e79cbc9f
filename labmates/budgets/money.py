"""Money as integers: one unit is a micro-dollar. Floats never enter an account."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

MICRO = 1_000_000
MOST_DOLLARS = 1_000_000_000


def parse_dollars(value: object) -> int:
    """Micro-dollars for an amount in dollars, given as text, int, float or Decimal.

    Raises
    ------
    ValueError
        If `value` is not a number from 0 to a billion, or is finer than a micro-dollar.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("must be a dollar amount (try 0.50)")
    try:
        amount = Decimal(str(value).strip().removeprefix("$"))
    except InvalidOperation:
        raise ValueError(f"'{value}' is not a dollar amount (try 0.50)") from None
    if not amount.is_finite() or amount < 0 or amount > MOST_DOLLARS:
        raise ValueError(f"'{value}' is not a dollar amount between 0 and {MOST_DOLLARS}")
    micro = amount * MICRO
    if micro != micro.to_integral_value():
        raise ValueError(f"'{value}' is finer than a micro-dollar (six decimals)")
    return int(micro)


@lru_cache(maxsize=1024)
def format_dollars(micro: int) -> str:
    """Micro-dollars as a plain decimal string in dollars without trailing zeros: ``500000`` gives ``"0.5"``."""
    text = f"{Decimal(micro) / MICRO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def show_dollars(micro: int) -> str:
    """Micro-dollars for people, with four decimals: ``"$0.0312"``."""
    amount = (Decimal(micro) / MICRO).quantize(Decimal("0.0001"), rounding=ROUND_HALF_UP)
    return f"${amount:f}"


Dollars = Annotated[
    int,
    BeforeValidator(parse_dollars),
    PlainSerializer(format_dollars, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d{1,6})?$", "examples": ["0.50"]}),
]
"""An amount in micro-dollars as a field of a model, read and written in dollars."""
