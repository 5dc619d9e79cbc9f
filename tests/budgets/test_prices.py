from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.budgets.prices import Price, PriceList, read_prices
from labmates.errors import UsageError

tokens = st.integers(0, 10_000_000)


def test_the_default_prices_are_those_of_the_paper() -> None:
    assert Price().cost(1000, 0) == 500
    assert Price().cost(0, 1000) == 3000


@given(tokens, tokens, st.integers(0, 10**9), st.integers(0, 10**8))
def test_the_most_output_that_funds_pay_is_affordable_and_one_more_is_not(
    inputs: int, funds: int, price_in: int, price_out: int
) -> None:
    price = Price.model_construct(input=price_in, output=price_out)
    most = price.most_output(inputs, funds)
    if most < 0:
        assert price.cost(inputs, 0) > funds
    else:
        assert price.cost(inputs, most) <= funds
        if price_out:
            assert price.cost(inputs, most + 1) > funds or price_out < 1_000_000


@given(tokens, tokens, tokens)
def test_a_call_never_costs_less_for_more_tokens(inputs: int, outputs: int, more: int) -> None:
    assert Price().cost(inputs + more, outputs) >= Price().cost(inputs, outputs)
    assert isinstance(Price().cost(inputs, outputs), int)


def test_a_price_list_is_read_from_a_line_and_from_a_file(tmp_path: Path) -> None:
    line = read_prices("input=0.25,output=2,tool_call=0.001")
    assert (line.default.input, line.default.output, line.tool_call) == (250_000, 2_000_000, 1000)
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"models": {"openai:m": {"input": "0.02", "output": "0.0375"}}}))
    prices = read_prices(str(file))
    assert prices.of("openai:m").output == 37_500
    assert prices.of("openai:other") == PriceList().default


@pytest.mark.parametrize(
    "source",
    ["input=-1", "input=x", "outptu=3", "/nowhere/p.json", "input", "input=1,3", "input=1,input=2", "input=1,", ""],
)
def test_a_price_list_that_is_none_is_refused_with_what_is_allowed(source: str) -> None:
    with pytest.raises(UsageError, match="price list"):
        read_prices(source)


def test_a_price_list_survives_its_own_json() -> None:
    prices = read_prices("input=0.25,output=2,tool_call=0.001")
    assert PriceList.model_validate_json(prices.model_dump_json()) == prices


def test_cached_and_written_input_and_reasoning_have_prices_of_their_own() -> None:
    price = read_prices("input=0.5,cached=0.05,cache_write=0.625,output=3,reasoning=4").default
    # 48 calls, 99 % of whose input was cached: $0.0276, where it is $0.2414 without a price for that.
    assert 48 * price.cost(10_000, 10, cached=9_900) == 27_600
    assert 48 * Price().cost(10_000, 10, cached=9_900) == 241_440
    assert price.cost(1_000_000, 1_000_000, cached=200_000, cache_write=300_000, reasoning=400_000) == (
        250_000 + 10_000 + 187_500 + 1_800_000 + 1_600_000
    )
    assert price.worst_case.cost(1000, 1000) == price.cost(1000, 1000, cache_write=1000, reasoning=1000)


def test_a_model_with_settings_has_the_price_of_the_model() -> None:
    prices = PriceList(models={"openai:m": Price(input="1"), "openai:m?top_p=0.5": Price(input="2")})
    assert [prices.of(f"openai:m{settings}").input for settings in ("", "?top_p=0.5", "?top_p=0.9")] == [
        1_000_000,
        2_000_000,
        1_000_000,
    ]
