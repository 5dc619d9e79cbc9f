"""What a study can find, and what finds a given difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.plan import Plan, make_plan
from labmates.studies.spec import each_condition
from labmates_design.plan import Detectable
from tests.studies.test_plan import study


def found_in(plan: Plan) -> list[Detectable]:
    return [each for each in plan.detectable if isinstance(each, Detectable)]


def test_what_a_comparison_would_tell_is_planned_by_parameter(tmp_path: Path) -> None:
    found = {one.parameter: one for one in found_in(make_plan(study(replicates=6), None))}
    assert {(one.metric, one.measured, one.spread) for one in found.values()} == {("skill", False, 0.06)}
    assert "model" in found
    assert all(one.difference is not None for one in found.values())
    fewer = {one.parameter: one for one in found_in(make_plan(study(replicates=1), None))}
    assert fewer["model"].difference is None


def test_a_measured_spread_is_that_of_equal_conditions_and_data(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    spec = study(replicates=6)
    cells = list(each_condition(spec))
    shifts = [0.3, -0.2, 0.0, 0.1, 0.2, -0.4]
    for place, (key, condition) in enumerate(cells):
        for seed, shift in enumerate(shifts):
            values = condition.model_dump(mode="json")
            run = RunRecord(f"r{key}{seed}", "science", key, seed, seed, values, ["openai:a"], "completed", study="x")
            noise = 0.01 * (-1) ** (place + seed)
            store.create(replace(run, metrics={"skill": 0.5 + shift + 0.1 * place + noise}))
        other = RunRecord(f"o{key}", "science", f"other{key}", 0, 0, {}, ["openai:a"], "completed", study="x")
        store.create(replace(other, metrics={"skill": -9.0 * place}))
    found = found_in(make_plan(spec, store))
    store.close()
    assert {one.measured for one in found} == {True}
    assert {round(one.spread, 2) for one in found} == {0.01}, "neither data sets nor other conditions add to it"


def test_a_given_difference_needs_so_many_seeds_tasks_or_models() -> None:
    plan = make_plan(study(replicates=6), None, compared="compare visibility", difference=0.03)
    [planned] = found_in(plan)
    assert planned.parameter == "visibility"
    seeds, tasks, models = planned.needs
    assert [(each.what, each.has) for each in planned.needs] == [("seeds", 6), ("tasks", 1), ("models", 2)]
    [enough] = found_in(make_plan(study(replicates=seeds.needs), None, compared="compare visibility"))
    [fewer] = found_in(make_plan(study(replicates=(seeds.needs or 0) - 1), None, compared="compare visibility"))
    assert (enough.difference or 1) <= 0.03 < (fewer.difference or 1)
    assert tasks.needs is not None
    assert tasks.needs * 6 == pytest.approx(seeds.needs, abs=6)
    assert models.needs is None or models.needs > 2
    assert seeds.dollars == pytest.approx(plan.total().dollars * (seeds.needs or 0) / 6, rel=0.01)


@pytest.mark.parametrize(
    ("compared", "says"),
    [
        ("visibility", "unknown comparison 'visibility'"),
        ("compare", "--for takes 'compare PARAMETER'"),
        ("compare visiblity", "Did you mean 'visibility'"),
        ("compare organisation", "unknown compared parameter 'organisation'"),
    ],
)
def test_a_comparison_that_the_study_does_not_make_is_refused(compared: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_plan(study(), None, compared=compared)
