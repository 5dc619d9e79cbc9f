"""What ``labmates run`` and ``labmates show`` tell of runs that end elsewhere, or that nobody here knows to tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labmates.cli.lab import execute
from labmates.cli.summary import print_run
from labmates.records.run import RunRecord
from labmates.records.steps import LeaseLostError
from labmates.records.store import Store
from labmates.studies.execution import OpenSession
from labmates.studies.runs import new_runs
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import make_condition
from tests.studies.ended import fresh_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        yield store


@pytest.mark.parametrize("replicates", [1, 2])
def test_a_run_that_another_process_has_taken_over_is_named_and_the_others_are_told(
    store: Store, replicates: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    condition = make_condition("game", {"game": "o-ring", "model": "scripted:fair-share", "rounds": 1})
    runs = new_runs(condition, seed=0, replicates=replicates, settings=RunSettings())
    carry_out = OpenSession.carry_out

    async def lose_the_first(self: OpenSession, run: RunRecord) -> RunRecord:
        if run.id == runs[0].id:
            raise LeaseLostError(run.id)
        return await carry_out(self, run)

    monkeypatch.setattr(OpenSession, "carry_out", lose_the_first)
    assert execute(store, runs, RunSettings(), as_json=False) == 1
    told = capsys.readouterr()
    assert f"run {runs[0].id} was taken over by another process; see: labmates show {runs[0].id}" in told.err
    assert ("The whole story" in told.out) == (replicates > 1)


def test_a_run_of_a_kind_that_is_not_installed_is_told(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    print_run(store, replace(fresh_run(), kind="opera", status="completed"))
    assert "(opera, scripted:hasty, seed 0): completed" in capsys.readouterr().out
