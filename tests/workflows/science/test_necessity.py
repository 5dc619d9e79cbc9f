"""The necessity index over the split: pairing by seed, intervals, undefined cases, verdicts."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord, RunStatus, Usage
from labmates.workflows.science.analyses.judged import Judged
from labmates.workflows.science.analyses.necessity import (
    ALL,
    Necessity,
    arm_figures,
    index_of,
    necessity,
    necessity_table,
    plays,
    verdicts,
)

_numbers = count()
CREDITS = {"events": 1.0, "n_sensors": 0.0}


def run(
    arm: str, seed: int, accuracy: float | None, split: str = "1", *, status: RunStatus = "completed", **more: Any
) -> Judged:
    together = arm in ("team", "mute")
    team: dict[str, Any] = {"organisation": "decentralised", "team_size": 3} if together else {"solo": True}
    team |= {} if arm == "team" else {"arm": arm}
    condition = {"task": "anomaly", "model": "a:b", "budget": "1", "evidence": f"split:{split}", **team, **more}
    earned = {name: (accuracy or 0.0) * size for name, size in CREDITS.items()}
    credits = [{"finding": name, "credit": credit, "weight": 1.0, "reason": ""} for name, credit in earned.items()]
    score = ScoreEvent(
        judge="verified", version="1", metric="accuracy", value=accuracy, reason="", details={"credits": credits},
        failed=accuracy is None,
    )  # fmt: skip
    record = RunRecord(
        f"run{next(_numbers)}", "science", repr(condition), 0, seed, condition, ["a:b"], status=status, metrics={},
        usage=Usage(input_tokens=70, output_tokens=30), budget={"total": "1", "spent": "0.25", "remaining": "0.75"},
    )  # fmt: skip
    return Judged(record, (score,))


def arms(
    restricted: list[float], team: list[float], oracle: list[float], split: str = "1", **more: Any
) -> list[Judged]:
    scores = {"restricted": restricted, "team": team, "oracle": oracle}
    return [run(arm, seed, value, split, **more) for arm, values in scores.items() for seed, value in enumerate(values)]


def compared(judged: list[Judged]) -> list[Necessity]:
    return necessity(list(plays(judged)))


def overall(judged: list[Judged]) -> list[Necessity]:
    return [each for each in compared(judged) if each.head["finding"] == ALL]


def test_the_index_is_1_for_a_team_as_good_as_the_oracle_and_0_for_a_useless_one() -> None:
    low, high = [0.10, 0.12, 0.08, 0.11, 0.09, 0.10], [0.70, 0.66, 0.75, 0.71, 0.72, 0.69]
    [good] = overall(arms(low, high, high))
    [useless] = overall(arms(low, low, high))
    assert good.indices["team"] is not None
    assert useless.indices["team"] is not None
    assert good.indices["team"].value == pytest.approx(1)
    assert useless.indices["team"].value == 0
    assert good.verdict == "team is better"
    assert useless.verdict == "can't tell"
    assert good.head["seeds"] == 6
    assert {good.head[f"{arm}_spent"] for arm in ("restricted", "team", "oracle")} == {0.25}


def test_the_index_has_an_interval_over_seeds_that_holds_it() -> None:
    index = index_of([0.1, 0.1, 0.1, 0.1], [0.5, 0.4, 0.45, 0.55], [0.7, 0.7, 0.7, 0.7])
    assert index is not None
    assert index.low is not None
    assert index.high is not None
    assert index.low < index.value < index.high
    assert index.value == pytest.approx(0.625)
    assert "seed" in index.method


def test_it_is_undefined_where_the_oracle_is_no_better() -> None:
    assert index_of([0.5, 0.6], [0.6, 0.7], [0.5, 0.61]) is None
    [same] = overall(arms([0.5, 0.6, 0.7], [0.6, 0.7, 0.8], [0.5, 0.6, 0.7]))
    assert same.indices["team"] is None
    [row] = necessity_table([same], "t", "T").rows
    assert row["index"] is None
    assert row["index_reason"] == "undefined"


def test_one_agent_may_be_better_and_few_seeds_can_not_tell() -> None:
    [worse] = overall(arms([0.50, 0.52, 0.48] * 2, [0.20, 0.21, 0.19] * 2, [0.7] * 6))
    assert worse.verdict == "one agent is better"
    [one] = overall(arms([0.1], [0.7], [0.7]))
    assert one.verdict == "can't tell"
    assert verdicts([worse, one]) == [
        "anomaly ($1, decentralised, size 3, a:b) at split 1 (-0.30 [-0.31, -0.29]): one agent that holds only "
        "the readings beats a team.",
        "anomaly ($1, decentralised, size 3, a:b) at split 1 (+0.60 [one value]): the runs can't tell whether a team "
        "beats one agent that holds only the readings.",
    ]


def test_seeds_count_where_all_arms_have_them() -> None:
    judged = arms([0.1, 0.1, 0.1], [0.6, 0.7, 0.6], [0.7, 0.7, 0.7])
    judged += [run("team", 9, 0.0), run("oracle", 8, 0.9), run("restricted", 9, 0.3, status="running")]
    [found] = overall(judged)
    assert found.head["seeds"] == 3
    assert found.head["team_credit"] == pytest.approx(1.9 / 3)


def test_runs_of_shared_evidence_and_failed_scores_have_no_part() -> None:
    shared = [run("team", 0, 0.5, evidence="shared"), run("team", 1, None)]
    assert list(plays(shared)) == []
    assert compared(arms([0.1], [0.5], [])) == []


def test_a_team_is_named_by_what_differs_between_teams() -> None:
    same: dict[str, Any] = {"model_for": {}, "theory_of_mind": False, "max_requests": 2}
    judged = [run("team", seed, 0.5, **same) for seed in range(2)]
    assert {play.team for play in plays(judged)} == {"decentralised, size 3"}
    judged += [run("team", 2, 0.5, **{**same, "max_requests": 1})]
    assert {play.team for play in plays(judged)} == {f"decentralised, size 3, max requests {n}" for n in (1, 2)}


def test_each_split_task_and_team_has_a_row_and_each_finding_its_own() -> None:
    judged = arms([0.1, 0.2], [0.6, 0.7], [0.7, 0.8])
    judged += arms([0.5, 0.4], [0.6, 0.7], [0.7, 0.8], "0.5")
    judged += [run("team", seed, 0.3, organisation="hybrid") for seed in range(2)]
    found = compared(judged)
    places = [
        (each.head["split"], each.head["team"].partition(",")[0]) for each in found if each.head["finding"] == ALL
    ]
    assert sorted(places) == [(0.5, "decentralised"), (1.0, "decentralised"), (1.0, "hybrid")]
    assert {each.head["finding"] for each in found} == {ALL, *CREDITS}
    events = next(each for each in found if each.head["finding"] == "events" and each.head["split"] == 1.0)
    assert events.head["oracle_credit"] == pytest.approx(0.75)
    zero = next(each for each in found if each.head["finding"] == "n_sensors")
    assert zero.indices["team"] is None
    other = arms([0.1, 0.2], [0.6, 0.7], [0.7, 0.8], task="ecology")
    assert {each.head["task"] for each in overall(judged + other)} == {"anomaly", "ecology"}


def test_runs_of_equal_condition_and_seed_are_averaged() -> None:
    judged = [*arms([0.1, 0.1], [0.4, 0.4], [0.7, 0.7]), run("team", 0, 0.6)]
    [found] = overall(judged)
    assert found.head["team_credit"] == pytest.approx((0.5 + 0.4) / 2)


def test_a_figure_shows_each_arm_and_the_gain_at_each_split() -> None:
    judged = [*arms([0.1, 0.2], [0.5, 0.6], [0.7, 0.7]), *arms([0.6, 0.6], [0.6, 0.6], [0.6, 0.6], "0")]
    [drawing] = arm_figures(compared(judged))
    assert drawing.title == "anomaly, a:b: decentralised, size 3 against one agent"
    figure = drawing.draw()
    assert figure is not None
    accuracy, gain = figure.axes
    shown = {line.get_label(): [*line.get_ydata()] for line in accuracy.lines}  # type: ignore[misc]
    assert shown == {
        "one agent, all data": pytest.approx([0.6, 0.7]),
        "team": pytest.approx([0.6, 0.55]),
        "one agent, readings alone": pytest.approx([0.6, 0.15]),
    }
    assert [*gain.lines[0].get_ydata()] == pytest.approx([0.0, 0.4])  # type: ignore[misc]


def test_a_figure_of_one_split_shows_each_seed() -> None:
    [drawing] = arm_figures(compared(arms([0.1, 0.2], [0.5, 0.6], [0.7, 0.7])))
    figure = drawing.draw()
    assert figure is not None
    [ax] = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "one agent, readings alone", "team", "one agent, all data"
    ]  # fmt: skip
    assert [*ax.lines[2].get_xdata()] == pytest.approx([0.5, 0.6])  # type: ignore[misc]
    assert [text.get_text() for text in ax.texts] == ["0.15", "0.55", "0.70"]


def test_perfect_wins_tell_from_six_seeds_on_and_splits_are_adjusted_together() -> None:
    three, six = (overall(arms([0.0] * n, [1.0] * n, [1.0] * n)) for n in (3, 6))
    assert [each.verdict for each in (*three, *six)] == ["can't tell", "team is better"]
    two_splits = [*arms([0.0] * 6, [1.0] * 6, [1.0] * 6), *arms([0.0] * 6, [1.0] * 6, [1.0] * 6, "0.5")]
    assert [each.verdict for each in overall(two_splits)] == ["can't tell"] * 2, "each has half of the error"


def test_seats_kept_apart_have_an_index_over_the_seeds_that_they_have() -> None:
    judged = arms([0.1, 0.1, 0.1, 0.1], [0.7, 0.6, 0.7, 0.6], [0.7, 0.7, 0.7, 0.7])
    [without] = overall(judged)
    assert without.indices.get("mute") is None
    assert "mute_credit" not in necessity_table([without], "t", "T").rows[0]
    [beside] = overall([*judged, *(run("mute", seed, 0.1 + seed / 100) for seed in range(3)), run("mute", 9, 0.9)])
    mute = beside.indices["mute"]
    assert mute is not None
    assert mute.value == pytest.approx(0.01 / 0.6)
    assert beside.indices["team"] == without.indices["team"]
    [row] = necessity_table([beside], "t", "T").rows
    assert row["mute_credit"] == pytest.approx(0.11)
