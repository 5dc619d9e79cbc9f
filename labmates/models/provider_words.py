"""What providers report beside a reply: how it ended, what it cost, and what their words for ends and errors mean.

The words are data, in ``provider_words.csv``, from the documentation of the providers named there.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage

from labmates.budgets.money import MICRO, MOST_DOLLARS

FinishMeaning = Literal["stop", "length", "tool_calls", "content_filter", "bad_tool_call", "server"]
"""Meaning of a finish reason. ``server``: the server stopped, not the model; ``bad_tool_call``: the server withheld a
call that it could not parse."""

ErrorMeaning = Literal["retry", "later", "refused", "overflow", "filtered"]
"""Meaning of an error: a retry may help; only one after hours, or a payment, may; none helps; the prompt is too long;
a filter blocked it."""

_NARROW: Final[tuple[ErrorMeaning, ...]] = ("overflow", "filtered", "later")
"""Meanings that a status does not tell, and a type only in part: they win, in this order."""
_CLEAR: Final = (400, 401, 403, 404, 422)
"""Statuses of a wrong request, whatever the type of its error."""
_FINISH_KEYS: Final = ("finish_reason", "stop_reason", "stopReason", "done_reason")


# Read at import: at the first reply it would block the event loop.
_TABLE: Final = tuple(
    csv.DictReader(files("labmates.models").joinpath("provider_words.csv").read_text("utf-8").splitlines())
)


@cache
def words(kind: str) -> dict[str, Any]:
    """The meanings of the words of a kind: ``finish``, ``error``, ``text`` or ``status``."""
    return {row["word"]: row["meaning"] for row in _TABLE if row["kind"] == kind}


@cache
def _texts() -> dict[str, re.Pattern[str]]:
    meanings = dict.fromkeys(words("text").values())
    return {
        meaning: re.compile("|".join(text for text, own in words("text").items() if own == meaning), re.IGNORECASE)
        for meaning in meanings
    }


def finish_word(metadata: Mapping[str, Any]) -> str:
    """The finish reason in a message's metadata, in lower case; empty if there is none."""
    reason = next((reason for key in _FINISH_KEYS if (reason := metadata.get(key))), "")
    return reason.lower().replace("-", "_") if isinstance(reason, str) else ""


def meaning_of_finish(metadata: Mapping[str, Any]) -> FinishMeaning | None:
    """The meaning of a message's finish reason; None if it is unknown."""
    feedback = metadata.get("prompt_feedback")
    if isinstance(feedback, Mapping) and feedback.get("block_reason"):
        return "content_filter"
    meaning: FinishMeaning | None = words("finish").get(finish_word(metadata))
    return meaning


def meaning_of_error(codes: Collection[str], text: str, status: int | None) -> ErrorMeaning | None:
    """The meaning of an error by its `codes` (in lower case), its text, and its HTTP status; None if unknown."""
    coded = [meaning for code in codes if (meaning := words("error").get(code))]
    if narrow := next((meaning for meaning in _NARROW if meaning in coded), None):
        return narrow
    for meaning in _NARROW:
        # A rate limit may speak of the context, but a shorter prompt is not what it asks for.
        if (meaning != "overflow" or status != 429) and _texts()[meaning].search(text):
            return meaning
    if status is None or (status not in _CLEAR and "retry" in coded):
        return min(coded, default=None, key=("retry", "refused").index)
    known: ErrorMeaning | None = words("status").get(str(status))
    return known or ("retry" if status >= 500 else "refused")


FILTERED: Final = "filtered"
"""Our field in a message's metadata: why a filter blocked its prompt."""
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
