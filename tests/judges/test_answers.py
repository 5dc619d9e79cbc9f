"""What models answer is read as one JSON object, or refused; it is never guessed."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from labmates.judges.rubric import Rating
from labmates.models.objects import UnusableAnswerError, find_objects, read_object
from tests.judges.conftest import answer, rating


class Point(BaseModel):
    model_config = ConfigDict(strict=True)

    x: int
    y: int = 0


@pytest.mark.parametrize(
    "text",
    [
        '{"x": 1}',
        '```json\n{"x": 1}\n```',
        '```\n{"x": 1}\n```',
        'Sure! Here it is:\n{"x": 1}\nLet me know if {anything} is unclear.',
        'The form {"x": <number>} filled in: {"x": 1}',
        '{"x": 1}\n{"x": 1}',
        '{"note": "see"} {"x": 1}',
        '  \n{"x": 1, "other": {"x": 9}}',
    ],
)
def test_one_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert read_object(text, Point).x == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no whole JSON object"),
        ("I'm sorry, but I can't rate this.", "no whole JSON object"),
        ('{"x": 1', "no closing brace"),
        ("[1, 2]", "no whole JSON object"),
        ('{"y": 1}', 'the key "x" is missing'),
        ('{"x": "one"}', '"x" is .*, but it has to be a whole number'),
        ('{"x": 1} or rather {"x": 2}', "two answers that differ"),
        ('{"x": 1, "x": 2}', "given twice"),
        ('{"x": NaN}', '"x" is .*, but it has to be a whole number'),
    ],
)
def test_what_is_not_one_valid_object_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnusableAnswerError, match=why):
        read_object(text, Point)


@pytest.mark.parametrize("value", [4, "4", " 4 ", 4.0])
def test_a_rating_may_be_written_in_ways_that_mean_one_thing(value: object) -> None:
    assert read_object(answer(quality=value), Rating).quality == 4


@pytest.mark.parametrize("value", [0, 6, -1, 4.5, "6", "four", "4/5", None, True, [4], {}, "", 10**30])
def test_a_rating_that_is_no_whole_number_from_one_to_five_is_refused(value: object) -> None:
    with pytest.raises(UnusableAnswerError, match="quality"):
        read_object(answer(quality=value), Rating)


@pytest.mark.parametrize("name", list(rating()))
def test_every_part_of_a_rating_is_needed(name: str) -> None:
    with pytest.raises(UnusableAnswerError, match=name):
        read_object(answer(**{name: ...}), Rating)
    with pytest.raises(UnusableAnswerError, match=name):
        read_object(answer(**{name: None}), Rating)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 6_000, "{" * 30_000, '{"x": ' + "9" * 6_000 + "}"])
def test_hostile_nesting_and_numbers_are_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        read_object(text, Point)


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet='{}[]":,0123456789abx \n`', max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(UnusableAnswerError):
        assert isinstance(read_object(text, Point), Point)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(value=st.dictionaries(st.text(max_size=3), VALUES, max_size=4), before=st.text(alphabet="ab} \n", max_size=9))
def test_an_object_is_read_back_as_it_was_written(value: dict[str, Any], before: str) -> None:
    assert next(find_objects(f"{before}{json.dumps(value)} after")).value == value
