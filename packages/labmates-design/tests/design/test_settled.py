"""Studies that stop when their comparison is settled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.errors import UsageError
from labmates.records.store import Store

PAIR = ["scripted:fair-share", "scripted:defect"]


def file(models: list[str], replicates: int, group_size: int = 4) -> dict[str, Any]:
    fixed = {"game": "common-pool", "rounds": 1, "group_size": group_size, "groups": 1}
    grid = {"model": models}
    return {"name": "u", "kind": "game", "replicates": replicates, "fixed": fixed, "grid": grid}


def test_a_sure_difference_ends_a_study_before_all_replicates_are_played(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    runs = labmates.study(file(PAIR, 30), store=store, until="settled")
    assert len(runs) < 30
    again = labmates.study(file(PAIR, 30), store=store, until="settled")
    assert [run.id for run in again] == [run.id for run in runs]
    assert len(labmates.study(file(PAIR, 30), store=store)) == 60


def test_what_can_not_be_compared_ends_a_study_with_the_reason(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    with pytest.raises(UsageError, match="none of these runs has the metric cooperation"):
        labmates.study(file(PAIR, 30, group_size=3), store=store, until="settled")
    with Store(store) as database:
        assert len(list(database.runs())) == 2
    alone = f"sqlite:///{tmp_path / 'alone.db'}"
    with pytest.raises(UsageError, match="all of these runs have one condition"):
        labmates.study(file(PAIR[:1], 30), store=alone, until="settled")
    with Store(alone) as database:
        assert not list(database.runs())


def test_a_difference_that_will_hardly_be_told_ends_a_study(tmp_path: Path) -> None:
    study = file([], 30) | {"grid": {"framing": ["standard", "alternate"]}}
    study["fixed"] |= {"model": "scripted:random"}
    runs = labmates.study(study, store=f"sqlite:///{tmp_path / 'runs.db'}", until="settled")
    assert len(runs) < 60


def test_a_spent_cap_ends_a_study_with_runs_left(tmp_path: Path) -> None:
    study = file(PAIR, 30) | {"cap": "0.25"}
    runs = labmates.study(study, store=f"sqlite:///{tmp_path / 'runs.db'}", until="settled")
    assert 0 < len([run for run in runs if run.status == "completed"]) < 24


def test_too_few_replicates_to_stop_early_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    with pytest.raises(UsageError, match=r"needs 7 data sets or more.*u has 4"):
        labmates.study(file(PAIR, 4), store=store, until="settled")
    with Store(store) as database:
        assert not list(database.runs())
