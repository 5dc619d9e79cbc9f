"""Rarer garbage collection leaves the process as it was."""

from __future__ import annotations

import gc

from labmates.garbage import rare_collection


def test_overlapping_contexts_leave_garbage_collection_as_it_was() -> None:
    before = gc.get_threshold()
    first, second = rare_collection(), rare_collection()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() != before
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
