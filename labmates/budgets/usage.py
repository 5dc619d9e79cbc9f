"""Tokens of a call: the server's report if plausible, else an estimate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from labmates.budgets.prices import Price

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

LIMIT_FIELDS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens", "num_predict")
"""Names of the reply limit in chat model classes."""
MOST_TOKENS = 100_000_000
"""Longer than any context: a larger figure is a server's mistake."""
_WRITTEN = ("cache_creation", "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
"""LangChain's fields for tokens written to a cache."""


@dataclass(frozen=True)
class Usage:
    """Tokens of a call; `estimated` if any figure is an estimate.

    `reasoning_tokens` are part of `output_tokens`. `cached_tokens` (read from the provider's prompt cache) and
    `cache_write_tokens` (written to it) are parts of `input_tokens`.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    estimated: bool = False
    cached_tokens: int = 0
    cache_write_tokens: int = 0

    def cost(self, price: Price) -> int:
        """The cost of the call at `price`, in micro-dollars."""
        return price.cost(
            self.input_tokens,
            self.output_tokens,
            cached=self.cached_tokens,
            cache_write=self.cache_write_tokens,
            reasoning=self.reasoning_tokens,
        )


def limited(chat: BaseChatModel, limit: int) -> BaseChatModel:
    """The chat model with a limit on its replies, in tokens; unchanged if its class has none."""
    fields: dict[str, Any] = {name: limit for name in LIMIT_FIELDS if name in type(chat).model_fields}
    return chat.model_copy(update=fields) if fields else chat


def read_count(value: object) -> int | None:
    """A reported number of tokens as an integer; None if it is invalid, negative or absurdly large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return math.ceil(value) if 0 <= value <= MOST_TOKENS else None


def read_usage(
    reported: Mapping[str, Any] | None,
    *,
    prompt: Callable[[], int],
    output: Callable[[], int],
    reasoning: int,
    most: tuple[int, int] = (MOST_TOKENS, MOST_TOKENS),
) -> tuple[Usage, tuple[str, ...]]:
    """The tokens of a call, and notes on implausible figures in the report.

    Parameters
    ----------
    reported
        LangChain's ``usage_metadata`` of the reply, or None.
    prompt, output
        Estimates, computed only if a figure is missing. Neither can be 0, so 0 counts as missing.
    reasoning
        Estimated tokens of the reasoning text, used if the server reports no count.
    most
        Upper bounds of the input and output tokens; they replace higher figures.

    Notes
    -----
    Some servers exclude reasoning from the output tokens: their total is the sum of all three. This is corrected.
    """
    counts: Mapping[str, Any] = reported or {}
    details = counts.get("output_token_details")
    thought = read_count(details.get("reasoning")) if isinstance(details, Mapping) else None
    parts = counts.get("input_token_details")
    parts = parts if isinstance(parts, Mapping) else {}
    cached = read_count(parts.get("cache_read")) or 0
    # LangChain gives either the total or its parts, and then a total of 0.
    written = sum(read_count(parts.get(name)) or 0 for name in _WRITTEN)
    input_tokens, output_tokens = read_count(counts.get("input_tokens")), read_count(counts.get("output_tokens"))
    if (
        thought
        and input_tokens
        and read_count(counts.get("total_tokens")) == input_tokens + (output_tokens or 0) + thought
    ):
        output_tokens = (output_tokens or 0) + thought
    estimated_output = 0 if output_tokens else output()
    total = output_tokens or estimated_output
    whole_input = input_tokens or prompt()
    doubts = [
        f"the server reported {figure:,} {name} tokens, of which there can't have been more than {bound:,}: "
        "these are charged"
        for name, figure, bound in zip(("input", "output"), (whole_input, total), most, strict=True)
        if figure > bound
    ]
    whole_input, total = min(whole_input, most[0]), min(total, most[1])
    cached = min(cached, whole_input)
    usage = Usage(
        input_tokens=whole_input,
        output_tokens=total,
        reasoning_tokens=min(total, thought or reasoning),
        estimated=bool(doubts) or not input_tokens or output_tokens is None or estimated_output > 0,
        cached_tokens=cached,
        cache_write_tokens=min(written, whole_input - cached),
    )
    return usage, tuple(doubts)
