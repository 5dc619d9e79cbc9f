"""Data in: rows out of runs and files, and nothing dropped in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates_profiles.proximity.checks import checks
from labmates_profiles.proximity.fit import fit
from labmates_profiles.proximity.observations import Team, observations_of_csv, observations_of_runs
from labmates_profiles.proximity.prepare import prepare
from tests.profiles.bayes.studies import SMALL, Known


def _run(at: int, **changes: Any) -> RunRecord:
    condition = {
        "game": "o-ring",
        "model": "openai:model-1",
        "group_size": 5,
        "rounds": 3,
        "rules": {"pool": 3},
        "framing": "standard",
        "reasoning": "none",
        "deliberation": False,
        **changes.pop("condition", {}),
    }
    values: dict[str, Any] = {
        "kind": "game",
        "status": "completed",
        "models": [condition["model"]],
        "metrics": {"pareto_proximity": 0.4, "welfare_proximity": 0.2, "failed_decision_rate": 0.0},
        **changes,
    }
    return RunRecord(id=f"run{at}", key="k", replicate=at, seed=at, condition=condition, **values)


def _csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(text, "utf-8")
    return path


def test_a_run_becomes_a_row_with_the_traits_of_its_model() -> None:
    found = observations_of_runs([_run(1, condition={"reasoning": "tom", "group_size": 8})], SMALL)

    [row] = found.frame.to_dict("records")
    assert (row["model"], row["family"], row["size"], row["thinking"]) == ("openai:model-1", "family-1", 1.0, False)
    assert (row["game"], row["reasoning"], row["group_size"]) == ("o-ring", "tom", 8)
    measures = (row["pareto_proximity"], row["cooperation"], row["efficiency"])
    assert measures == (0.4, 0.6, 0.8), "also of runs of earlier versions"
    assert found.left_out == ()


def test_conditions_are_told_apart_by_their_rules_and_not_by_framing_or_model() -> None:
    rules, framing, model = {"rules": {"pool": 5}}, {"framing": "alternate"}, {"model": "x/model-2"}

    found = observations_of_runs([_run(at, condition=one) for at, one in enumerate(({}, rules, framing, model))], SMALL)

    plain, other_rules, other_framing, other_model = found.frame["condition"]
    assert plain == other_framing == other_model != other_rules


def test_all_that_is_left_out_is_counted_with_its_reason() -> None:
    runs = [
        _run(1),
        _run(2, condition={"model": "scripted:random"}),
        _run(3, condition={"model": "scripted:random"}),
        _run(4, status="failed"),
        _run(5, models=["openai:model-1", "openai:model-2"]),
        _run(6, kind="science"),
        _run(7, condition={"deliberation": True}),
    ]

    found = observations_of_runs(runs, SMALL)

    left = {one.what: (one.rows, one.reason) for one in found.left_out}
    assert len(found.frame) == 1
    assert left["scripted:random"][0] == 2
    assert "--roster" in left["scripted:random"][1]
    assert left["runs that are failed"][0] == 1
    assert left["runs with several models"][0] == 1
    assert left["runs of kind science"][0] == 1
    assert left["runs in which players talked first"][0] == 1


def test_whose_size_counts_in_groups_of_several_models_is_a_choice_and_the_true_one_is_recovered() -> None:
    """Cooperation rises by .15 for each tenfold size of a group's smallest player."""
    rng = np.random.default_rng(2)
    known = [
        Known(f"openai:m{at}", f"family-{at}", float(size), False) for at, size in enumerate((1, 3, 10, 30, 100, 300))
    ]
    names = [model.name for model in known]
    runs: list[RunRecord] = []
    for group in [*((at,) * 4 for at in range(6)), *rng.integers(0, 6, (40, 4)).tolist()]:
        seats = [names[at] for at in group]
        for _ in range(5):
            value = 0.2 + 0.15 * np.log10(min(known[at].size for at in group)) + rng.normal(0, 0.05)
            places = {f"A{seat + 1}": name for seat, name in enumerate(seats)}
            condition = {"model": seats[0], "model_for": places, "group_size": 4, "groups": 1, "rules": {}}
            models = list(dict.fromkeys(seats))
            runs.append(_run(len(runs), condition=condition, models=models, metrics={"cooperation": value}))
    effects, left_out = {}, {}
    teams: tuple[Team, ...] = ("minimum", "mean")
    for team in teams:
        cells = prepare(observations_of_runs(runs, known, team)).cells
        effects[team] = fit(cells, "robust", draws=500).posterior.summaries["size"]
        left_out[team] = checks(cells, permutations=99).left_out_r2 or 0.0
    assert effects["minimum"].mean == pytest.approx(0.15, abs=0.02)
    assert effects["minimum"].low <= 0.15 <= effects["minimum"].high
    assert left_out["minimum"] > left_out["mean"] + 0.1
    assert set(observations_of_runs(runs, known).frame["model"]) <= set(names)


def test_a_thinking_mode_is_known_by_its_setting() -> None:
    named = "openai:qwen3-8b?chat_template_kwargs.enable_thinking=true"

    [row] = observations_of_runs([_run(1, condition={"model": named})]).frame.to_dict("records")

    assert (row["family"], row["size"], row["thinking"]) == ("Qwen3", 8.0, True)


def test_a_model_without_a_family_does_not_count() -> None:
    nameless = Known("openai:model-1", "", 7.0, True)

    assert observations_of_runs([_run(1)], [*SMALL, nameless]).frame["family"].tolist() == ["family-1"]


def test_a_csv_file_needs_model_game_and_outcome_alone(tmp_path: Path) -> None:
    path = _csv(tmp_path, "model,game,pareto_proximity\nmodel-1,o-ring,0.5\nnobody,o-ring,0.1\nmodel-2,o-ring,\n")

    found = observations_of_csv(path, SMALL)

    assert list(found.frame["pareto_proximity"].dropna()) == [0.5]
    assert set(found.frame["group_size"]) == {5.0}
    [left] = found.left_out
    assert (left.what, left.rows) == ("nobody", 1)


def test_a_csv_file_may_bring_its_own_traits(tmp_path: Path) -> None:
    path = _csv(tmp_path, "model,game,welfare_proximity,family,size,thinking\nnew,o-ring,0.5,New,7,yes\n")

    [row] = observations_of_csv(path, []).frame.to_dict("records")

    assert (row["family"], row["size"], row["thinking"]) == ("New", 7.0, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rows"),
        ("model,game,pareto_proximity\n", "has no rows"),
        ("model,pareto_proximity\na,1\n", "no column game"),
        ("model,game\na,b\n", "no column cooperation or efficiency or pareto_proximity or welfare_proximity"),
        (
            "model,game,pareto_proximity\nmodel-1,o-ring,high\n",
            "line 2: pareto_proximity must be a finite number, not 'high'",
        ),
        ("model,game,pareto_proximity\nmodel-1,o-ring,inf\n", "line 2: pareto_proximity must be a finite number"),
        ("model,game,pareto_proximity,reasoning\nmodel-1,o-ring,1,deep\n", "reasoning must be one of none, cot, tom"),
        ("model,game,pareto_proximity,framing\nmodel-1,o-ring,1,odd\n", "framing must be one of standard, alternate"),
        ("model,game,pareto_proximity,family,size,thinking\nm,o-ring,1,F,-1,no\n", "size must be a positive number"),
        ("model,game,pareto_proximity,family,size,thinking\nm,o-ring,1,F,1,perhaps\n", "thinking must be yes or no"),
        ("model,game,pareto_proximity\nmodel-1,o-ring,1\nmodel-1,,1\n", "line 3: there is no game"),
        ("model,game,pareto_proximity\n,o-ring,1\n", "line 2: there is no model"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        observations_of_csv(_csv(tmp_path, text), SMALL)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't read"):
        observations_of_csv(tmp_path / "none.csv", SMALL)


def _many(models: int = 4, games: tuple[str, ...] = ("collective-risk", "o-ring"), **columns: str) -> str:
    """Return a CSV file in which all predictors of a strategy vary."""
    names = ["model", "game", "reasoning", "group_size", "framing", "failed_decision_rate", "pareto_proximity"]
    lines = [",".join(names)]
    for model in range(models):
        for game in games:
            for at, reasoning in enumerate(("none", "cot", "tom", "none")):
                for simulation in range(3):
                    row = {
                        "model": f"model-{model}",
                        "game": game,
                        "reasoning": reasoning,
                        "group_size": "8" if at == 3 else "5",
                        "framing": "standard",
                        "failed_decision_rate": "0",
                        "pareto_proximity": str(0.1 * model + 0.05 * simulation + 0.01 * at),
                        **columns,
                    }
                    lines.append(",".join(row[name] for name in names))
    return "\n".join(lines) + "\n"


def test_cells_are_of_models_games_and_conditions(tmp_path: Path) -> None:
    found = prepare(observations_of_csv(_csv(tmp_path, _many()), SMALL))

    assert found.cells.rows == 4 * 2 * 4 * 3
    assert len(found.cells.count) == 4 * 2 * 4
    assert found.cells.names == ("size", "thinking", "cot", "tom", "group_size", "game:o-ring")
    assert found.reference == "collective-risk"
    assert found.notes == ()


def test_failing_cells_and_missing_outcomes_are_left_out_and_named(tmp_path: Path) -> None:
    text = _many() + "model-5,o-ring,none,5,standard,0.5,0.2\nmodel-6,o-ring,none,5,standard,0,\n"

    found = prepare(observations_of_csv(_csv(tmp_path, text), SMALL))

    left = {one.what: one.reason for one in found.left_out}
    assert "50% of decisions failed" in left["model-5 in o-ring"]
    assert "missing" in left["model-6 in o-ring"]
    assert len(found.cells.models) == 4


def test_constant_predictors_one_game_and_one_family_are_noted(tmp_path: Path) -> None:
    text = _many(games=("o-ring",), reasoning="none", group_size="5")
    known = [Known(one.name, "same", 4.0, one.thinking) for one in SMALL]

    found = prepare(observations_of_csv(_csv(tmp_path, text), known))

    said = " ".join(found.notes)
    for name in ("log10(size)", "Chain-of-thought", "Theory of mind", "Group size"):
        assert f"{name} is the same in all rows" in said
    assert "All rows are of the game o-ring" in said
    assert "family same" in said
    assert found.cells.names == ("thinking",)


def test_simulations_that_never_differ_count_once(tmp_path: Path) -> None:
    lines = _many().splitlines()
    same = [lines[0], *(f"{cell},0.{cell[6]}{len(cell)}" for cell in (line.rpartition(",")[0] for line in lines[1:]))]

    found = prepare(observations_of_csv(_csv(tmp_path, "\n".join(same)), SMALL))

    assert any("never differ" in note for note in found.notes)
    assert (found.cells.count == 1).all()


def test_two_models_are_too_few_and_what_was_left_out_is_told_with_it(tmp_path: Path) -> None:
    text = _many(2) + "nobody,o-ring,none,5,standard,0,0.4\n"
    with pytest.raises(UsageError, match="2 models are too few") as caught:
        prepare(observations_of_csv(_csv(tmp_path, text), SMALL))
    assert "nobody" in str(caught.value)


def test_an_outcome_that_never_varies_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to explain"):
        prepare(observations_of_csv(_csv(tmp_path, _many(pareto_proximity="0.5")), SMALL))


def test_prompts_are_compared_where_both_were_used(tmp_path: Path) -> None:
    alternate = _many(framing="alternate", group_size="5").split("\n", 1)[1]

    found = prepare(observations_of_csv(_csv(tmp_path, _many() + alternate), SMALL), question="prompt")

    assert found.cells.names == ("size", "thinking", "standard", "game:o-ring")
    left = {one.what: one.rows for one in found.left_out}
    assert left["players asked to reason"] == 2 * 4 * 2 * 2 * 3
    assert left["conditions with one framing only"] == 4 * 2 * 3


def test_without_the_other_framing_the_question_of_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--framing alternate"):
        prepare(observations_of_csv(_csv(tmp_path, _many()), SMALL), question="prompt")


def test_other_framings_have_no_part_in_the_question_of_strategies(tmp_path: Path) -> None:
    alternate = _many(framing="alternate").split("\n", 1)[1]

    found = prepare(observations_of_csv(_csv(tmp_path, _many() + alternate), SMALL))

    assert found.cells.rows == 96
    assert any("alternate" in one.what and one.rows == 96 for one in found.left_out)
