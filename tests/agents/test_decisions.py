"""Decisions out of replies: what counts, and what is refused with which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from labmates.agents.decisions import Form, numbers_form, read_decision
from labmates.budgets.tokens import Usage
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Fault, Reply

EFFORT = numbers_form({"effort": (0, 10)})
TOKENS = numbers_form({"A2": (0, 10), "A3": (0, 10)}, most=10)


def reply(text: str, *faults: Fault) -> Reply:
    return Reply(text, (), faults, AIMessage(text), "stop", Usage(1, 1))


@pytest.mark.parametrize(
    "text",
    [
        '{"effort": 7}',
        '```json\n{"effort": 7}\n```',
        'The others may shirk, so I choose {"effort": 7}. That is safe.',
        'A draft in JSON: {"plan": {"effort": 3}} and then {"effort": 7}',
        r"\[\boxed{\{ \"effort\": 7 \}}\]".replace('\\"', '"'),
        r'Thus \boxed{{"effort": 7}}',
        "{'effort': 3} is no JSON, but {\"effort\": 7} is",
        "x" * 200_000 + '{"effort": 7}',
        '{"effort": 1}' + "x" * 200_000 + '{"effort": 7}',
    ],
)
def test_the_object_that_fits_counts_whatever_stands_around_it(text: str) -> None:
    assert read_decision(reply(text), EFFORT).values == {"effort": 7}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no text"),
        (" \n\u00a0", "no text"),
        ("I choose seven.", "no whole JSON object"),
        ('{"effort": 7', "no closing brace"),
        ("[7]", "no whole JSON object"),
        ('{"effort": 2.7}', "whole number"),
        ('{"effort": 7.0}', "whole number"),
        ('{"effort": "7"}', "whole number"),
        ('{"effort": true}', "whole number"),
        ('{"effort": null}', "whole number"),
        ('{"effort": 1e400}', "whole number"),
        ('{"effort": NaN}', "whole number"),
        ('{"effort": -1}', "the least is 0"),
        ('{"effort": 11}', "the most is 10"),
        ('{"extraction": 7}', 'the key "effort" is missing'),
        ('{"effort": 7, "extraction": 7}', 'key "extraction" is not part of the form'),
        ('{"effort": 7, "effort": 8}', "given twice"),
        ("{}", 'the key "effort" is missing'),
        pytest.param('{"effort": ' + "9" * 5_000 + "}", "out of range", id="many digits"),
        pytest.param('{"effort": ' * 50_000, "no closing brace", id="many braces"),
    ],
)
def test_what_is_no_decision_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(UnusableAnswerError, match=told):
        read_decision(reply(text), EFFORT)


def test_a_cut_reply_is_refused_even_with_an_object_in_it() -> None:
    with pytest.raises(UnusableAnswerError, match="cut off"):
        read_decision(reply('{"effort": 7}', "cut"), EFFORT)


def test_a_sum_has_a_limit() -> None:
    assert read_decision(reply('{"A2": 1, "A3": 9}'), TOKENS).values["A3"] == 9
    with pytest.raises(UnusableAnswerError, match="10 at the most, not 11"):
        read_decision(reply('{"A2": 1, "A3": 10}'), TOKENS)


@given(st.text(max_size=300) | st.lists(st.sampled_from('{}[]":,\\ 0123effort\n'), max_size=80).map("".join))
def test_any_text_is_a_decision_or_the_documented_error(text: str) -> None:
    try:
        decided: Form = read_decision(reply(text), EFFORT)
    except UnusableAnswerError:
        return
    assert 0 <= decided.values["effort"] <= 10
