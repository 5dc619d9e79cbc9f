"""Results by condition: what differs is told, nothing is mixed that differs, and means have intervals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from labmates.records.run import RunRecord, RunStatus, Usage
from labmates.reports.results import (
    by_model,
    cells,
    equal_parameters,
    parameters,
    results_plot,
    results_table,
    varying,
)
from labmates.reports.runs import usage_table
from labmates.stats.domains import Domain
from labmates.workflows.protocol.experiment import EXPERIMENTS


def run(number: int, value: float | None, status: RunStatus = "completed", **condition: Any) -> RunRecord:
    settings = {"model": "m:a", "prices": {"default": 1}, **condition}
    metrics = {} if value is None else {"score": value}
    key = str(sorted((name, str(one)) for name, one in settings.items()))
    return RunRecord(f"r{number}", "game", key, number, number, settings, [settings["model"]], status, metrics=metrics)


def test_conditions_are_told_by_what_differs_and_does_not_follow_from_it() -> None:
    rules = {"a": {"pool": 1}, "b": {"pool": 2}}
    runs = [run(0, 1, game=game, rules=rules[game], terms={"order": order}) for game in "ab" for order in (1, 3)]
    assert varying(runs) == ["game", "terms.order"]
    assert [cell.label for cell in cells(runs, ["score"])] == [
        "game a, order 1", "game a, order 3", "game b, order 1", "game b, order 3"
    ]  # fmt: skip
    assert varying([run(0, 1, game="a"), run(1, 1, game="a", model="m:b")]) == []


def test_no_more_than_all_replies_have_failed() -> None:
    dying = replace(run(0, 1), usage=Usage(llm_calls=1, failed_replies=3))  # a program on a seat calls no model
    steady = replace(run(1, 1), usage=Usage(llm_calls=4, failed_replies=1))
    [row] = usage_table([dying, steady]).rows
    assert row["failed_reply_share"] == 4 / 7


def test_means_have_intervals_over_runs_that_have_ended() -> None:
    runs = [run(n, float(n)) for n in range(3)] + [run(3, None), run(4, 9.0, "failed")]
    [cell] = cells(runs, ["score"])
    mean = cell.means["score"]
    assert (mean.value, mean.n, cell.runs) == (1.0, 3, 4)
    assert (mean.low, mean.high) == pytest.approx((1 - 2.8568, 1 + 2.8568), abs=1e-3)
    table = results_table("t", "T", [cell], ["score"])
    assert table.rows[0]["score_n"] == 3
    assert any("fewer data sets" in note for note in table.notes)


def test_readable_runs_alone_tell_nothing_of_what_an_unreadable_one_takes_away() -> None:
    runs = [
        replace(run(n, None), kind="science", metrics={"accuracy": value, "readable": float(value > 0)})
        for n, value in enumerate((0.91, 0.9, 0.89, 0.92, 0.88, 0.0))
    ]
    [all_read], [one_not] = (cells(some, ["accuracy", "readable"]) for some in (runs[:5], runs))
    assert all_read.means["accuracy"].low == pytest.approx(0.0125**0.2 * 0.9, abs=0.02)
    assert all_read.means["accuracy"].ends()[1] < 0.94
    assert one_not.means["accuracy"].value == pytest.approx(0.75)
    assert one_not.means["accuracy"].method.startswith("share of usable results × mean (t")


def test_runs_with_special_models_stand_apart() -> None:
    runs = [run(0, 1.0), run(1, 2.0, model_for={"writing": "m:b"})]
    assert [cell.models for cell in by_model(runs, ["score"])] == ["m:a", "m:a (writing: m:b)"]


def test_metrics_that_are_equal_in_all_rows_are_a_note() -> None:
    runs = [replace(run(n, n / 10, size=n % 2), metrics={"score": n / 10, "failed_rate": 0.0}) for n in range(4)]
    table = results_table("t", "T", cells(runs, ["score", "failed_rate"]), ["score", "failed_rate"])
    assert [column.key for column in table.columns] == ["models", "size", "runs", "score"]
    assert "Equal in all rows: failed rate 0.000." in table.notes
    assert [row["failed_rate"] for row in table.rows] == [0.0, 0.0]
    assert results_plot(cells(runs, ["failed_rate"]), "failed_rate", "T") == ""
    alone = results_table("t", "T", cells(runs[:1], ["failed_rate"]), ["failed_rate"])
    assert "failed_rate" in [column.key for column in alone.columns]


def test_every_condition_has_its_place_in_the_drawing_and_models_their_colours() -> None:
    runs = [run(n, n / 10, size=n % 4, model=model) for n in range(16) for model in ("m:a", "m:b<i>")]
    drawn = results_plot(cells(runs, ["score"]), "score", "T")
    for size in range(4):
        assert f">size {size}</text>" in drawn
    assert drawn.count("<circle") == 8
    assert "m:b&lt;i&gt;</li>" in drawn
    assert "<i>" not in drawn
    assert results_plot(cells(runs[:1], ["score"]), "score", "T") == ""
    many = [run(n, 1.0, size=n) for n in range(60)]
    assert results_plot(cells(many, ["score"]), "score", "T") == ""


def test_one_agent_alone_is_an_organisation_by_name() -> None:
    runs = [replace(each, kind="science") for each in (run(0, 1.0), run(1, 1.0, solo=True))]
    assert varying(runs) == ["organisation"]
    assert [parameters(each, ["organisation"])["organisation"] for each in runs] == ["pipeline", "solo"]


def test_parameters_without_a_value_are_not_among_the_equal_ones() -> None:
    runs = [run(n, 1.0, budget="1", noise=0.0, temperature=None, task="ab"[n]) for n in range(2)]
    assert equal_parameters(runs) == {"budget": "1", "noise": "0"}


def test_a_wide_interval_does_not_squeeze_the_means_of_a_drawing() -> None:
    wide = [run(n, value, size=n // 2) for n, value in enumerate((0.1, 0.9, 0.45, 0.55))]
    drawn = results_plot(cells(wide, ["score"]), "score", "T")
    bars = [tuple(map(float, ends)) for ends in re.findall(r"M([\d.]+) [\d.]+H([\d.]+)\" class=\"line", drawn)]
    assert len(bars) == 2
    assert all(14 <= left < right <= 706 for left, right in bars)
    runs = [run(n, min(1.0, 0.999 + n / 1000), size=n // 2) for n in range(4)]
    kept = results_plot(cells(runs, ["score"]), "score", "T", Domain(0.0, 1.0))
    assert max(map(float, re.findall(r"<text x=[^>]*middle\">([\d.]+)<", kept))) <= 1.0


def test_the_primary_outcome_of_each_experiment_is_its_first_headline() -> None:
    kinds = [EXPERIMENTS.get(name) for name in EXPERIMENTS.names()]
    assert {kind.name: kind.headline[0] for kind in kinds} == {kind.name: kind.primary for kind in kinds}
