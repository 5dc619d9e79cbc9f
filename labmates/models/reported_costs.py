"""What a server says that a call cost: fields of its usage, and headers of gateways."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from math import ceil
from typing import Any, Final

from langchain_core.messages import AIMessage

from labmates.budgets.money import MICRO, MOST_DOLLARS

COST_HEADERS: Final = ("x-litellm-response-cost",)
"""Headers with the cost of a call in dollars: LiteLLM's."""
COST: Final = "cost_in_micro_dollars"
"""Our field for the reported cost in a message's metadata."""
_TICKS: Final = Decimal(10) ** 10
"""xAI's ticks per dollar."""


def reported_cost(usage: Any) -> int | None:
    """The cost in the usage of a reply, in micro-dollars, rounded up as prices are; None if there is none.

    Known fields: ``cost`` (OpenRouter, in dollars; from Perplexity a mapping with ``total_cost``), with
    ``cost_details.upstream_inference_cost`` for a call by the user's own key of a provider (unless ``is_byok`` is
    false); ``cost_in_usd_ticks`` (xAI) and ``estimated_cost`` (DeepInfra).
    """
    usage = usage if isinstance(usage, Mapping) else {}
    cost = usage.get("cost")
    if isinstance(cost, Mapping):
        return _micro(cost.get("total_cost"))
    if (paid := _dollars(cost)) is not None:
        details = usage.get("cost_details")
        upstream = _dollars(details.get("upstream_inference_cost")) if isinstance(details, Mapping) else None
        return _micro(paid if usage.get("is_byok") is False else paid + (upstream or 0))
    if (ticks := _dollars(usage.get("cost_in_usd_ticks"), most=MOST_DOLLARS * _TICKS)) is not None:
        return _micro(ticks / _TICKS)
    return _micro(usage.get("estimated_cost"))


def cost_in_headers(headers: Mapping[str, str]) -> int | None:
    """The cost in a response's headers, in micro-dollars; None if there is none, or 0, as of unknown prices."""
    return next((cost for name in COST_HEADERS if (cost := _micro(headers.get(name)))), None)


def cost_of(message: AIMessage) -> int | None:
    """The reported cost of a message, in micro-dollars; None if there is none."""
    metadata = message.response_metadata
    known = metadata.get(COST)
    return known if isinstance(known, int) else reported_cost(metadata.get("token_usage") or metadata.get("usage"))


def _micro(dollars: Any) -> int | None:
    amount = _dollars(dollars)
    return None if amount is None else ceil(amount * MICRO)


def _dollars(value: Any, most: Decimal | int = MOST_DOLLARS) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount <= most else None
