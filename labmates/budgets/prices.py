"""Prices per million tokens, and the one place where tokens become money."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labmates.budgets.money import MICRO, Dollars
from labmates.errors import UsageError, explain, telling


class Price(BaseModel):
    """Prices of one model. Defaults: cooperative-profiles paper, section 4.1."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    input: Dollars = Field("0.50", description="Dollars per million input tokens.")  # type: ignore[assignment]
    output: Dollars = Field("3.00", description="Dollars per million output tokens.")  # type: ignore[assignment]
    cached: Dollars | None = Field(
        None, description="Dollars per million input tokens read from the provider's prompt cache; as input by default."
    )
    cache_write: Dollars | None = Field(
        None,
        description="Dollars per million input tokens written to that cache; as input by default.",
    )
    reasoning: Dollars | None = Field(
        None, description="Dollars per million reasoning tokens, which are part of the output; as output by default."
    )

    def cost(
        self, input_tokens: int, output_tokens: int, *, cached: int = 0, cache_write: int = 0, reasoning: int = 0
    ) -> int:
        """The price of one call in micro-dollars, rounded up.

        Parameters
        ----------
        cached, cache_write
            The part of the input tokens read from, and written to, the provider's prompt cache.
        reasoning
            The part of the output tokens spent on reasoning.
        """
        total = (input_tokens - cached - cache_write) * self.input + (output_tokens - reasoning) * self.output
        total += cached * (self.input if self.cached is None else self.cached)
        total += cache_write * (self.input if self.cache_write is None else self.cache_write)
        total += reasoning * (self.output if self.reasoning is None else self.reasoning)
        return -(-total // MICRO)

    @property
    def worst_case(self) -> Price:
        """An upper bound of this price for any share of cached and reasoning tokens, for reservations."""
        is_plain = self.cached is None and self.cache_write is None and self.reasoning is None
        return self if is_plain else _worst_case(self)

    def most_output(self, input_tokens: int, funds: int) -> int:
        """The output tokens that `funds` micro-dollars pay after the input; -1 if they can't pay the input."""
        left = funds * MICRO - input_tokens * self.input
        if left < 0:
            return -1
        return left // self.output if self.output else 10**9


FREE: Final = Price.model_validate({"input": "0", "output": "0"})


@lru_cache(maxsize=256)
def _worst_case(price: Price) -> Price:
    inputs = [amount for amount in (price.input, price.cached, price.cache_write) if amount is not None]
    outputs = [amount for amount in (price.output, price.reasoning) if amount is not None]
    return price.model_copy(update={"input": max(inputs), "output": max(outputs)})


class PriceList(BaseModel):
    """Prices of a run: a default, prices by model, and a fixed price for each tool call."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    default: Price = Field(Price(), description="Default price of a model.")
    models: dict[str, Price] = Field(
        default_factory=dict, description="Prices by model, for instance openai:gpt-5.4-mini."
    )
    tool_call: Dollars = Field("0", description="Dollars per tool call.")  # type: ignore[assignment]
    credits: Literal["list", "bill"] = Field(
        "list",
        description="Basis of charges: this list, or the providers' bill, which is then recorded here.",
    )

    def of(self, model: str) -> Price:
        """The price of `model`, else of the model without its settings, else the default."""
        return self.models.get(model) or self.models.get(model.partition("?")[0]) or self.default


@cache
def usual_prices() -> PriceList:
    """The default price list: one frozen object, shared by all conditions."""
    return PriceList()


def read_prices(source: str) -> PriceList:
    """Read a price list: a JSON file, ``input=0.5,output=3,tool_call=0`` (dollars per million tokens), or ``bill``.

    ``bill`` means the providers' prices.

    Raises
    ------
    UsageError
        If the file is unreadable, or is not a price list.
    """
    if source == "bill":
        return PriceList(credits="bill")
    if "=" in source and not Path(source).exists():
        data = _from_line(source)
    else:
        with telling(f"can't read the price list '{source}'", ValueError, RecursionError):
            data = json.loads(Path(source).read_text(encoding="utf-8"))
    try:
        return PriceList.model_validate(data)
    except ValidationError as error:
        raise _wrong(source, explain(error).split("\n")[0]) from error


def _from_line(line: str) -> dict[str, object]:
    default: dict[str, str] = {}
    for part in line.replace(" ", "").split(","):
        name, given, price = part.partition("=")
        if not given:
            raise _wrong(line, f"'{part}' is not NAME=PRICE")
        if name in default:
            raise _wrong(line, f"{name} is repeated")
        default[name] = price
    tool_call = default.pop("tool_call", None)
    return {"default": default} if tool_call is None else {"default": default, "tool_call": tool_call}


def _wrong(source: str, what: str) -> UsageError:
    return UsageError(
        f"price list '{source}': {what}. Allowed: default and models with input, cached, cache_write, output, "
        "reasoning; tool_call; all in dollars (tokens: per million)."
    )


TABLE_DATE: Final = "2026-11-23"
"""Date of the shipped prices and context windows, taken from genai-prices 0.2.3 (MIT license)."""
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class Listed:
    """A model of the shipped table: its price, and its context window in tokens if known."""

    price: Price
    context_tokens: int | None


@cache
def price_table() -> dict[str, Listed]:
    """The shipped table, by ``provider:model``."""
    text = files("labmates.budgets").joinpath("prices.csv").read_text(encoding="utf-8")
    table = {}
    for row in csv.DictReader(text.splitlines()):
        prices = {name: row[name] for name in ("input", "cached", "cache_write", "output") if row[name]}
        table[row["model"]] = Listed(Price.model_validate(prices), int(row["context_tokens"] or 0) or None)
    return table


def listed_model(provider: str, model: str) -> Listed | None:
    """The row of a model, else of its undated name; None if neither is listed."""
    name = f"{provider}:{model}"
    return price_table().get(name) or price_table().get(_DATED.sub("", name))
