"""What providers charge: the price of a model's entry, else that of the shipped table."""

from __future__ import annotations

import os

from labmates.budgets.price_table import Listed, listed_model
from labmates.budgets.prices import Price
from labmates.models.endpoints import Endpoint, endpoint_of
from labmates.models.entries import DEFAULT_ACCESS
from labmates.models.names import ModelName, parse_model
from labmates.models.options import ModelOptions


def listed(model: ModelName, endpoint: Endpoint) -> Listed | None:
    """Return what the table says of a model; None if nothing, or for a server that is not the provider's own."""
    if not endpoint.hosted:
        return None
    return listed_model(model.provider, model.name)


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
