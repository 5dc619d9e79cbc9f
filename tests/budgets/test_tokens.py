"""The estimate of tokens: near the truth on text and code, linear, positive, growing with the text."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.budgets.prices import Price
from labmates.budgets.tokens import MOST_TOKENS, estimate_messages, estimate_tokens, read_count, read_usage

ENGLISH = (
    "The team worked on the data for several days, and every member wrote down what had been found. Although the "
    "first results looked promising, the error analyst pointed out that the regression overestimated the population "
    "after the regime shift; therefore we repeated the cross-validation with blocked folds. "
)
CODE = '''
def fit(frame: pd.DataFrame, target: str, *, folds: int = 5) -> dict[str, float]:
    """Fit a ridge regression and return its cross-validated scores."""
    features = frame.drop(columns=[target]).to_numpy()
    scores = cross_val_score(Ridge(alpha=1.0), features, frame[target], cv=folds, scoring="r2")
    return {"mean": float(scores.mean()), "std": float(scores.std(ddof=1))}
'''


@pytest.mark.parametrize(
    ("text", "frugal", "lavish"),
    # Counted with Mistral's Tekken (131,000 entries) and Mistral 7B's tokenizer (32,000 entries).
    [(ENGLISH, 55, 59), (CODE, 109, 133)],
)
def test_english_and_code_lie_within_15_percent_of_real_tokenizers(text: str, frugal: int, lavish: int) -> None:
    estimate = estimate_tokens(text)
    assert 0.85 * lavish <= estimate <= 1.15 * frugal


def test_the_empty_text_has_no_tokens_and_any_other_has_some() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1
    assert estimate_tokens("The lead writes a plan of five points.") == 9


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1))
def test_the_estimate_is_positive_and_bounded_by_the_length(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 4 * len(text) + 1


@settings(max_examples=40, deadline=None)
@given(st.text(), st.text())
def test_more_text_takes_no_fewer_tokens(first: str, second: str) -> None:
    assert estimate_tokens(first + second) >= max(estimate_tokens(first), estimate_tokens(second)) - 1


@pytest.mark.parametrize("unit", ["a", "aA", "é", " 1", "<think>"])
def test_a_megabyte_of_anything_takes_linear_time(unit: str) -> None:
    """Quadratic time would take minutes; the bound is generous so that a busy machine passes."""
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    assert estimate_tokens(text) > 10_000
    assert time.process_time() - started < 10


def test_messages_tool_calls_and_tools_all_count() -> None:
    call = {"name": "run_code", "args": {"code": "print(df.describe())"}, "id": "1", "type": "tool_call"}
    messages = [
        SystemMessage("You are the lead of the data team."),
        HumanMessage([{"type": "text", "text": "Write a plan."}, {"type": "image_url"}]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("count 100", tool_call_id="1"),
    ]
    tool = {"type": "function", "function": {"name": "run_code", "description": "Runs Python.", "parameters": {}}}
    parts = [estimate_messages([message]) for message in messages]
    assert all(part > 5 for part in parts)
    whole = estimate_messages(messages)
    assert max(parts) < whole < sum(parts)
    assert estimate_messages(messages, [tool]) > whole + 10
    assert estimate_messages([]) > 0


def test_estimated_texts_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(40):
            estimate_tokens(f"{number} " + "a" * 40_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 200_000


@pytest.mark.parametrize(("read", "written"), [(500, 0), (0, 500), (60, 60), (500, 500)])
def test_a_prompt_has_no_more_cached_and_written_tokens_than_there_are(read: int, written: int) -> None:
    details = {"cache_read": read, "cache_creation": written}
    reported = {"input_tokens": 100, "output_tokens": 1, "input_token_details": details}
    usage, _ = read_usage(reported, prompt=lambda: 1, output=lambda: 1, reasoning=0)
    assert usage.cached_tokens == min(read, 100)
    assert usage.cache_write_tokens == min(written, 100 - usage.cached_tokens)
    assert usage.cost(Price(input="9", cached="1", cache_write="10", output="0")) >= 100


@pytest.mark.parametrize("value", [None, True, "5", -1, MOST_TOKENS + 1, 1e300, float("inf"), float("nan")])
def test_what_cannot_be_a_number_of_tokens_is_none(value: object) -> None:
    assert read_count(value) is None
    assert (read_count(2.1), read_count(MOST_TOKENS)) == (3, MOST_TOKENS)
