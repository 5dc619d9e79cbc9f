"""From profiles and lab runs to the data of an outcome: nothing is dropped silently, and what can't be is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.models.roster import roster, traits_of
from labmates_profiles.prediction.data import condition_columns
from labmates_profiles.prediction.design_matrix import (
    Assembled,
    Choice,
    UninformativeError,
    assemble,
)
from labmates_profiles.prediction.evidence import own_effects, sign_tests
from labmates_profiles.prediction.material import Material
from labmates_profiles.prediction.sources import (
    COMPARED,
    LeftOut,
    Level,
    Observation,
    read_levels,
    read_observations,
)

GAMES = ("weakest-link", "o-ring")
NAMES = [f"openai:{one.name}" for one in roster()[:12]]


def levels(names: list[str] = NAMES, **other: Any) -> list[Level]:
    rng = np.random.default_rng(1)
    return [
        Level(**{"model": name, "game": game, "value": rng.normal(5, 2), "error": 0.2, "simulations": 20, **other})
        for name in names
        for game in GAMES
    ]


def lab(
    names: list[str] = NAMES, runs: int = 4, scores: Mapping[tuple[str, str], float | None] | None = None, **other: Any
) -> list[Observation]:
    rng = np.random.default_rng(2)
    return [
        Observation(
            name,
            {"task": ("anomaly", "ecology")[run % 2], "budget": ("1", "0.5")[run // 2 % 2], **other},
            {("verified", "accuracy"): rng.uniform(), ("verified", "quality"): 0.5} if scores is None else scores,
            {"verified": "1"},
        )
        for name in names
        for run in range(runs)
    ]


def put(profiles: list[Level], runs: list[Observation], choice: Choice | None = None) -> Assembled:
    names = [one.model for one in profiles] + [one.model for one in runs]
    return assemble("accuracy", profiles, runs, traits_of(names), choice)


def test_models_are_put_on_scales_that_others_can_be_put_on() -> None:
    found = put(levels(), lab())
    data = found.data
    assert data.levels.mean(axis=0) == pytest.approx(np.zeros(2), abs=1e-12)
    assert data.levels.std(axis=0) == pytest.approx(np.ones(2))
    assert found.level_scale(np.array([5.0, 5.0])) == pytest.approx(
        (5 - found.level_scale.centre) / found.level_scale.spread
    )
    assert data.errors[0] == pytest.approx(0.2 / found.level_scale.spread)
    assert data.columns == ("log(budget)", "task: ecology")
    assert data.controls == ("IFEval", "MMLU-Pro", "log(size)", "thinking")
    assert found.unit == "condition"
    assert len(data.outcome) == 48
    assert (found.judge, found.runs, found.left_out) == ("verified", 48, ())


def test_every_model_that_is_left_out_is_listed_with_the_reason() -> None:
    known, extra = NAMES, ["openai:nobody", "openai:phi-4", "openai:gpt-oss-20b", "openai:qwen3-4b", "openai:qwen3-8b"]
    profiles = levels([*known, "openai:nobody", "openai:phi-4"])
    profiles += [Level("openai:qwen3-4b", "o-ring", 3.0, 0.1, 20)]
    profiles += levels(["openai:qwen3-8b"], error=None)
    profiles += levels(["openai:qwen3-14b"], failed=0.5)
    runs = lab([*known, *(name for name in extra if name != "openai:phi-4"), "openai:qwen3-14b"])
    left = {one.what: one.reason for one in put(profiles, runs).left_out}
    assert left.keys() == {*(set(extra) - set(known)), "openai:qwen3-14b"}
    assert "a profile, but no scored lab runs" in left["openai:phi-4"]
    assert "size and benchmark scores are unknown (add them with --roster" in left["openai:nobody"]
    assert left["openai:qwen3-4b"] == "no simulations of weakest-link"
    assert "a single simulation of weakest-link, o-ring" in left["openai:qwen3-8b"]
    assert "too many of its decisions failed: 50% in " in left["openai:qwen3-14b"]
    without = put(profiles, runs, Choice(controls=False))
    assert "openai:nobody" in without.data.models
    assert without.data.controls == ()
    lonely = put(levels(), lab([*NAMES, "openai:phi-4"]))
    [one] = lonely.left_out
    assert one.reason == "it has 4 scored lab runs, but no profile"


def test_a_model_that_failed_in_one_game_alone_is_left_out_with_the_game_named() -> None:
    profiles = [replace(one, failed=0.3) if (one.model, one.game) == (NAMES[0], "o-ring") else one for one in levels()]
    assert sum(one.failed for one in profiles if one.model == NAMES[0]) / len(GAMES) < 0.2
    left = {one.what: one.reason for one in put(profiles, lab()).left_out}
    assert left[NAMES[0]] == "too many of its decisions failed: 30% in o-ring (at most 20% may)"


def test_unscored_runs_are_counted_for_each_model() -> None:
    runs = lab() + lab(NAMES[:2], 3, {("verified", "accuracy"): None})
    left = put(levels(), runs).left_out
    assert {(one.what, one.count) for one in left} == {("runs", 3)}
    assert f"unscored by verified: runs of {NAMES[0]}" in left[0].reason


def test_scores_of_several_judges_are_never_mixed() -> None:
    runs = [Observation(one.model, one.condition, {**one.scores, ("openai:j", "accuracy"): 0.3}, {}) for one in lab()]
    assert put(levels(), runs).judge == "verified"
    two = [Observation(one.model, one.condition, {("a", "accuracy"): 0.1, ("b", "accuracy"): 0.3}, {}) for one in lab()]
    with pytest.raises(UsageError, match=r"several judges scored accuracy: a \(48 runs\), b \(48 runs\)"):
        put(levels(), two)
    assert put(levels(), runs, Choice(judges={"": "verified"})).judge == "verified"
    assert put(levels(), runs, Choice(judges={"accuracy": "verified", "": "x"})).judge == "verified"
    with pytest.raises(UsageError, match="the judge 'x' has not scored accuracy"):
        put(levels(), runs, Choice(judges={"": "x"}))
    with pytest.raises(UsageError, match="no lab run has a score of accuracy"):
        put(levels(), lab(scores={}))
    whole = {("heuristic", name): 0.1 for name in ("accuracy", "heuristic_quality", "completeness")}
    mixed = [
        Observation(one.model, one.condition, {**whole, ("openai:j", "accuracy"): 0.2, **one.scores}, one.versions)
        for one in lab()
    ]
    found = put(levels(), mixed)
    assert found.judge == "verified"
    assert "scored by: heuristic (48 runs), openai:j (48 runs), verified (48 runs)" in found.notes[0]
    versions = [Observation(o.model, o.condition, o.scores, {"verified": str(n % 2)}) for n, o in enumerate(lab())]
    assert any(
        "several versions of verified: 0 (24 runs), 1 (24 runs)" in note for note in put(levels(), versions).notes
    )


def test_accuracy_by_rules_on_words_is_taken_only_where_it_is_asked_for() -> None:
    runs = lab(scores={("heuristic", "accuracy"): 0.5})
    with pytest.raises(UninformativeError, match=r"scored by heuristic alone, .* --judge accuracy=heuristic"):
        put(levels(), runs)
    rng = np.random.default_rng(3)
    varied = [replace(one, scores={("heuristic", "accuracy"): rng.uniform()}) for one in runs]
    assert put(levels(), varied, Choice(judges={"accuracy": "heuristic"})).judge == "heuristic"


def test_unreadable_runs_count_and_both_means_are_told() -> None:
    unread = [replace(one, scores={("verified", "accuracy"): 0.0}, readable=False) for one in lab(NAMES[:3], 2)]
    found = put(levels(), [*lab(), *unread])
    assert found.runs == 54
    read = [float(value or 0) for one in lab() for value in one.scores.values() if value != 0.5]
    [note] = [note for note in found.notes if "intention to treat" in note]
    assert note.startswith("6 of 54 runs have no readable findings")
    assert f"the mean accuracy is {sum(read) / 54:.3f}" in note
    assert f"over the other 48 (per protocol) the mean is {sum(read) / 48:.3f}" in note


def test_where_no_run_has_skill_accuracy_takes_its_place_and_that_is_told() -> None:
    def assembled(runs: list[Observation]) -> tuple[list[str], list[str]]:
        found, left = Material(levels(), runs, [], (), "").assembled(Choice(), (), COMPARED)
        return [one.outcome for one in found], [one.what for one in left]

    assert assembled(lab()) == (["accuracy"], ["skill", "quality", "completeness", "heuristic_quality"])
    rng = np.random.default_rng(4)
    skilled = [replace(one, scores={**one.scores, ("verified", "skill"): rng.uniform(-1, 1)}) for one in lab()]
    assert assembled(skilled) == (["skill"], ["quality", "completeness", "heuristic_quality"])


def test_too_few_models_constant_games_one_task_and_constant_scores_are_said() -> None:
    with pytest.raises(UsageError, match="3 models have both a profile and scored lab runs; at least 4 are needed"):
        put(levels(NAMES[:3]), lab(NAMES[:3]))
    with pytest.raises(UsageError, match=r"6 models are too few for 6 coefficients.*--no-benchmarks"):
        put(levels(NAMES[:6]), lab(NAMES[:6]))
    few = put(levels(NAMES[:6]), lab(NAMES[:6]), Choice(controls=False))
    assert any("Only 6 models for 3 coefficients per model: 3 degrees of freedom" in note for note in few.notes)
    same = [Level(one.model, one.game, 5.0, 0.0, 20) if one.game == "o-ring" else one for one in levels()]
    constant = put(same, lab())
    assert constant.data.games == ("weakest-link",)
    assert any(
        "o-ring is left out of the predictors: all of these models play it alike" in one for one in constant.notes
    )
    with pytest.raises(UsageError, match="no game distinguishes these models"):
        put(levels(value=5.0), lab())
    one_task = put(levels(), [one for one in lab() if one.condition["task"] == "anomaly"])
    assert any("One task only, anomaly" in note for note in one_task.notes)
    with pytest.raises(UsageError, match="accuracy does not vary within any model"):
        put(levels(), lab(scores={("verified", "accuracy"): 0.5}))
    with pytest.raises(UsageError, match="there are no profiles"):
        put([], lab())
    with pytest.raises(UsageError, match="no model has simulations of chess; there are: weakest-link, o-ring"):
        put(levels(), lab(), Choice(games=("chess",)))
    with pytest.raises(UsageError, match="the budget of a lab run must be a positive number"):
        put(levels(), lab(budget="much"))


def test_runs_of_a_condition_are_averaged_but_where_there_is_only_one_condition() -> None:
    runs = [Observation(o.model, {"task": "ecology"}, o.scores, {}) for o in lab()]
    alone = put(levels(), runs)
    assert alone.unit == "run"
    assert len(alone.data.outcome) == 48
    assert "Each model has one condition, so its runs are the observations." in alone.notes
    with pytest.raises(UsageError, match="--unit run"):
        put(levels(), runs, Choice(unit="condition"))
    twice = lab() + lab()
    assert len(put(levels(), twice).data.outcome) == 48
    assert len(put(levels(), twice, Choice(unit="run")).data.outcome) == 96
    differ = put(levels(), lab() + lab(temperature=0.5))
    assert any("also differ in temperature" in note for note in differ.notes)


def test_files_are_read_in_both_forms_and_in_that_of_an_export(tmp_path: Path) -> None:
    file = tmp_path / "g.csv"
    file.write_text("model,condition.game,metrics.level\na,o-ring,1\na,o-ring,3\n", "utf-8")
    [[one], _] = read_levels(file)
    assert (one.value, one.error, one.simulations) == (2.0, 1.0, 2)
    file.write_text("model,game,mean,error,simulations\na,o-ring,2,0.5,20\n", "utf-8")
    assert read_levels(file) == ([Level("a", "o-ring", 2.0, 0.5, 20)], [])
    file.write_text("model,game,level,level_error,simulations,failed_rate\na,b,2,0.5,20,0.3\na,c,3,,1,\n", "utf-8")
    assert read_levels(file) == ([Level("a", "b", 2.0, 0.5, 20, 0.3), Level("a", "c", 3.0, None, 1)], [])
    lab_file = tmp_path / "l.csv"
    lab_file.write_text("model,condition.task,scores.rubric:openai:j.accuracy,accuracy\na,ecology,0.5,\n", "utf-8")
    [[run], _] = read_observations(lab_file)
    assert run.scores == {("rubric:openai:j", "accuracy"): 0.5, ("file", "accuracy"): None}
    assert run.condition == {"task": "ecology"}
    for text, said in (
        ("", "has no rows"),
        ("model,mean\na,1\n", "no column game; it has model, mean"),
        ("model,game\na,b\n", "needs a column level"),
        ("model,game,level\na,b,much\n", "level must be a finite number, not 'much'"),
        ("model,game,mean\na,b,1\n", "no column error; it has model, game, mean"),
    ):
        file.write_text(text, "utf-8")
        with pytest.raises(UsageError, match=said):
            read_levels(file)
    lab_file.write_text("model,task\na,b\n", "utf-8")
    with pytest.raises(UsageError, match="no column of an outcome"):
        read_observations(lab_file)
    with pytest.raises(UsageError, match="can't read"):
        read_observations(tmp_path / "none.csv")


LEVELS = "model,game,level\na,o-ring,2\na,o-ring,4\n"
MEANS = "model,game,mean,error,simulations\na,o-ring,2,0.5,20\n"
LAB = "model,accuracy\na,0.5\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEVELS + "a,o-ring,NaN\n", "level must be a finite number, not 'NaN'"),
        (LEVELS + "a,o-ring,1e999\n", "level must be a finite number, not '1e999'"),
        (LEVELS + "a,o-ring,3,5\n", "row 3 has more cells than there are columns"),
        (LEVELS + ",o-ring,3\n", "there is no model"),
        (LEVELS.replace("level", "level,level", 1), "the column level twice"),
        (MEANS + "a,o-ring,3,0.5,20\n", "two rows of the model a in the game o-ring"),
        (MEANS + "b,o-ring,3,-1,20\n", "error must be a finite number, 0 or more, not '-1'"),
        (MEANS + "b,o-ring,3,1,inf\n", "simulations must be a finite number, 0 or more, not 'inf'"),
    ],
)
def test_a_file_of_profiles_that_would_give_wrong_numbers_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "games.csv").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_levels(tmp_path / "games.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LAB + "b,inf\n", "accuracy must be a finite number"),
        (LAB + ",0.5\n", "no model"),
        (LAB + "b,1,2\n", "more cells"),
    ],
)
def test_a_file_of_lab_runs_that_would_give_wrong_numbers_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "lab.csv").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_observations(tmp_path / "lab.csv")


def test_failed_runs_of_an_export_do_not_spoil_its_good_ones(tmp_path: Path) -> None:
    usual = {"framing": "standard", "reasoning": "none", "deliberation": "False", "group_size": "5", "groups": "2"}
    condition = {f"condition.{name}": value for name, value in {**usual, "game": "o-ring", "rounds": "3"}.items()}
    said = (("completed", "2"), ("failed", ""), ("completed", ""), ("completed", "4"))
    rows = [
        {"id": f"r{seed}", "kind": "game", "key": "k", "replicate": str(seed), "seed": str(seed), "models": "a"}
        | {**condition, "status": status, "metrics.level": level}
        for seed, (status, level) in enumerate(said)
    ]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    levels, left = read_levels(tmp_path / "runs.csv")
    assert levels == [Level("a", "o-ring", 3.0, 1.0, 2)]
    assert left == [LeftOut("simulations", 1, "they have not ended")]


def test_a_budget_that_is_the_same_for_all_is_no_predictor() -> None:
    for budget in (0.5, 2.5, 5, 7):
        for runs in range(2, 60):  # of how many the standard deviation is exactly 0 is a matter of rounding
            assert condition_columns([{"budget": budget}] * runs, [])[0] == {}


def test_runs_are_put_on_the_data_sets_that_models_share() -> None:
    def on(seeds: Sequence[str | None], **other: Any) -> Assembled:
        runs = [replace(one, seed=seed) for seed in seeds for one in lab(**other)]
        return put(levels(), runs)

    found = on(["1", "2"])
    runs = found.data.runs
    assert runs is not None
    assert set(runs.data_sets) == {"anomaly//1", "anomaly//2", "ecology//1", "ecology//2"}
    assert found.data.factors == ("budget", "task")
    assert len(found.data.outcome) == 48
    assert len(runs.outcome) == 96
    mean = np.bincount(runs.observation, runs.outcome) / np.bincount(runs.observation)
    assert found.data.outcome == pytest.approx(mean)
    fewer = found.data.without(0).runs
    assert fewer is not None
    assert np.bincount(fewer.observation, fewer.outcome) / 2 == pytest.approx(mean[found.data.model_of > 0])
    assert any("worked on one data set" in note for note in on(["1"]).notes)
    assert any("add a column seed" in note for note in on([None]).notes)
    alone = [replace(one, seed=f"{at}") for at, one in enumerate(lab())]
    assert put(levels(), alone).data.runs is None


def test_each_models_own_effects_are_told_by_its_own_runs() -> None:
    data = put(levels(), lab()).data
    given = np.linspace(-1, 1, 24).reshape(12, 2)
    exact = data.model_of + (data.conditions * given[data.model_of]).sum(axis=1)
    exact[data.model_of == 0] = 0.5
    assert own_effects(replace(data, outcome=exact))[1:] == pytest.approx(given[1:])
    one_task = replace(data, conditions=np.where((data.model_of == 3)[:, None], 1.0, data.conditions))
    assert np.isnan(own_effects(one_task)[3]).all()
    tests = sign_tests(one_task, permutations=99)
    assert [one.units for one in tests.values()] == [11, 11]


def test_a_budget_that_is_not_known_of_all_runs_is_said() -> None:
    some = lab()
    some[0] = replace(some[0], condition={"task": "anomaly"})
    found = put(levels(), some)
    assert found.data.columns == ("task: ecology",)
    assert any("The budget of some lab runs is unknown" in note for note in found.notes)
    with pytest.raises(UsageError, match="the budget of a lab run must be a positive number of dollars, not 'inf'"):
        put(levels(), lab(budget="inf"))


def test_outcomes_that_conditions_determine_are_refused() -> None:
    by_task = [
        replace(one, scores={("verified", "accuracy"): 0.3 if one.condition["task"] == "anomaly" else 0.4})
        for one in lab()
    ]
    with pytest.raises(UsageError, match="the conditions determine accuracy exactly within each model"):
        put(levels(), by_task)
