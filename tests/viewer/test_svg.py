"""Drawings: round numbers on axes, nothing unescaped, nothing without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.pages.svg import Plot, line_plot, stacked_plot, tag, thinned, ticks

numbers = st.floats(-1e6, 1e6)


@given(numbers, st.floats(1e-6, 1e6))
def test_ticks_lie_within_and_are_few(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert 1 <= len(found) <= 12
    assert found == sorted(set(found))
    slack = 1e-6 * max(span, abs(low), 1)
    assert all(low - slack <= one <= low + span + slack for one in found)


@given(st.integers(0, 1_000), st.integers(1, 100_000))
def test_ticks_of_counts_are_whole(low: int, span: int) -> None:
    found = ticks(low, low + span, whole=True)
    assert all(one == int(one) for one in found)
    assert 1 <= len(found) <= 12


@given(st.integers(0, 5_000), st.integers(2, 300))
def test_thinned_places_keep_both_ends(number: int, most: int) -> None:
    places = thinned(range(number), most)
    assert len(places) <= max(most, 0)
    assert places == sorted(set(places))
    if number:
        assert (places[0], places[-1]) == (0, number - 1)


@given(st.text(max_size=30))
def test_no_text_leaves_its_place(text: str) -> None:
    drawn = tag("text", text, class_=text)
    assert drawn.count("<") == 2
    assert drawn.count('"') == 2


def test_lines_areas_and_points_say_what_they_are() -> None:
    drawn = line_plot({"a<b": [(1.0, 2.0), (2.0, 2.5)]}, "two points", x_label="x")
    assert "<title>a&lt;b</title>" in drawn
    assert "<title>a&lt;b: 2.5 at 2</title>" in drawn
    many = line_plot({"a": [(float(at), 1.0) for at in range(1_000)]}, "many", x_label="x")
    assert "<circle" not in many
    assert "<title>share</title>" in stacked_plot({"share": [1.0]}, [0], "one step", x_label="x")


def test_plots_of_little_are_drawn() -> None:
    assert "svg" in line_plot({}, "nothing", x_label="x")
    assert "svg" in line_plot({"a": [(0.0, 1.0)]}, "one point", x_label="x")
    assert stacked_plot({"a": [1.0]}, [0], "one step", x_label="x").count("<path") > 0
    assert Plot((0, 0), (1, 1)).x(0) == pytest.approx(Plot((0, 1), (0, 1)).x(0))
