from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labmates.util.seeds import derive

PATHS = st.lists(st.one_of(st.text(max_size=5), st.integers(0, 20)), min_size=1, max_size=8)


@given(st.integers(0, 2**53), PATHS, st.integers(0, 7))
def test_every_part_of_a_path_changes_the_seed(seed: int, path: list[str | int], place: int) -> None:
    # By number and by text alike; a collision of two 31-bit numbers is not to be expected.
    changed = list(path)
    changed[place % len(path)] = f"{changed[place % len(path)]}x"
    assert derive(seed, *path) != derive(seed, *changed)
    assert derive(seed, *path) != derive(seed + 1, *path)
    assert derive(seed, *path) != derive(seed, *path, "more")
    assert derive(seed, *path) == derive(seed, *path)


def test_parts_of_a_path_do_not_run_into_one_another() -> None:
    assert len({derive(0, "ab", "c"), derive(0, "a", "bc"), derive(0, "abc"), derive(0, "a", "b", "c")}) == 4
