from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labmates.records.run import RunRecord, Usage
from labmates.records.store import Store
from labmates.studies.plan import make_plan
from labmates.studies.spec import StudySpec, each_condition, read_spec
from labmates.studies.study import enter
from labmates.util.bounded_yaml import Source
from tests.studies.ended import ended_run
from tests.support.strategies import library
from tests.support.studies import conditions_of

DATA: dict[str, Any] = {
    "name": "s",
    "kind": "science",
    "models": ["openai:a", "openai:b"],
    "fixed": {"task": "anomaly"},
    "grid": {"visibility": ["full", "hidden"], "budget": ["0.10", "10"]},
    "replicates": 5,
    "concurrency": {"max_concurrent_runs": 10},
}


def study(**changes: Any) -> StudySpec:
    return read_spec(Source("s.yaml", {**DATA, **changes}, {}))


def test_without_measurements_the_kinds_assumption_counts_within_the_budget() -> None:
    spec = study()
    plan = make_plan(spec, None)
    assert (plan.conditions, plan.runs, plan.done, len(plan.models)) == (8, 40, 0, 2)
    one = plan.models[0]
    assert (one.model, one.runs, one.basis) == ("openai:a", 20, "assumed")
    rich, poor = 101_118 * 0.5e-6 + 29_654 * 3e-6, 0.10
    assert one.dollars / 1e6 == pytest.approx(10 * rich + 10 * poor, rel=0.02)
    assert one.most_dollars == 10 * 10_000_000 + 10 * 100_000
    assert plan.total().runs == 40
    assert plan.as_json()["models"][0]["most_dollars"] == "101"


def test_a_study_without_models_costs_nothing(tmp_path: Path) -> None:
    strategies = library(tmp_path, "public-goods", gpt={"collective": "return C"})
    fixed = {"game": "public-goods", "strategies": str(strategies)}
    plan = make_plan(study(kind="evolution", models=[], fixed=fixed, grid={"group_size": [4, 8]}), None)
    assert (plan.runs, plan.total().dollars, plan.total().calls) == (10, 0, 0)


def test_runs_in_the_store_are_measured_and_those_of_the_study_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    spec = study()
    [first, *_] = conditions_of(spec)
    usage = Usage(llm_calls=50, input_tokens=1000, output_tokens=100)
    for replicate in range(2):
        run = RunRecord(f"r{replicate}", "science", first.key, replicate, 0, {}, ["openai:a"], "completed", study="s")
        store.create(replace(run, usage=usage, seconds=36.0, budget={}))
    plan = make_plan(spec, store)
    monkeypatch.setattr("labmates.studies.plan._MOST_MEASURED", 1)
    assert make_plan(spec, store).done == 2
    store.close()
    a, b = plan.models
    assert (plan.done, a.runs, a.calls, a.input_tokens, a.basis) == (2, 18, 900, 18_000, "measured")
    assert a.hours == pytest.approx(18 * 36 / 10 / 3600)
    assert (b.runs, b.calls, b.basis) == (20, 1000, "measured of other models")


def test_dollars_have_an_interval_from_the_spread_of_measured_runs(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    spec = study(models=["openai:a"], grid={"visibility": ["full"]}, replicates=30)
    [(key, condition)] = each_condition(spec)
    values = condition.model_dump(mode="json")
    for replicate, tokens in enumerate((900, 1000, 1100, 1000)):
        usage = Usage(llm_calls=50, input_tokens=tokens * 1000, output_tokens=tokens * 100)
        run = RunRecord(f"r{replicate}", "science", key, replicate, 0, values, ["openai:a"], "completed", study="s")
        store.create(replace(run, usage=usage, seconds=36.0))
    plan = make_plan(spec, store)
    store.close()
    [one] = plan.models
    assert one.low_dollars is not None
    assert one.high_dollars is not None
    # t of 3 degrees of freedom; a relative spread of .0816 in 4 known and 26 further runs
    reach = math.exp(3.182 * 0.0816 * (1 / 4 + 1 / 26) ** 0.5)
    assert one.high_dollars / one.dollars == pytest.approx(reach, rel=0.002)
    assert (plan.total().low_dollars, plan.total().high_dollars) == (one.low_dollars, one.high_dollars)
    assert make_plan(spec, None).total().high_dollars is None


def test_where_a_kind_knows_its_calls_the_store_tells_what_a_call_takes(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    data = {
        "name": "g",
        "kind": "game",
        "models": ["openai:a"],
        "grid": {"game": ["o-ring", "collective-risk", "common-pool-sanctions"]},
        "replicates": 2,
    }
    spec = read_spec(Source("g", data, {}))
    usage = Usage(llm_calls=40, input_tokens=4000, output_tokens=400)
    run = RunRecord("r", "game", "other", 0, 0, {}, ["openai:a"], "completed", usage=usage, seconds=10.0)
    store.create(run)
    [plan] = make_plan(spec, store).models
    store.close()
    calls = 2 * (30 + 100 + 60)
    assert (plan.calls, plan.input_tokens, plan.output_tokens) == (calls, calls * 100, calls * 10)


def test_a_small_trial_run_is_scaled_to_the_size_of_the_study(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    small = {"kind": "tournament", "models": ["openai:a"], "replicates": 1, "name": "t"}
    fixed = {"structure": "ri", "rounds": 3, "team_size": 2}
    trial = read_spec(Source("t", {**small, "fixed": fixed}, {}))
    [(key, condition)] = each_condition(trial)
    [assumed] = make_plan(trial, None).models
    usage = Usage(llm_calls=assumed.calls, input_tokens=assumed.input_tokens, output_tokens=assumed.output_tokens)
    values = condition.model_dump(mode="json")
    run = RunRecord("r", "tournament", key, 0, 0, values, ["openai:a"], "completed", usage=usage, seconds=10.0)
    store.create(run)
    large = read_spec(Source("t", {**small, "fixed": {**fixed, "rounds": 20}}, {}))
    [expected], [measured] = make_plan(large, None).models, make_plan(large, store).models
    store.close()
    assert (expected.basis, measured.basis) == ("assumed", "measured")
    assert measured.calls == pytest.approx(expected.calls, rel=0.01)
    assert measured.dollars == pytest.approx(expected.dollars, rel=0.01)


def test_models_of_a_run_are_priced_each_by_its_own_price() -> None:
    prices = {"models": {"openai:a": {"input": "0", "output": "0"}, "openai:b": {"input": "10", "output": "10"}}}
    data = {
        "name": "d",
        "kind": "game",
        "models": ["openai:a"],
        "fixed": {"game": "o-ring", "model_for": {"B": "openai:b"}, "prices": prices},
    }
    spec = read_spec(Source("d", data, {}))
    [plan] = make_plan(spec, None).models
    assert plan.dollars == pytest.approx(10 * (plan.input_tokens + plan.output_tokens) / 2, rel=0.01)


def test_baselines_say_nothing_of_models(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    ended_run(store, "a paper")
    spec = study()
    assert {one.basis for one in make_plan(spec, store).models} == {"assumed"}
    store.close()


ROWS = "select key, replicate, seed, place, most, models, condition from runs order by place"


def test_a_study_is_planned_and_entered_as_its_conditions_say(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates.records.entering._BATCH", 50)
    models = [
        "openai:a?top_p=0.9&price.input=0.5&price.output=2",
        "scripted:random",
        "openai:é?price.input=1&price.output=4",
    ]
    prices = [{}, {"credits": "bill"}, {"default": {"input": "1", "output": "2", "cached": "0.1"}}]
    grid = {"game": ["o-ring", "collective-risk"], "prices": prices, "rounds": list(range(1, 11))}
    data = {"name": "g", "kind": "game", "models": models, "fixed": {"temperature": 1e-7}, "grid": grid}
    spec = read_spec(Source("g", {**data, "replicates": 2, "judges": ["openai:é"]}, {}))
    with Store(store_url) as store:
        plan = make_plan(spec, store)
        assert enter(store, spec).new == 2 * 180
        assert enter(store, spec).new == 0
        assert make_plan(spec, store) == plan
        with store.reading() as connection:
            rows = [row._asdict() for row in connection.exec_driver_sql(ROWS)]
    conditions = conditions_of(spec)
    for place, row in enumerate(rows):
        condition, replicate = conditions[place % 180], place // 180
        values = {"models": condition.models(), "condition": condition.model_dump(mode="json")}
        stored = {name: json.loads(row[name]) if isinstance(row[name], str) else row[name] for name in values}
        assert stored == values
        assert (row["key"], row["replicate"], row["seed"]) == (condition.key, replicate, replicate)
    # As they were when each condition was priced by itself.
    assert (sum(row["most"] for row in rows), plan.total().most_dollars, plan.total().dollars) == (
        1007490560,
        1007490560,
        9328000,
    )
