from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.records.bodies import Bodies, Body, UnreadableBodyError

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


def test_forgotten_bodies_are_stored_once_until_many_others_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.records.bodies.MOST_PASSED", 3)
    bodies = Bodies()
    first = bodies.keep({"text": "first"})
    bodies.forget()
    assert [bodies.keep({"text": text}) for text in ("first", "second", "third", "first")] == [1, 2, 3, 1]
    assert [bodies.keep({"text": text}) for text in ("fourth", "first", "second")] == [4, 1, 5]
    again = Bodies(bodies.take_new())
    assert [again[number]["text"] for number in (first, 4, 5)] == ["first", "fourth", "second"]
    assert again.keep("next") == 6


def test_text_with_lone_surrogates_can_be_stored() -> None:
    bodies = Bodies()
    number = bodies.keep("broken \ud800 text")
    data = bodies.keep({"a": "broken \ud800 text"})
    stored = Bodies(bodies.take_new())
    assert "broken" in stored.text(number)
    assert stored[data]["a"].startswith("broken")


def test_what_bodies_repeat_of_those_before_takes_little_room() -> None:
    said = [f"{number} is a number that hashes to {sha256(bytes([number])).hexdigest()}" for number in range(40)]
    bodies = Bodies()
    for number in range(40):
        bodies.keep("\n".join(said[:number]))
    stored = bodies.take_new()
    assert sum(len(body.data) for body in stored) < 10_000
    assert Bodies(stored).text(40) == "\n".join(said[:39])


def test_bodies_of_older_stores_are_read() -> None:
    old = Body(1, "text", zlib.compress(b"once upon a time"))
    bodies = Bodies([old])
    bodies.keep("once upon another time")
    assert Bodies([old, *bodies.take_new()]).text(2) == "once upon another time"


def test_the_order_of_keys_is_kept_since_texts_for_agents_follow_it() -> None:
    bodies = Bodies()
    number = bodies.keep({"b": {"z": 1, "a": 2}, "a": 1})
    assert str(Bodies(bodies.take_new())[number]) == "{'b': {'z': 1, 'a': 2}, 'a': 1}"


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: data + b"x", lambda data: b"no zlib"])
def test_damaged_bytes_are_told_by_the_number_of_their_body(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(UnreadableBodyError, match=r"its text or file 1 can't be read \(.*\): the store is damaged"):
        Bodies([Body(1, "json", damage(zlib.compress(b'"once upon a time"')))])


def test_a_body_of_invalid_json_is_told_too() -> None:
    with pytest.raises(UnreadableBodyError, match="its text or file 1 can't be read"):
        Bodies([Body(1, "json", zlib.compress(b'{"once"'))])[1]


def test_a_gap_in_the_bodies_is_told() -> None:
    with pytest.raises(UnreadableBodyError, match="that with number 1 is missing"):
        Bodies([Body(7, "text", zlib.compress(b"once"))])


def test_of_many_stored_bodies_a_few_are_in_memory_at_a_time() -> None:
    bodies = Bodies()
    said = ["x" * 10_000 + f"{number:09d}" for number in range(6_400)]
    for text in said:
        bodies.keep(text)
    stored = bodies.take_new()
    packed = [Body(body.number, body.media, body.data) for body in stored]
    del bodies, stored
    tracemalloc.start()
    read = Bodies(packed)
    texts = (read.text(number) for number in (1, 6_400, 3_000, *range(1, 6_401)))
    assert all(text.startswith("x" * 10_000) for text in texts)
    assert read.keep(said[4_000]) == 4_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * 64 * 10_000 * 1.5 + 5_000_000  # of 64 MB
