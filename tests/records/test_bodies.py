from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from labmates.records.bodies import Bodies

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3) | texts | st.binary(), max_size=8))
def test_bodies_come_back_from_the_store_as_they_were_and_each_is_stored_once(values: list[Any]) -> None:
    bodies = Bodies()
    numbers = [bodies.keep(value) for value in values]
    stored = bodies.take_new()
    again = Bodies(stored)
    assert [again[number] for number in numbers] == values
    assert len(stored) == len(set(numbers))
    assert [bodies.keep(value) for value in values] == numbers
    assert bodies.take_new() == []
    assert [again.keep(value) for value in values] == numbers


def test_new_bodies_of_a_resumed_run_get_numbers_of_their_own() -> None:
    first = Bodies()
    first.keep("one")
    second = Bodies(first.take_new())
    assert second.keep("two") == 2
    assert [body.number for body in second.take_new()] == [2]


def test_text_with_lone_surrogates_can_be_stored() -> None:
    bodies = Bodies()
    number = bodies.keep("broken \ud800 text")
    assert "broken" in Bodies(bodies.take_new()).text(number)
    bodies.keep({"a": "broken \ud800 text"})
    assert Bodies(bodies.take_new())[2]["a"].startswith("broken")


def test_the_order_of_keys_is_kept_since_texts_for_agents_follow_it() -> None:
    bodies = Bodies()
    number = bodies.keep({"b": {"z": 1, "a": 2}, "a": 1})
    assert str(Bodies(bodies.take_new())[number]) == "{'b': {'z': 1, 'a': 2}, 'a': 1}"
