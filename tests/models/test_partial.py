from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.models.normalise import read_partial
from labmates.util.safe_text import safe_text

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]))
ARGUMENTS = st.dictionaries(TEXT, st.one_of(TEXT, st.integers(0, 999), st.lists(TEXT, max_size=2)), max_size=4)


@settings(max_examples=50, deadline=None)
@given(ARGUMENTS, st.booleans(), st.data())
def test_what_is_read_of_a_cut_object_is_a_beginning_of_it(
    arguments: dict[str, object], escaped: bool, data: st.DataObject
) -> None:
    text = json.dumps(arguments, ensure_ascii=escaped)
    read = read_partial(text[: data.draw(st.integers(0, len(text)))])
    for (key, value), (found, part) in zip(arguments.items(), read.items(), strict=False):
        assert key == found
        assert part == value or (isinstance(part, str) and isinstance(value, str) and value.startswith(part))
    assert [*read] == [*arguments][: len(read)]
    whole = [*read.items()][:-1]
    assert all(arguments[key] == value for key, value in whole), "only the last value may break off"
    assert read_partial(text) == arguments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "p", "content": "a\\', {"name": "p", "content": "a"}),
        ('{"name": "p", "content": "a\\\\', {"name": "p", "content": "a\\"}),
        ('{"name": "p", "content": "a\\u00', {"name": "p", "content": "a"}),
        ('{"name": "p", "content": "a\\ud83d', {"name": "p", "content": "a"}),
        ('{"name": "p", "content": "a\\ud83d\\ude0', {"name": "p", "content": "a"}),
        ('{"name": "p", "content": "two\nlines', {"name": "p", "content": "two\nlines"}),
        ('{"name": "p", "content', {"name": "p"}),
        ('{"name": "p", "content": ', {"name": "p"}),
        ('{"size": 12', {}),
        ('{"size": 12, "more": [1, 2', {"size": 12}),
        ("", {}),
        ("no JSON", {}),
        ('["a", "b', {}),
        ('{"name": "p" "content": "x"', {"name": "p"}),
        ('{"a": ' + "[" * 100_000, {}),
        ('{"content": "' + "\\" * 100_001, {"content": "\\" * 50_000}),
    ],
)
def test_cuts_at_awkward_places(text: str, expected: dict[str, object]) -> None:
    assert read_partial(text) == expected


def test_what_is_read_can_be_stored() -> None:
    assert read_partial('{"content": "a\x00b')["content"] == safe_text("a\x00b")
