"""One answer out of any text: never another value than a strict reader's, and no endless work."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from labmates.models.objects import UnusableAnswerError, find_objects, read_object


class Point(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    x: int
    y: int = 0


def strict(text: str) -> set[tuple[int, int]]:
    """What a reader finds that knows strict JSON alone and looks from each brace in turn."""
    points: set[tuple[int, int]] = set()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
            if isinstance(point := valid(value), Point):
                points.add((point.x, point.y))
        except ValueError:
            end = at + 1
        at = text.find("{", end)
    return points


def valid(value: Any) -> Point | None:
    try:
        return Point.model_validate(value)
    except ValueError:
        return None


PIECES = [
    *'{}[]:,"\\ \n',
    *["//", "#", "/*", "*/", "'", "\\{", "\\}", "```", "so "],
    *['"x"', '"x": 1', '"x": 2', '"y": 3', '{"x": 1}', '{"x": 2, "y": 3}', '{"x": 1, // one\n}', '{"x": 2,}', "{}"],
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_a_strict_reader_accepts_is_read_with_its_value_or_refused(text: str) -> None:
    seen = strict(text)
    try:
        point = read_object(text, Point)
    except UnusableAnswerError:
        return
    assert not seen or seen == {(point.x, point.y)}


@settings(max_examples=100, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.text(alphabet="ab}]:,\"'#/*\\ \n", max_size=20), st.data())
def test_comments_and_trailing_commas_change_no_value(x: int, y: int, before: str, data: st.DataObject) -> None:
    def gap() -> str:
        return data.draw(st.sampled_from(["", " ", "\n", "/* , } */", "// it's }\n", '# "\n']))

    comma = data.draw(st.sampled_from(["", ","]))
    text = f'{before}{{{gap()}"x"{gap()}:{gap()}{x}{gap()},{gap()}"y":{y}{gap()}{comma}{gap()}}}'
    assert read_object(text, Point) == Point(x=x, y=y)


@pytest.mark.parametrize(
    "unit",
    [
        "{[{[",
        "{",
        '{"a":',
        '{"a": 1, // x\n',
        '{"{":1,',
        "{/*",
        "{'",
        '{"a":1,#',
        '{"\\',
        '\\{"a":',
        '{"a":[' + "[1]," * 100,
        '{"a":' * 30 + "[" + "1," * 1_000,
    ],
)
def test_a_hostile_text_is_read_or_refused_after_bounded_work(unit: str) -> None:
    try:
        assert read_object((unit * (10_000 // len(unit) + 1))[:10_000] + '\n{"x": 1}', Point) == Point(x=1)
    except UnusableAnswerError as error:
        assert len(str(error)) < 300  # noqa: PT017 Either outcome is fine.


def test_the_fault_of_the_object_that_is_nearest_to_the_form_is_told() -> None:
    with pytest.raises(UnusableAnswerError, match=r'^"x" is "1", a text; write a whole number without quotes$'):
        read_object('{"x": "1", "y": 2} and {"z": 1} and {\'x\': 3}', Point)


def test_positions_are_those_of_the_whole_text_wherever_reading_begins() -> None:
    with pytest.raises(UnusableAnswerError, match=r"line 3, column 2, near: .*x: 2"):
        read_object('{"x": 1}\n\n{x: 2}', Point, start=9)


def test_objects_are_found_with_their_places() -> None:
    text = 'A {set} of {"a": {"b": 1}} and {"c": 2}.'
    assert [(text[found.begin : found.end], found.value) for found in find_objects(text)] == [
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('{"c": 2}', {"c": 2}),
    ]
