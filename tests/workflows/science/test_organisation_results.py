"""Organisations side by side: pairing, adjustment, the front of score against money, and the words."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

from labmates.records.run import RunRecord
from labmates.workflows.science.analyses.organisations import (
    Place,
    differences_table,
    front_figure,
    label,
    on_front,
    outcomes_table,
    places,
    verdicts,
)

_numbers = count()


def run(organisation: str, seed: int, accuracy: float, spent: float, **more: Any) -> RunRecord:
    team = {"solo": True} if organisation == "solo" else {"organisation": organisation, "team_size": 3}
    condition = {"task": "anomaly", "difficulty": "easy", "model": "a:b", "budget": "1", **team, **more}
    return RunRecord(
        f"run{next(_numbers)}", "science", repr(condition), 0, seed, condition, ["a:b"], status="completed",
        metrics={"accuracy": accuracy}, budget={"total": "1", "spent": str(spent), "remaining": "0"}, seconds=60.0,
    )  # fmt: skip


def three(**more: Any) -> list[RunRecord]:
    """A clear winner for money, a cheap second, and one that is worse and dearer than both."""
    noise = [0.0, 0.02, -0.01, 0.01, -0.02, 0.015]
    runs = []
    for seed, shift in enumerate(noise):
        runs.append(run("hybrid", seed, 0.8 + shift, 0.5 + shift, **more))
        runs.append(run("solo", seed, 0.6 - shift, 0.1 + shift / 10, **more))
        runs.append(run("centralised", seed, 0.4 + shift / 2, 0.7, **more))
    return runs


def only(found: list[Place]) -> Place:
    [place] = found
    return place


def test_the_front_has_whoever_is_beaten_by_nobody() -> None:
    points = np.array([[[0.8, 0.5], [0.6, 0.1], [0.4, 0.7], [0.8, 0.6], [0.6, 0.1]]])
    assert on_front(points).tolist() == [[True, True, False, False, True]]


def test_organisations_are_paired_by_seed_and_adjusted_together() -> None:
    place = only(places(three(), "accuracy"))
    assert [each.name for each in place.outcomes] == ["hybrid, size 3", "solo", "centralised, size 3"]
    assert place.leading == ["hybrid, size 3", "solo"]
    assert place.front == {"hybrid, size 3": 1.0, "solo": 1.0, "centralised, size 3": 0.0}
    first = place.differences[0]
    assert (first.first, first.second, first.seeds) == ("hybrid, size 3", "solo", 6)
    assert first.score.value == pytest.approx(0.205)
    assert first.dollars.value == pytest.approx(0.4, abs=0.01)
    p_values = [each.score.p for each in place.differences]
    adjusted = [each.p_holm for each in place.differences]
    assert all(p is not None and q is not None and p <= q < 0.05 for p, q in zip(p_values, adjusted, strict=True))


def test_only_what_is_equal_in_all_else_is_compared() -> None:
    assert places([run("solo", 0, 0.5, 0.1), run("hybrid", 0, 0.6, 0.1, task="ecology")], "accuracy") == []
    split = [*three(evidence="split:1"), *three()]
    assert {place.settings.get("evidence") for place in places(split, "accuracy")} == {None, "split:1"}
    other_seeds = [run("solo", 0, 0.5, 0.1), run("hybrid", 1, 0.6, 0.1)]
    place = only(places(other_seeds, "accuracy"))
    assert place.differences == []
    assert place.front == {}


def test_runs_of_one_organisation_and_seed_are_averaged_and_unscored_ones_left_out() -> None:
    runs = [run("solo", 0, 0.2, 0.1), run("solo", 0, 0.4, 0.3), run("hybrid", 0, 0.5, 0.2)]
    place = only(places(runs, "accuracy"))
    averaged = {"score": 0.3, "dollars": 0.2, "seconds": 60.0}
    assert place.outcomes[1].by_seed == {0: pytest.approx(averaged)}
    assert places(runs, "quality") == []


def test_an_organisation_is_named_with_what_is_its_own() -> None:
    assert label({"solo": True, "arm": "oracle"}) == "solo, oracle"
    told = label({"team_size": 2, "theory_of_mind": True, "model_for": {"eval": "a:c"}})
    assert told == "pipeline, size 2, theory of mind, eval=a:c"


def test_the_words_say_who_leads_who_is_beaten_and_what_is_cheap() -> None:
    [sentence] = verdicts(places(three(), "accuracy"), "accuracy")
    assert "anomaly, easy, a:b, 1: hybrid, size 3 has the highest accuracy (0.80" in sentence
    assert "it beats solo and centralised, size 3; solo costs least on the front." in sentence
    few = [run("solo", 0, 0.5, 0.1), run("hybrid", 0, 0.6, 0.1)]
    [open_] = verdicts(places(few, "accuracy"), "accuracy")
    assert "the runs can't separate it from solo; nothing on the front costs less." in open_


def test_tables_hold_every_organisation_and_every_difference() -> None:
    found = places(three(), "accuracy")
    rows = outcomes_table(found, "accuracy").rows
    assert [(row["organisation"], row["on_front"]) for row in rows] == [
        ("hybrid, size 3", True), ("solo", True), ("centralised, size 3", False),
    ]  # fmt: skip
    assert len(differences_table(found, "accuracy").rows) == 3
    assert front_figure(found[0], "accuracy").axes[0].get_xlabel().startswith("dollars")
