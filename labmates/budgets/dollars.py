"""Amounts of money as fields of models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from labmates.budgets.money import format_dollars, parse_dollars

Dollars = Annotated[
    int,
    BeforeValidator(parse_dollars),
    PlainSerializer(format_dollars, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d{1,6})?$", "examples": ["0.50"]}),
]
"""An amount in micro-dollars, read and written in dollars."""
