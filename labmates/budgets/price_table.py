"""The shipped table of providers' prices and of context windows."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from labmates.budgets.prices import Charge

TABLE_DATE: Final = "2026-11-23"
"""When the shipped prices and context windows were taken over, from the data of genai-prices 0.2.3 (MIT license)."""
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class Listed:
    """A model of the shipped table: its price, and its context window in tokens where it is known."""

    price: Charge
    context_tokens: int | None


@cache
def price_table() -> dict[str, Listed]:
    """Return the shipped table, by ``provider:model``."""
    text = files("labmates.budgets").joinpath("prices.csv").read_text(encoding="utf-8")
    table = {}
    for row in csv.DictReader(text.splitlines()):
        prices = {name: row[name] for name in ("input", "cached", "cache_write", "output") if row[name]}
        table[row["model"]] = Listed(Charge.model_validate(prices), int(row["context_tokens"] or 0) or None)
    return table


def listed_model(provider: str, model: str) -> Listed | None:
    """Return the row of a model, or of its undated name; None if there is neither."""
    name = f"{provider}:{model}"
    return price_table().get(name) or price_table().get(_DATED.sub("", name))
