"""The models behind the gateway: where each is asked, with which key, and what it costs."""

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
from labmates.models.protocols.base import Protocol

ADDRESSES = {"anthropic": "https://api.anthropic.com"}
"""Where providers are asked whose address LangChain knows, and whose protocol the gateway speaks."""


@dataclass(frozen=True)
class Upstream:
    """A model that programs may ask.

    Attributes
    ----------
    name
        As the user named it: its full name or that of an entry of ``models.yaml``.
    provider, model
        The provider, and the model's name there.
    address
        Base URL, without the protocol's path, which begins with ``/v1``.
    key
        The provider's key.
    price
        What a call is charged.
    access
        How LangChain reaches it for a program that speaks another protocol.
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
        """Names of the model for programs."""
        return tuple(dict.fromkeys((self.name, self.full_name, self.model)))

    def speaks(self, protocol: Protocol) -> bool:
        """Whether requests of a protocol are passed on as they are."""
        return self.provider == protocol.provider

    def headers(self) -> dict[str, str]:
        """Headers that authorise a request."""
        if not self.key:
            return {}
        if self.provider == "anthropic":
            return {"x-api-key": self.key}
        return {"authorization": f"Bearer {self.key}"}


def read_upstreams(texts: Sequence[str], prices: PriceList | None, environment: Mapping[str, str]) -> list[Upstream]:
    """Read the models as users name them.

    Parameters
    ----------
    prices
        What calls are charged; None charges what the providers charge.

    Raises
    ------
    UsageError
        If a model can't be used through the gateway, its price is unknown, or two share a name.
    """
    found = [_read(text, prices, environment) for text in texts]
    asked = [upstream for upstream in found if upstream.provider not in ("openai", "anthropic")]
    options = ModelOptions(entries={upstream.full_name: upstream.access for upstream in asked})
    asyncio.run(check_models([upstream.full_name for upstream in asked], options))
    names = [name for upstream in found for name in upstream.names]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--upstream: two models are called '{twice[0]}'")
    return found


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
