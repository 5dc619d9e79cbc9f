"""Rows of texts, and when two numbers are the same one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.judges.rows import agree, reach, read_numbers, rows_of


def values(text: str) -> list[float]:
    return [number.value for number in read_numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 sensors, 0.057 of them", [12, 0.057]),
        ("from 86-123, sample 1,905.", [86, 123, 1905]),
        ("5.7 % and 3%", [5.7, 0.057, 3, 0.03]),
        ("p = 1.5e-3, TT433, v2, 10min, -0.53", [0.0015, 0.53]),
        ("", []),
        ("9" * 500 + " 1e999", []),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, expected: list[float]) -> None:
    assert values(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("claim", "source", "same"),
    [
        ("0.53", "0.5342", True),
        ("0.54", "0.5342", False),
        ("0.5342", "0.53", True),
        ("0.5342", "0.5", False),
        ("17", "17", True),
        ("17", "17.3", False),
        ("12.4", "12", False),
        ("5.7 %", "0.0572", True),
        ("57 %", "0.572", True),
        ("57 %", "0.58", False),
    ],
)
def test_numbers_agree_when_rounding_explains_the_difference(claim: str, source: str, same: bool) -> None:
    [found] = read_numbers(source)
    assert any(agree(form, found) for form in read_numbers(claim)) is same


@settings(deadline=None)
@given(st.floats(1e-6, 1e6), st.integers(1, 6))
def test_a_number_agrees_with_itself_rounded_to_any_digits(value: float, decimals: int) -> None:
    [claim] = read_numbers(f"{value:.{decimals}f}")
    [source] = read_numbers(f"{value!r}")
    assert agree(claim, source)
    assert abs(claim.value - source.value) <= reach(claim)


def test_prose_is_read_by_sentence_and_output_by_line() -> None:
    text = "TT1 drifts. TT2 is\nfine at 0.25.\n\n- TT3: 17 events\n"
    assert [row.words.strip() for row in rows_of(text)] == ["tt1 drifts", "tt2 is fine at 0 25", "tt3 17 events"]
    assert [row.words.strip() for row in rows_of(text, prose=False)] == [
        "tt1 drifts tt2 is",
        "fine at 0 25",
        "tt3 17 events",
    ]


def test_json_is_read_by_record_and_by_entry() -> None:
    data = {
        "events": [{"start": 5, "end": 9, "sensors": ["TT1"]}, {"start": 7, "end": 8}],
        "means": {"TT1": 1.5, "TT2": 2},
    }
    rows = list(rows_of(f"RESULT {json.dumps(data)}\n", {"start", "end", "sensors"}, prose=False))
    assert [tuple(number.value for number in row.numbers) for row in rows[:4]] == [(5, 9), (7, 8), (1.5,), (2,)]
    assert rows[0].fields == data["events"][0]  # type: ignore[index]
    assert rows[0].names("tt1")
    assert rows[2].names("tt1")
    assert not rows[3].names("tt1")
    assert rows[0].speaks_of(["event"])


def test_a_fenced_table_is_read_by_line() -> None:
    rows = list(rows_of("Text here.\n```\nTT1 5\nTT2 6\n```\n"))
    assert [tuple(number.value for number in row.numbers) for row in rows] == [(), (5,), (6,)]


@pytest.mark.parametrize(
    "text", ['{"a":' * 900 + "1" + "}" * 900, '{"a":' * 50_000, "[" * 10_000, "\ud800 {\x00", "1e308 " * 9]
)
def test_hostile_texts_are_read(text: str) -> None:
    assert len(list(rows_of(text))) < 10


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_has_rows(text: str) -> None:
    assert all(row.words.strip() or row.numbers == () for row in rows_of(text))
