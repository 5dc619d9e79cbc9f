from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.studies import ready
from labmates.studies.source import find_study, read_study
from labmates.studies.spec import StudySpec, read_spec
from labmates.workflows.protocol.experiment import Condition
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.strategies import write_library
from tests.support.studies import conditions_of

SMALL = """
name: s
kind: science
models: [scripted:silent]
grid:
  task: [ecology, anomaly]
"""


def spec_of(text: str) -> StudySpec:
    return read_spec(read_study(text, "s.yaml"))


def conditions(text: str) -> list[Condition]:
    source = read_study(text, "s.yaml")
    return conditions_of(read_spec(source), source)


def test_a_grid_makes_every_combination_of_every_model_once() -> None:
    found = conditions(SMALL.replace("]", ", scripted:hasty]", 1) + "  budget: [0.5, 1]\nfixed: {difficulty: easy}\n")
    cells = {(c.model, c.task, c.budget, c.difficulty) for c in found if isinstance(c, ScienceCondition)}
    assert len(found) == len(cells) == 8
    assert ("scripted:hasty", "anomaly", 500_000, "easy") in cells


def test_further_grids_add_their_combinations_each_once() -> None:
    found = conditions(SMALL + "also:\n  - {task: [ecology], budget: [0.5, 1]}\n  - {task: [anomaly]}\n")
    cells = Counter((c.task, c.budget) for c in found if isinstance(c, ScienceCondition))
    usual = found[0].budget if isinstance(found[0], ScienceCondition) else 0
    assert set(cells) == {("ecology", usual), ("anomaly", usual), ("ecology", 500_000), ("ecology", 1_000_000)}
    assert set(cells.values()) == {1}


def test_the_papers_sweep_has_240_conditions_and_its_sample_43_of_each_model() -> None:
    assert len(conditions_of(read_spec(find_study("science-sweep")))) == 240
    source = find_study("science-sample")
    source.data["models"] = ["scripted:diligent", "scripted:hasty"]
    found = conditions_of(read_spec(source), source)
    assert Counter(model for c in found for model in c.models()) == {"scripted:diligent": 43, "scripted:hasty": 43}
    assert len({c.key for c in found}) == 86
    assert found == conditions_of(read_spec(source), source)
    cells = [
        {(c.task, c.budget, c.visibility) for c in found if isinstance(c, ScienceCondition) and c.model == model}
        for model in ("scripted:diligent", "scripted:hasty")
    ]
    assert cells[0] != cells[1]


def test_weights_make_values_likelier_and_without_them_all_are_alike() -> None:
    text = (
        SMALL
        + "  team_size: [2, 3]\n  max_turns: [{}]\nsample: {{size: {}, seed: {}, weights: {{team_size: {{2: 9}}}}}}\n"
    )
    turns = ", ".join(map(str, range(1, 51)))
    drawn: Counter[int] = Counter()
    for seed in range(10):
        found = conditions(text.format(turns, 50, seed))
        drawn.update(c.team_size for c in found if isinstance(c, ScienceCondition))
    assert drawn[2] / drawn[3] > 2
    assert len(conditions(text.format(turns, 200, 0))) == 200


def test_a_parameter_that_holds_mappings_can_be_sampled() -> None:
    mixed = "  model_for: [{writing: 'scripted:hasty'}, {}]\nsample: {size: 4, weights: {model_for: {}}}\n"
    assert len(conditions(SMALL + mixed)) == 4


def test_a_sample_per_study_draws_from_all_models_together() -> None:
    text = SMALL.replace("]", ", scripted:hasty]", 1) + "sample: {size: 3, per: study}\n"
    assert len(conditions(text)) == 3


# ruff: noqa: E501
@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("kind: [", ["s.yaml:1: invalid YAML"]),
        ("- a\n- b", ["the study must be a mapping"]),
        ("kind: science\nkind: science", ["s.yaml:2: kind: repeated key (first in line 1)"]),
        (SMALL + "modles: [a]\nreplicate: 3", ["s.yaml:7: modles: unknown key 'modles'. Did you mean 'models'?",
                                               "s.yaml:8: replicate: unknown key 'replicate'. Did you mean 'replicates'?"]),
        (SMALL + "replicates: 0", ["s.yaml:7: replicates: must be at least 1"]),
        (SMALL.replace("science", "sience"), ["s.yaml:3: kind: unknown kind 'sience'. Did you mean 'science'?"]),
        (SMALL + "  taks: [ecology]", ["s.yaml:7: grid.taks: unknown parameter 'taks'. Did you mean 'task'?"]),
        (SMALL + "  budget: []", ["s.yaml:7: grid.budget: the list is empty"]),
        (SMALL + "  budget: [1, 2, 1]", ["s.yaml:7: grid.budget.2: the value 1 is repeated"]),
        (SMALL + "  team_size:\n    - 2\n    - 7", ["s.yaml:9: grid.team_size.1: the largest team of pipeline has 3 seats"]),
        (SMALL.replace("anomaly", "anomali"), ["s.yaml:6: grid.task.1: unknown task 'anomali'. Did you mean 'anomaly'?"]),
        (SMALL + "fixed:\n  task: ecology", ["s.yaml:6: grid.task: this parameter is fixed already"]),
        (SMALL + "fixed:\n  budget: -1", ["s.yaml:8: fixed.budget: '-1' is not a dollar amount"]),
        (SMALL + "fixed: {model: m}", ["s.yaml:7: fixed.model: the models are already under 'models'"]),
        (SMALL + "also: [{task: [ecology], budget: [1, 0]}]", ["s.yaml:7: also.0.budget.1"]),
        (SMALL + "also: [{task: [ecology], buget: [1]}]", ["s.yaml:7: also.0.buget: unknown parameter 'buget'"]),
        (SMALL + "also: [{budget: [1]}]", ["s.yaml:7: also.0: the parameter 'task' is missing: put it under 'fixed' or 'also'"]),
        (SMALL.replace("[scripted:silent]", "[a:b, a:b]"), ["s.yaml:4: models.1: the value 'a:b' is repeated"]),
        (SMALL.replace("scripted:silent", "nobody:x"), ["s.yaml:4: models.0: unknown model provider 'nobody'"]),
        ("name: s\nkind: science", ["the parameter 'task' is missing", "the parameter 'model' is missing"]),
        (SMALL + "sample: {size: 3}", ["s.yaml:7: sample.size: 3 cells can't be drawn without replacement: there are 2"]),
        (SMALL + "sample:\n  size: 1\n  weights:\n    tusk: {a: 1}", ["s.yaml:10: sample.weights.tusk: unknown part of the grid"]),
        (SMALL + "sample:\n  size: 1\n  weights:\n    task: {x: 1}", ["s.yaml:10: sample.weights.task.x: there is no value 'x'"]),
        (SMALL + "sample: {size: 1, weights: {task: {ecology: 0}}}", ["s.yaml:7: sample.weights: weights must be positive and finite"]),
        (SMALL + "sample: {size: 1, weights: {task: {ecology: .nan}}}", ["sample.weights: weights must be positive and finite"]),
        (SMALL + "sample: {size: 1, weights: {task: {ecology: .inf}}}", ["sample.weights: weights must be positive and finite"]),
        (SMALL + "sample: {sise: 1}", ["s.yaml:7: sample.size: this key is missing", "unknown key 'sise'. Did you mean 'size'?"]),
        (SMALL + "concurrency: {max_calls: 3}", ["s.yaml:7: concurrency.max_calls: unknown key 'max_calls'. Did you mean"]),
        (SMALL.replace("name: s", "name: a/b"), ["s.yaml:2: name: a name has letters"]),
        (SMALL + "approve_all: true\napprove_in_viewer: true", ["s.yaml:8: approve_in_viewer: approve_all and approve_in_viewer exclude each other"]),
        (SMALL + "cap: much", ["s.yaml:7: cap: 'much' is not a dollar amount"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text: str, errors: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        conditions(text)
    for error in errors:
        assert error in str(raised.value)


def test_a_grid_beyond_all_measure_is_refused_before_it_is_made() -> None:
    many = ", ".join(map(str, range(1, 101)))
    fields = ("max_turns", "max_output_tokens", "repair_turns", "deliberation_rounds")
    with pytest.raises(UsageError, match="over 1,000,000 conditions"):
        conditions(SMALL + "".join(f"  {field}: [{many}]\n" for field in fields))


def test_every_study_that_comes_with_labmates_is_right_and_says_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_library(tmp_path / "strategies")
    assert {"science-small", "science-sweep", "science-sample"} <= set(ready.names())
    for name in ready.names():
        source = find_study(name)
        spec = read_spec(source)
        assert (spec.name, bool(spec.description)) == (name, True)
        assert conditions_of(spec, source)


def test_a_study_is_found_by_its_file_which_names_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace("name: s\n", ""))
    assert read_spec(find_study(str(path))).name == "mine"
    with pytest.raises(UsageError, match=r"no file or ready study 'science-smal'\. Did you mean 'science-small'"):
        find_study("science-smal")
    with pytest.raises(UsageError, match="can't read the study"):
        find_study(str(tmp_path / "absent.yaml"))


def test_settings_come_from_the_study() -> None:
    more: dict[str, Any] = {"base_url": "http://127.0.0.1:9/v1", "max_concurrent_calls": 5}
    connection = "connection: {base_url: 'http://127.0.0.1:9/v1'}\n"
    spec = spec_of(
        SMALL
        + connection
        + "concurrency: {max_concurrent_calls: 5, max_concurrent_runs: 3}\njudges: [a:b]\ncache: true\n"
    )
    settings = spec.settings()
    assert settings.models.model_dump(include=set(more)) == more
    assert (settings.max_concurrent_runs, settings.judges, settings.cache) == (3, ("a:b",), True)
    assert StudySpec.model_validate(spec.model_dump(mode="json")) == spec
