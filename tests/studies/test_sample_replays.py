"""Texts of records stay as they are: runs of an earlier version replay without a difference."""

from __future__ import annotations

import pytest

from labmates.api import replay
from labmates.cli.view import sample_store
from labmates.records.store import Store


@pytest.mark.parametrize(
    "model",
    [
        "scripted:diligent",
        pytest.param("scripted:hasty", marks=pytest.mark.slow("tests/studies/test_sample_replays.py")),
    ],
)
def test_science_runs_of_the_sample_store_replay_the_same(model: str) -> None:
    # A difference is a changed prompt or reason of a judge. If it is intended, record the sample again: make sample.
    with sample_store() as url, Store(url, must_exist=True) as store:
        runs = [run for run in store.runs(kind="science") if list(run.models) == [model] and run.replicate == 0]
        assert len(runs) == 2  # the pipeline and one agent alone
        for run in runs:
            replayed = replay(run.id, store=url)
            assert replayed.is_same, replayed.differences
