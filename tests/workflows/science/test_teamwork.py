"""Runs of teams beside one agent alone: who is whose twin, what is compared, and what is left over."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord, Usage
from labmates.records.store import Store
from labmates.stats import intervals
from labmates.stats.domains import SHARE
from labmates.stats.intervals import EQUAL, ONE
from labmates.stats.multiplicity import holm
from labmates.workflows.science.analyses.teamwork import (
    MIXED,
    NO_SOLO,
    NO_TEAMS,
    WITHOUT_SKILL,
    Judged,
    Mean,
    judged_runs,
    measures,
    pooled_table,
    teamwork,
    teamwork_table,
)

_numbers = count()
SHARED = {"task": "ecology", "model": "a:b", "budget": "1", "visibility": "full", "prices": {"default": {"input": "1"}}}
TEAMS = {"team_size": 2, "theory_of_mind": False, "model_for": {}}


def score(value: float | None, judge: str = "verified", version: str = "1", metric: str = "accuracy") -> ScoreEvent:
    details: dict[str, Any] = {"credits": []} if value is not None else {}
    return ScoreEvent(
        judge=judge, version=version, metric=metric, value=value, reason="", details=details, failed=value is None
    )


def judged(solo: bool, seed: int, *scores: ScoreEvent, spent: str = "0.1", **condition: Any) -> Judged:
    values = {**SHARED, **({"solo": True} if solo else TEAMS), **condition}
    key = repr(sorted(values.items(), key=lambda item: item[0]))
    run = RunRecord(
        f"run{next(_numbers)}", "science", key, 0, seed, values, ["a:b"], status="completed",
        metrics={"accuracy": 0.0, "tool_errors": 2.0, "phases": 4.0}, usage=Usage(input_tokens=70, output_tokens=30),
        budget={"total": "1", "spent": spent, "remaining": "0.9"},
    )  # fmt: skip
    return Judged(run, scores)


def mean_of(means: tuple[Mean, ...], metric: str) -> Mean:
    [found] = [mean for mean in means if mean.measure.metric == metric]
    return found


def test_teams_that_share_a_solo_run_are_one_comparison_and_adjusted_together() -> None:
    solo = {0: 0.4, 1: 0.5, 2: 0.6}
    gains = {2: (0.1, 0.2, 0.3), 3: (0.3, 0.2, 0.4)}
    runs = [judged(True, seed, score(value)) for seed, value in solo.items()]
    runs += [
        judged(False, seed, score(solo[seed] + gain), team_size=size)
        for size, some in gains.items()
        for seed, gain in enumerate(some)
    ]
    found = teamwork(runs)
    [one] = [one for one in found.pooled if one.measure.metric == "accuracy"]
    assert (one.conditions, one.pairs, one.blocks, one.over) == (2, 6, 3, "data sets")
    alone = intervals.mean([0.2, 0.2, 0.35], SHARE.difference())
    assert (one.difference.low, one.difference.high) == pytest.approx((alone.low, alone.high))
    assert [one.p_holm for one in found.pooled] == holm([one.difference.p for one in found.pooled])
    assert pooled_table(found.pooled).rows[0]["measure"] == found.contrasts[0].means[0].measure.metric


def test_the_pooled_interval_holds_for_new_models_and_tasks() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        of_model, of_task = rng.normal(0, 0.1, 4), rng.normal(0, 0.1, 3)
        runs = []
        for model in range(4):
            for task in range(3):
                for seed in range(2):
                    told = {"model": f"m{model}", "task": f"t{task}"}
                    gain = 0.1 + of_model[model] + of_task[task] + rng.normal(0, 0.05)
                    runs += [judged(True, seed, score(0.4), **told), judged(False, seed, score(0.4 + gain), **told)]
        one = next(one for one in teamwork(runs).pooled if one.measure.metric == "accuracy")
        assert one.over == "models and tasks"
        assert one.difference.low is not None
        assert one.difference.high is not None
        held += one.difference.low <= 0.1 <= one.difference.high
    assert 91 <= held <= 100


def test_pairs_have_the_same_seed_and_their_differences_a_mean_with_an_interval() -> None:
    teams, solo = (0.5, 0.7, 0.9), (0.4, 0.5, 0.6)
    runs = [judged(False, seed, score(value), spent="0.3") for seed, value in enumerate(teams)]
    runs += [judged(True, seed, score(value)) for seed, value in enumerate(solo)]
    found = teamwork(runs)
    [contrast] = found.contrasts
    assert [pair.seed for pair in contrast.pairs] == [0, 1, 2]
    mean = mean_of(contrast.means, "accuracy")
    assert (mean.pairs, mean.measure.judge) == (3, "verified")
    assert (mean.teams, mean.solo, mean.difference.value) == pytest.approx((0.7, 0.5, 0.2))
    low, high = mean.difference.low, mean.difference.high
    assert low is not None
    assert high is not None
    # On the logit scale of [-1, 1], with 2 degrees of freedom.
    half = 4.3027 * 0.1 / 3**0.5 * 2 / (1.2 * 0.8)
    assert (math.atanh(low), math.atanh(high)) == pytest.approx(
        (math.atanh(0.2) - half / 2, math.atanh(0.2) + half / 2), abs=2e-2
    )
    assert mean_of(contrast.means, "credits").difference.value == pytest.approx(0.2)
    assert mean_of(contrast.means, "credits").difference.reason == EQUAL
    assert mean_of(contrast.means, "tokens").teams == 100
    assert found.unpaired == ()
    assert found.unfinished == ()


@pytest.mark.parametrize(
    "other", [{"task": "anomaly"}, {"budget": "2"}, {"visibility": "hidden"}, {"prices": {}}, {"max_turns": 9}]
)
def test_a_condition_that_differs_in_what_both_have_is_no_twin(other: dict[str, Any]) -> None:
    found = teamwork([judged(False, 0), judged(True, 0, **other)])
    assert found.contrasts == ()
    assert [(one.side, one.reason) for one in found.unpaired] == [("teams", NO_SOLO), ("solo", NO_TEAMS)]


def test_one_agent_alone_is_the_twin_of_teams_of_any_size() -> None:
    runs = [judged(False, 0), judged(False, 0, team_size=3), judged(False, 0, theory_of_mind=True), judged(True, 0)]
    found = teamwork(runs)
    assert len(found.contrasts) == 3
    assert {pair.solo_runs for contrast in found.contrasts for pair in contrast.pairs} == {(runs[-1].run.id,)}
    assert found.unpaired == ()


def test_teams_of_different_models_have_no_twin() -> None:
    mixed = judged(False, 0, model_for={"writing": "c:d"})
    mixed = replace(mixed, run=replace(mixed.run, models=["a:b", "c:d"]))
    found = teamwork([mixed, judged(True, 0)])
    assert [one.reason for one in found.unpaired] == [MIXED, NO_TEAMS]


def test_runs_of_one_seed_are_averaged_into_one_pair() -> None:
    runs = [judged(False, 4, score(0.2)), judged(False, 4, score(0.6)), judged(True, 4, score(0.1))]
    [contrast] = teamwork(runs).contrasts
    [pair] = contrast.pairs
    assert pair.team_runs == (runs[0].run.id, runs[1].run.id)
    mean = mean_of(contrast.means, "accuracy")
    assert (mean.pairs, mean.difference.low, mean.difference.reason) == (1, None, ONE)
    assert mean.teams == pytest.approx(0.4)


def test_seeds_without_a_partner_and_runs_that_did_not_end_are_named() -> None:
    failed = judged(False, 2)
    failed = replace(failed, run=replace(failed.run, status="failed"))
    runs = [judged(False, 0), judged(False, 1), judged(True, 0), judged(True, 7), failed]
    found = teamwork(runs)
    assert [len(contrast.pairs) for contrast in found.contrasts] == [1]
    assert [(one.side, one.seeds, one.runs) for one in found.unpaired] == [
        ("teams", (1,), (runs[1].run.id,)), ("solo", (7,), (runs[3].run.id,)),
    ]  # fmt: skip
    assert found.unfinished == (failed.run.id,)


def test_the_newest_score_of_a_version_counts_and_other_versions_are_not_compared() -> None:
    one = judged(False, 0, score(0.1), score(0.3), score(None), score(0.9, version="2"), score(0.4, "rubric:m", "1+x"))
    values = {(m.judge, m.version): value for m, value in measures(one).items() if m.metric == "accuracy"}
    assert values == {("verified", "1"): 0.3, ("verified", "2"): 0.9, ("rubric:m", "1"): 0.4}
    [contrast] = teamwork([one, judged(True, 0, score(0.2))]).contrasts
    assert [m.measure.version for m in contrast.means if m.measure.judge] == ["1"]


def test_a_score_that_is_missing_on_one_side_has_no_part_in_the_mean() -> None:
    runs = [judged(False, 0, score(0.5)), judged(False, 1, score(0.8))]
    runs += [judged(True, 0, score(None)), judged(True, 1, score(0.6))]
    mean = mean_of(teamwork(runs).contrasts[0].means, "accuracy")
    assert mean.pairs == 1
    assert mean.difference.value == pytest.approx(0.2)


def unread(version: str) -> ScoreEvent:
    """What each version of the judge says of a report without findings that can be read."""
    if version == "1":
        return ScoreEvent(judge="verified", version="1", metric="accuracy", value=None, reason="no block")
    details = {"readable": False}
    return ScoreEvent(judge="verified", version=version, metric="accuracy", value=0.0, reason="no", details=details)


@pytest.mark.parametrize("version", ["1", "2"])
def test_an_unreadable_report_counts_as_zero_and_the_mean_per_protocol_stands_beside(version: str) -> None:
    runs = [judged(False, seed, score(0.8, version=version)) for seed in range(3)]
    runs += [judged(True, seed, score(0.6, version=version)) for seed in range(2)]
    runs.append(judged(True, 2, unread(version)))
    [contrast] = teamwork(runs).contrasts
    mean = mean_of(contrast.means, "accuracy")
    assert (mean.pairs, mean.teams, mean.solo) == pytest.approx((3, 0.8, 0.4))
    assert mean.difference.value == pytest.approx(0.4)
    assert mean.per_protocol == pytest.approx(0.2)
    assert mean.readable_pairs == 2
    assert [pair.readable for pair in contrast.pairs] == [True, True, False]


def test_skill_comes_first_may_be_negative_and_its_absence_is_told() -> None:
    skilled = [
        judged(solo, seed, score(0.5), score(-0.3 - solo, metric="skill")) for solo in (False, True) for seed in (0, 1)
    ]
    found = teamwork(skilled)
    mean = found.contrasts[0].means[0]
    assert mean.measure.metric == "skill"
    assert (mean.teams, mean.solo) == pytest.approx((-0.3, -1.3))
    assert WITHOUT_SKILL not in teamwork_table(found).notes
    assert WITHOUT_SKILL in teamwork_table(teamwork([judged(False, 0, score(0.5)), judged(True, 0, score(0.4))])).notes


def test_metrics_of_the_run_stand_beside_scores_but_those_of_teams_only() -> None:
    found = {(m.judge, m.metric): value for m, value in measures(judged(False, 0, score(0.5))).items()}
    assert found == {("verified", "accuracy"): 0.5, ("", "tool_errors"): 2, ("", "tokens"): 100, ("", "credits"): 0.1}


def test_scores_are_read_from_the_store(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    run = judged(True, 0).run
    store.create(run)
    store.add(run.id, [(0, score(0.7))], [])
    [found] = judged_runs(store, list(store.runs()))
    assert [one.value for one in found.scores] == [0.7]
    store.close()


def test_p_values_are_adjusted_for_all_differences_of_the_table() -> None:
    runs = [judged(False, seed, score(value), spent=f"0.{seed + 1}") for seed, value in enumerate((0.5, 0.7, 0.95))]
    runs += [judged(True, seed, score(value)) for seed, value in enumerate((0.4, 0.5, 0.6))]
    found = teamwork(runs)
    plain = [mean.difference.p for contrast in found.contrasts for mean in contrast.means]
    rows = teamwork_table(found).rows
    assert sum(p is not None for p in plain) > 1
    assert [row["p_holm"] for row in rows] == holm(plain)


def test_conditions_are_named_by_the_settings_that_vary_and_no_hash() -> None:
    runs = [judged(True, 0), judged(False, 0), judged(False, 0, team_size=3), judged(False, 0, theory_of_mind=True)]
    table = teamwork_table(teamwork(runs))
    named = ["task", "organisation", "team_size", "model", "theory_of_mind"]
    assert [column.key for column in table.columns][: len(named) + 1] == [*named, "judge"]
    names = dict.fromkeys(tuple(row[name] for name in named) for row in table.rows)
    teams = ((2, "a:b", False), (2, "a:b", True), (3, "a:b", False))
    assert list(names) == [("ecology", "pipeline", *team) for team in teams]
