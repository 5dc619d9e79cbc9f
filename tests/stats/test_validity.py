from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labmates.stats.validity import MOST_FAILED, Tally, invalid_play, tallies, total


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_every_decision_is_counted_once_and_for_whoever_made_it(decisions: list[tuple[str, bool]]) -> None:
    found = tallies(decisions)
    assert total(found.values()) == Tally(len(decisions), sum(failed for _, failed in decisions))
    for who, tally in found.items():
        assert tally == Tally(
            *(sum(x) for x in zip(*((1, bad) for name, bad in decisions if name == who), strict=True))
        )


def test_the_limit_itself_is_valid_and_one_more_failure_is_not() -> None:
    at_limit = int(100 * MOST_FAILED)
    assert invalid_play({"m": Tally(100, at_limit)}) is None
    reason = invalid_play({"m": Tally(100, at_limit + 1), "n": Tally(100, 0)})
    assert reason == "m: 21% of its 100 decisions failed (at most 20% may)"


def test_nobody_who_was_asked_nothing_failed() -> None:
    assert invalid_play({}) is None
    assert Tally(0, 0).rate == 0
