"""What providers charge: the price of a model's entry, else that of the shipped table."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from labmates.budgets.prices import Charge, Price
from labmates.models.endpoints import Endpoint, endpoint_of
from labmates.models.entries import DEFAULT_ACCESS
from labmates.models.names import ModelName, parse_model
from labmates.models.options import ModelOptions

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
    text = files("labmates.models").joinpath("prices.csv").read_text(encoding="utf-8")
    table = {}
    for row in csv.DictReader(text.splitlines()):
        prices = {name: row[name] for name in ("input", "cached", "cache_write", "output") if row[name]}
        table[row["model"]] = Listed(Charge.model_validate(prices), int(row["context_tokens"] or 0) or None)
    return table


def listed(model: ModelName, endpoint: Endpoint) -> Listed | None:
    """Return what the table says of a model; None if nothing, or for a server that is not the provider's own."""
    if not endpoint.hosted:
        return None
    name = f"{model.provider}:{model.name}"
    return price_table().get(name) or price_table().get(_DATED.sub("", name))


def price_of(model: ModelName, endpoint: Endpoint, options: ModelOptions) -> Price | None:
    """Return what the provider of `model` charges; None if that is not known."""
    access = options.entries.get(str(model), DEFAULT_ACCESS)
    found = listed(model, endpoint)
    charge = access.price or (found.price if found else None)
    return charge.price(batch=options.batch) if charge else None


def known_price(text: str, options: ModelOptions) -> Price | None:
    """Return what the provider of the model named `text` charges; nothing for a baseline, None if it is not known."""
    model = parse_model(text)
    if model.scripted:
        return Price.model_validate({"input": "0", "output": "0"})
    return price_of(model, endpoint_of(model, options, os.environ), options)
