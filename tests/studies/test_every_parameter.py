"""Frames of runs hold every parameter, also at its default, so that pandas groups by it without losing a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import labmates
from labmates.records.listing import select_runs
from labmates.records.store import Store
from labmates.records.view import run_json
from labmates.studies import ready
from labmates.studies.runs import new_runs
from labmates.studies.settings import RunSettings
from labmates.studies.source import find_study
from labmates.studies.spec import each_condition, read_spec
from labmates.workflows.protocol.experiment import Condition
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.strategies import write_library


def stored(store: Store, *conditions: Condition) -> None:
    for condition in conditions:
        [run] = new_runs(condition, seed=0, replicates=1, settings=RunSettings())
        store.create(replace(run, status="completed"))


@pytest.mark.parametrize("name", ready.names())
def test_every_value_of_a_ready_studys_grid_survives_load_and_groupby(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = find_study(name)
    if "strategies" in source.data.get("fixed", {}):
        monkeypatch.chdir(tmp_path)
        write_library(tmp_path / "strategies")
    spec = read_spec(source)
    conditions = [condition for _, condition in each_condition(spec, source)]
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as store:
        stored(store, *conditions)
    frame = labmates.load(store=url)
    grids = [grid for _, grid in spec.grids]
    assert len(frame) == len(conditions)
    fields = type(conditions[0]).model_fields
    assert set(conditions[0].model_dump()) == {name for name, field in fields.items() if not field.exclude}
    for parameter in dict.fromkeys(parameter for grid in grids for parameter in grid):
        values = [value for grid in grids for value in grid.get(parameter, ())]
        # The terms of a mechanism, reputation(order=3), are a parameter of their own.
        columns = [f"condition.{part}" for part in (parameter, *(["terms"] if parameter == "mechanism" else []))]
        groups = frame.groupby(columns).size()
        assert groups.sum() == len(conditions), parameter
        if not isinstance(values[0], dict):  # a mapping is completed by defaults
            assert len(groups) == len({str(value) for value in values}), parameter


def test_one_agent_alone_reads_organisation_solo_everywhere(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    usual = {"task": "ecology", "model": "scripted:hasty"}
    arms: list[dict[str, object]] = [{}, {"arm": "oracle"}, {"arm": "mute"}]
    teams: list[dict[str, object]] = [
        {},
        {"organisation": "hybrid"},
        {"solo": True},
        *({"evidence": "split:1", **arm} for arm in arms),
    ]
    with Store(url) as store:
        stored(store, *(ScienceCondition.model_validate({**usual, **team}) for team in teams))
        records = [run_json(run, [])["condition"] for run in select_runs(store)]
    organisations = ["hybrid", "pipeline", "pipeline", "pipeline", "solo", "solo"]
    assert sorted(record["organisation"] for record in records) == organisations
    frame = labmates.load(store=url)
    assert sorted(frame["condition.organisation"]) == organisations
    assert frame.groupby("condition.arm").size().to_dict() == {"mute": 1, "oracle": 1, "team": 4}
    assert set(frame[frame["condition.organisation"] == "solo"]["condition.team_size"]) == {1}
    assert "condition.solo" not in frame
