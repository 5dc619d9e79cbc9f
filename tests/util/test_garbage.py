"""Rarer garbage collection leaves the process as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from labmates.util.garbage import rare_collection


@pytest.fixture
def before() -> Iterator[tuple[int, int, int]]:
    """Thresholds of this test's own: a run in another thread may have set its own."""
    found, own = gc.get_threshold(), (701, 11, 12)
    gc.set_threshold(*own)
    yield own
    gc.set_threshold(*found)


def test_overlapping_contexts_leave_garbage_collection_as_it_was(before: tuple[int, int, int]) -> None:
    first, second = rare_collection(), rare_collection()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() != before
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
