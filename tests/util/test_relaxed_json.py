"""Reading JSON as models write it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.util import relaxed_json as rj
from labmates.util.relaxed_json import RelaxedJSONError, Unusable, find_objects, parse_value


def read(text: str) -> tuple[Any, list[str]]:
    parsed = parse_value(text)
    return parsed.value, [mend.what for mend in parsed.mends]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**14), 10**14)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_is_read_as_json_without_any_mend(value: Any, indent: int | None, ascii_: bool) -> None:
    assert read(json.dumps(value, indent=indent, ensure_ascii=ascii_)) == (value, [])


LITERALS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**14), 10**14)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc_'\"", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(LITERALS)
def test_literals_of_python_are_read_as_python_does(value: Any) -> None:
    assert read(repr(value))[0] == value


@pytest.mark.parametrize(
    ("text", "value", "mend"),
    [
        ('{"a": 1, // one\n "b": 2}', {"a": 1, "b": 2}, rj.COMMENT),
        ('{"a": 1 # one\n}', {"a": 1}, rj.COMMENT),
        ('{/* one */ "a": 1}', {"a": 1}, rj.COMMENT),
        ('{"a": [1, 2,], "b": "//"}', {"a": [1, 2], "b": "//"}, rj.TRAILING_COMMA),
        ('{"a": 1\n "b": 2}', {"a": 1, "b": 2}, rj.MISSING_COMMA),
        ("{'a': 'it\\'s \"x\"'}", {"a": 'it\'s "x"'}, rj.QUOTES),
        ("{\u201ca\u201d: \u201cb\u201d}", {"a": "b"}, rj.QUOTES),
        ('{a: "b"}', {"a": "b"}, rj.BARE_WORD),
        ('{"a": 12 days}', {"a": "12 days"}, rj.BARE_WORD),
        ('{"a": 1,200, "b": 3}', {"a": "1,200", "b": 3}, rj.BARE_WORD),
        ('{"a": 007}', {"a": "007"}, rj.BARE_WORD),
        ('{"a\\_b": 1}', {"a_b": 1}, rj.ESCAPE),
        ('{"a": None}', {"a": None}, rj.CONSTANT),
        ('{"a": 1_200}', {"a": 1200}, rj.NUMBER),
        ('{"a": \N{MINUS SIGN}.5}', {"a": -0.5}, rj.NUMBER),
        ('{"a": (1, 2)}', {"a": [1, 2]}, rj.TUPLE),
        ('{"a": np.float64(0.5)}', {"a": 0.5}, rj.NUMPY),
    ],
)
def test_what_is_mended_is_told(text: str, value: object, mend: str) -> None:
    found, mends = read(text)
    assert found == value
    assert set(mends) == {mend}


def test_a_comma_in_a_list_separates() -> None:
    assert read("[1,200]") == ([1, 200], [])


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "9" * 16])
def test_what_is_not_a_finite_number_is_unusable(text: str) -> None:
    assert isinstance(parse_value(text).value, Unusable)
    assert parse_value(f'{{"a": {text}, "b": 1}}').value["b"] == 1


def test_a_key_that_is_given_twice_is_unusable() -> None:
    assert parse_value('{"a": 1, "b": 2, "a": 1}').value == {"a": Unusable("the key 'a' is given twice"), "b": 2}


@pytest.mark.parametrize(
    "text", ["", "{", '{"a"}', "{,}", '{"a": 1 "b": 2}', '{"a": "b}', "{/* 1}", "{" * 50, '{"a": 3/4}']
)
def test_what_has_no_single_reading_is_an_error(text: str) -> None:
    with pytest.raises(RelaxedJSONError):
        parse_value(text)


def test_objects_are_found_in_order_and_not_within_each_other() -> None:
    text = 'A {set} of {"a": {"b": 1}} and {"c": 2,}.'
    assert [(text[o.begin : o.end], o.value) for o in find_objects(text)] == [
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ('{"c": 2,}', {"c": 2}),
    ]


@given(st.text() | st.text("{}[]()\"':,#/*\\ \n1aN.-_\u201c"))
def test_no_text_makes_searching_raise(text: str) -> None:
    for found in find_objects(text):
        assert text[found.begin] == "{"
        assert isinstance(found.value, dict)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 40_000,
        "[" * 200_000,
        '{"a": "' * 30_000,
        "{/*" * 60_000,
        '{"a":[' + "1," * 100_000,
        '{"a":[' + "1,[" * 900,
    ],
)
def test_hostile_texts_hold_no_object(text: str) -> None:
    assert list(find_objects(text)) == []


def test_the_work_on_one_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rj, "MOST_WORK", 100)
    assert list(find_objects('{"a": [1, 1, 1, 1, 1, 1, 1, 1, 1' * 12 + ' {"b": 1}')) == []
    assert [found.value for found in find_objects('{"b": 1}')] == [{"b": 1}]
