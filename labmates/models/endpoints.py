"""Endpoints of models (address and key) and the providers' prices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from urllib.parse import urlsplit

from labmates.budgets.prices import FREE, Listed, Price, listed_model
from labmates.errors import UsageError
from labmates.models.entries import DEFAULT_ACCESS, check_base_url
from labmates.models.names import GIVEN, PROVIDERS, ModelName, is_outside, parse_model
from labmates.models.options import ModelOptions
from labmates.models.servers import SERVERS, Weights

OPENAI_HOST = "api.openai.com"
OPENAI_URL = f"https://{OPENAI_HOST}/v1"
NO_KEY = "none"
"""The key sent to servers without a key; OpenAI's client requires one."""


@dataclass(frozen=True)
class Endpoint:
    """The endpoint of a model.

    `address` is the server's base URL, or the provider's name if its package knows the URL. Calls to one address share
    the limit on calls in flight. `hosted` tells the provider's service from a user's server.
    """

    address: str
    hosted: bool
    key_name: str = ""  # environment variable
    key: str = field(default="", repr=False)
    weights: Weights | None = None  # of a model file, which labmates serves at an address of the moment


def endpoint_of(model: ModelName, options: ModelOptions, environment: Mapping[str, str]) -> Endpoint:
    """The endpoint of `model`.

    A model's address is that of its entry. For an ``openai:`` model without one, it is ``options.base_url``, else
    ``OPENAI_API_BASE`` or ``OPENAI_BASE_URL`` (as for LangChain and OpenAI's client), else OpenAI; for other models,
    the provider. A server of an entry gets only the key of the entry's variable. Raises `UsageError` if the base URL or
    the key is unusable, or ``options.base_url`` would be ignored.
    """
    access = options.entries.get(str(model), DEFAULT_ACCESS)
    if access.base_url is not None:
        name = access.api_key_env or ""
        hosted = urlsplit(access.base_url).hostname == OPENAI_HOST
        return Endpoint(access.base_url, hosted=hosted, key_name=name, key=_key(environment, name))
    if model.provider == GIVEN:
        return Endpoint(str(model), hosted=True)
    if model.provider in SERVERS:
        context, served = model.settings.context_tokens, SERVERS.get(model.provider)
        weights = served.weights(model.name, access.file, context, access.slots, access.threads)
        return Endpoint(f"{model.provider}:{model.name}", hosted=True, weights=weights)
    if model.provider != "openai":
        if options.base_url is not None:
            raise UsageError(
                f"model '{model}': a base URL for all is that of openai: models alone; give each model its own, for "
                f"instance {model}{'&' if '?' in str(model) else '?'}base_url=URL"
            )
        known = PROVIDERS.get(model.provider)
        name = access.api_key_env or (known.key_name if known else "")
        address = _address(model, known.url, environment) if known and known.url else model.provider
        return Endpoint(address, hosted=True, key_name=name, key=_key(environment, name))
    url = options.base_url or environment.get("OPENAI_API_BASE") or environment.get("OPENAI_BASE_URL") or OPENAI_URL
    check_base_url(url)
    name = access.api_key_env or options.api_key_env
    hosted = urlsplit(url).hostname == OPENAI_HOST
    return Endpoint(url.rstrip("/"), hosted=hosted, key_name=name, key=_key(environment, name))


def _address(model: ModelName, url: str, environment: Mapping[str, str]) -> str:
    """The base URL of a provider, with the variables that it names."""
    try:
        address = Template(url).substitute({name: value.rstrip("/") for name, value in environment.items() if value})
    except KeyError as error:
        raise UsageError(f"model '{model}' needs an address: set the environment variable {error.args[0]}") from None
    check_base_url(address)
    return address


def _key(environment: Mapping[str, str], name: str) -> str:
    key = environment.get(name, "").strip()
    if not (key.isascii() and key.isprintable()):  # never shown, not even in part
        raise UsageError(f"the key in {name} can't be sent: a key holds only letters, digits and signs of ASCII")
    return key


def listed(model: ModelName, endpoint: Endpoint) -> Listed | None:
    """The price and context of a model file or in the shipped table; None if missing, or for a user's server."""
    if endpoint.weights is not None:
        return Listed(FREE, endpoint.weights.context)
    if not endpoint.hosted:
        return None
    return listed_model(model.provider, model.name)


def price_of(model: ModelName, endpoint: Endpoint, options: ModelOptions) -> Price | None:
    """The provider's price of `model`; None if unknown."""
    access = options.entries.get(str(model), DEFAULT_ACCESS)
    entry = listed(model, endpoint)
    return access.price or (entry.price if entry else None)


def known_price(text: str, options: ModelOptions) -> Price | None:
    """The price of the model `text`; free for baselines and outside agents, None if unknown."""
    model = parse_model(text)
    if model.scripted or is_outside(text):
        return FREE
    return price_of(model, endpoint_of(model, options, os.environ), options)
