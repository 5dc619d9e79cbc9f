"""The models behind the gateway: address, key and price."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from labmates.budgets.prices import Price, PriceList
from labmates.errors import UsageError
from labmates.models.check import check_models
from labmates.models.endpoints import endpoint_of, known_price
from labmates.models.entries import DEFAULT_ACCESS, Access, named_entries, read_reference
from labmates.models.names import parse_model
from labmates.models.options import ModelOptions
from labmates_doors.protocols.base import Protocol

ADDRESSES = {"anthropic": "https://api.anthropic.com"}
"""Addresses of providers whose protocol the gateway speaks, and which LangChain knows by itself."""


@dataclass(frozen=True)
class Upstream:
    """A model available to programs.

    Attributes
    ----------
    name
        The user's name: a full name, or that of an entry of ``models.yaml``.
    provider, model
        The provider, and its name of the model.
    address
        Base URL, without the protocol's path, which begins with ``/v1``.
    access
        LangChain's access for programs with another protocol.
    """

    name: str
    provider: str
    model: str
    address: str
    key: str = field(repr=False)
    price: Price
    access: Access = DEFAULT_ACCESS

    @property
    def full_name(self) -> str:
        """Provider and model."""
        return f"{self.provider}:{self.model}"

    @property
    def names(self) -> tuple[str, ...]:
        """The model's names for programs."""
        return tuple(dict.fromkeys((self.name, self.full_name, self.model)))

    def speaks(self, protocol: Protocol) -> bool:
        """Whether requests of a protocol are passed on unchanged."""
        return self.provider == protocol.provider

    def headers(self) -> dict[str, str]:
        """Headers that authorise a request."""
        if not self.key:
            return {}
        if self.provider == "anthropic":
            return {"x-api-key": self.key}
        return {"authorization": f"Bearer {self.key}"}


def read_upstreams(texts: Sequence[str], prices: PriceList | None, environment: Mapping[str, str]) -> list[Upstream]:
    """The models with the names or references `texts`.

    Parameters
    ----------
    prices
        Prices of calls; the providers' prices if None.

    Raises
    ------
    UsageError
        If a model can't be used through the gateway, its price is unknown, or two share a name.
    """
    upstreams = [_read(text, prices, environment) for text in texts]
    translated = {u.full_name: u.access for u in upstreams if u.provider not in ("openai", "anthropic")}
    asyncio.run(check_models(list(translated), ModelOptions(entries=translated)))
    names = [name for upstream in upstreams for name in upstream.names]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--upstream: two models are called '{duplicates[0]}'")
    return upstreams


def _read(text: str, prices: PriceList | None, environment: Mapping[str, str]) -> Upstream:
    entry = read_reference(text, named_entries())
    if "?" in entry.name:
        raise UsageError(
            f"--upstream: programs choose the settings of their calls; remove '{entry.name.partition('?')[2]}'"
        )
    model, options = parse_model(entry.name), ModelOptions(entries={entry.name: entry.access})
    endpoint = endpoint_of(model, options, environment)
    price = prices.of(entry.name) if prices else known_price(entry.name, options)
    if price is None:
        raise UsageError(
            f"--upstream: the price of '{text}' is unknown; give --prices input=0.5,output=3 (dollars per million "
            "tokens), or a price in models.yaml"
        )
    address = ADDRESSES.get(endpoint.address, endpoint.address).rstrip("/").removesuffix("/v1")
    name = text.partition("?")[0].strip()
    return Upstream(name, entry.provider, entry.model, address, endpoint.key, price, entry.access)
