"""Teams of several models: whose disposition counts is a choice, and in simulated worlds the true one is recovered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labmates.records.store import Store
from labmates.studies.export import export_rows
from labmates_profiles.prediction import Rule
from labmates_profiles.prediction.design_matrix import Assembled, Choice, assemble
from labmates_profiles.prediction.evidence import evidence
from labmates_profiles.prediction.fit import fit_prediction
from labmates_profiles.prediction.sources import (
    Level,
    Observation,
    observations_of_runs,
    read_observations,
    team_name,
)
from tests.studies.ended import ended_run

GAME = "weakest-link"
EFFECT = 0.1
NAMES = [f"openai:m{at:02}" for at in range(12)]


def world(rule: Rule) -> tuple[list[Level], list[Observation]]:
    """Levels of twelve models, and runs of their teams and of 24 mixed ones, which score by one rule."""
    rng = np.random.default_rng(1)
    play, own = rng.normal(size=12), 0.03 * rng.normal(size=12)
    levels = [Level(name, GAME, 5 + play[at] + rng.normal(0, 0.1), 0.1, 20) for at, name in enumerate(NAMES)]
    runs = []
    for team in [*((at,) * 4 for at in range(12)), *map(tuple, rng.integers(0, 12, (24, 4)))]:
        members = play[list(team)]
        counts = {"lead": members[0], "minimum": members.min(), "mean": members.mean()}
        counts["each"] = 0.2 * members[0] + 0.8 * members[1:].mean()
        seats = tuple(NAMES[at] for at in team)
        for run in range(4):
            score = 0.5 + EFFECT * counts[rule] + own[list(team)].mean() + rng.normal(0, 0.05)
            condition = {"task": ("anomaly", "ecology")[run % 2]}
            mixed = seats if len(set(seats)) > 1 else ()
            runs.append(Observation(team_name(seats), condition, {("verified", "accuracy"): score}, {}, seats=mixed))
    return levels, runs


def put(rule: Rule | None, material: tuple[list[Level], list[Observation]]) -> Assembled:
    return assemble("accuracy", *material, {}, Choice(controls=False, team=rule))


@pytest.mark.parametrize("truth", ["lead", "minimum", "mean"])
def test_the_rule_of_a_world_predicts_its_left_out_models_best_and_its_effect_is_recovered(truth: Rule) -> None:
    material = world(truth)
    found: dict[Rule, float] = {}
    rules: tuple[Rule, ...] = ("lead", "minimum", "mean")
    for rule in rules:
        r2 = evidence(put(rule, material).data, permutations=99).r2
        assert r2 is not None
        found[rule] = r2
    assert max(found, key=found.__getitem__) == truth
    true = put(truth, material)
    assert evidence(true.data, permutations=999).permutation.p < 0.01
    effect = fit_prediction(true.data, "robust", draws=500, starts=1).posterior.summaries[GAME]
    spread = float(true.level_scale.spread[0])
    assert effect.low <= EFFECT * spread <= effect.high
    assert effect.mean / spread == pytest.approx(EFFECT, abs=0.02)
    assert any("24 teams of several models share 12 models" in note for note in true.notes)


def test_lead_and_others_are_two_predictors() -> None:
    assembled = put("each", world("each"))
    assert assembled.data.games == (f"{GAME}: lead", f"{GAME}: others")
    summaries = fit_prediction(assembled.data, "robust", draws=500, starts=1).posterior.summaries
    effects = [summaries[game].mean for game in assembled.data.games] / assembled.level_scale.spread
    assert effects == pytest.approx([0.2 * EFFECT, 0.8 * EFFECT], abs=0.015)


def test_members_share_errors_and_families() -> None:
    levels = [Level(name, GAME, float(at), 0.2, 20) for at, name in enumerate(NAMES[:6])]
    mixed = (NAMES[3], NAMES[1], NAMES[1], NAMES[3])
    name = f"{NAMES[3]} leads 2 {NAMES[1]} + {NAMES[3]}"
    rng = np.random.default_rng(0)
    runs = [
        Observation(team_name(seats), {"task": "ecology"}, {("verified", "accuracy"): rng.uniform()}, {}, seats=given)
        for seats, given in [*(((model,), ()) for model in NAMES[:6]), (mixed, mixed)]
        for _ in range(3)
    ]
    values: dict[Rule, float] = {"lead": 3.0, "minimum": 1.0, "mean": 2.0}
    for rule, value in values.items():
        found = put(rule, (levels, runs))
        at, spread = found.data.models.index(name), found.level_scale.spread
        assert found.data.levels[at] * spread + found.level_scale.centre == pytest.approx(value)
        assert found.data.families[at] == pytest.approx([0, 0.5, 0, 0.5, 0, 0])
        assert found.data.errors[at] * spread == pytest.approx(0.2 / np.sqrt(2) if rule == "mean" else 0.2)
    without = put(None, (levels, runs))
    assert name not in without.data.models
    [left] = without.left_out
    assert left.sentence == "3 runs: teams of several models (--team says whose disposition counts in them)"


def test_the_author_of_the_paper_leads_the_seats_of_a_run(store: Store, tmp_path: Path) -> None:
    places = {"writing": "scripted:silent", "data": "scripted:diligent"}
    ended_run(store, "a paper", team_size=2, model_for=places)
    export_rows(store, tmp_path / "runs.csv", store.runs())
    for [run], left in (observations_of_runs(store, store.runs()), read_observations(tmp_path / "runs.csv")):
        assert not left
        assert run.seats == ("scripted:silent", *["scripted:diligent"] * 2, *["scripted:hasty"] * 4, "scripted:silent")


def test_a_file_names_the_models_of_seats(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_text("model,team,accuracy\na,a;b;b,0.5\na,,0.4\n")
    (first, second), _ = read_observations(tmp_path / "lab.csv")
    assert (first.model, first.seats, first.condition) == ("a leads 2 b", ("a", "b", "b"), {})
    assert (second.model, second.seats) == ("a", ())
