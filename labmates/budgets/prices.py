"""What a call costs: prices per million tokens, and the one place where tokens become money."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labmates.budgets.dollars import Dollars
from labmates.budgets.money import MICRO
from labmates.errors import UsageError


class Price(BaseModel):
    """Prices of one model. The defaults are those of the cooperative-profiles paper, section 4.1."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    input: Dollars = Field("0.50", description="Dollars per million input tokens.")  # type: ignore[assignment]
    output: Dollars = Field("3.00", description="Dollars per million output tokens; reasoning tokens count as output.")  # type: ignore[assignment]

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        """Return the price of one call in micro-dollars, rounded up."""
        return -(-(input_tokens * self.input + output_tokens * self.output) // MICRO)

    def most_output(self, input_tokens: int, funds: int) -> int:
        """Return how many output tokens `funds` micro-dollars still pay after the input; below 0 if not even that."""
        left = funds * MICRO - input_tokens * self.input
        if left < 0:
            return -1
        return left // self.output if self.output else 10**9


class PriceList(BaseModel):
    """Prices of a run: a default, models with prices of their own, and a fixed price for each tool call."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    default: Price = Field(Price(), description="Price of every model that has none of its own.")
    models: dict[str, Price] = Field({}, description="Prices by model, for instance openai:gpt-5.4-mini.")
    tool_call: Dollars = Field("0", description="Dollars per tool call.")  # type: ignore[assignment]

    def of(self, model: str) -> Price:
        """Return the price of `model`."""
        return self.models.get(model, self.default)


def read_prices(source: str) -> PriceList:
    """Read a price list from a JSON file, or from ``input=0.5,output=3,tool_call=0`` (dollars per million tokens).

    Raises
    ------
    UsageError
        If the file can't be read, or holds something that is no price list.
    """
    if "=" in source and not Path(source).exists():
        data = _from_line(source)
    else:
        try:
            data = json.loads(Path(source).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"can't read the price list '{source}': {error}") from error
    try:
        return PriceList.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _wrong(source, f"{where}: {first['msg']}" if where else "it is no JSON object") from error


def _from_line(line: str) -> dict[str, object]:
    default: dict[str, str] = {}
    for part in line.replace(" ", "").split(","):
        name, given, price = part.partition("=")
        if not given:
            raise _wrong(line, f"'{part}' is no NAME=PRICE")
        if name in default:
            raise _wrong(line, f"{name} is there twice")
        default[name] = price
    tool_call = default.pop("tool_call", None)
    return {"default": default} if tool_call is None else {"default": default, "tool_call": tool_call}


def _wrong(source: str, what: str) -> UsageError:
    return UsageError(
        f"price list '{source}': {what}. Allowed: default and models with input and output, tool_call, "
        "all in dollars (tokens: per million)."
    )
