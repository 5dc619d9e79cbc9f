"""Comparisons of runs: what is paired, what is said, and what it holds for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.records.run import RunRecord, Usage
from labmates.records.store import Store
from labmates.stats.figures import MARKERS
from labmates.workflows.analyses.compare import COMPARE, CONTRASTS
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.analyses.matching import Matched, factor_of, observed, varying
from labmates.workflows.protocol.analysis import Result, Runs, TooFewRunsError
from labmates.workflows.science.analyses.declared import ORGANISATIONS, TEAMWORK
from labmates.workflows.science.lab.condition import ScienceCondition

_numbers = count()


def run(seed: int, skill: float, *, dollars: float = 0.1, readable: float = 1.0, **condition: Any) -> RunRecord:
    """A run of a condition; without an organisation, of the pipeline."""
    given = {"task": "anomaly", "model": "scripted:diligent", "budget": "1", **condition}
    made = ScienceCondition.model_validate(given)
    accuracy = 0.2 + 0.8 * skill if readable else 0.0
    return RunRecord(
        f"run{next(_numbers)}", "science", made.key, seed, seed, made.model_dump(mode="json"), [given["model"]],
        status="completed", seconds=60.0, usage=Usage(input_tokens=round(10_000 * dollars)),
        metrics={"skill": skill if readable else -0.25, "accuracy": accuracy, "readable": readable},
        budget={"total": "1", "spent": str(dollars), "remaining": "0"},
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


def compare(store: Store, runs: Sequence[RunRecord], **params: Any) -> Result:
    return COMPARE.result(Runs.given(store, runs), CompareParams(**params))


NOISE = (0.002, 0.02, -0.01, 0.01, -0.02, 0.015)


def teams(gain: float, **condition: Any) -> list[RunRecord]:
    """Six data sets with a team and one agent, the team dearer."""
    return [
        each
        for seed, noise in enumerate(NOISE)
        for each in (
            run(seed, 0.5 + noise, **condition),
            run(seed, 0.5 + gain - noise, dollars=0.21, organisation="hybrid", **condition),
        )
    ]


def test_two_organisations_are_told_in_one_sentence_with_what_it_holds_for(store: Store) -> None:
    found = compare(store, teams(0.2), by=("organisation",))
    first, mixed, scope = found.verdict
    assert mixed == "Confounded, since these differ too: team_size."
    assert first.startswith("hybrid is better than pipeline by 0.19 [")
    assert first.endswith("] in skill, 6 data sets, and costs 2.1 times as much.")
    assert scope == (
        "This holds for new data sets of this task and this model; all results are readable, and the interval is for "
        "readable ones; losses too rare to show here are not covered; by the range of the outcome alone, the interval "
        "is [-0.48, +0.69]."
    )
    [primary, *others] = found.json_objects()
    assert (primary["outcome"], primary["role"], primary["difference_n"]) == ("skill", "primary", 6)
    assert "accuracy" not in {other["outcome"] for other in others}, "it is skill on another scale"
    assert {other["p"] for other in others if other["role"] == "cost"} == {None}


def test_conditions_that_share_data_sets_are_no_further_evidence(store: Store) -> None:
    once = compare(store, teams(0.2), by=("organisation",)).json_objects()[0]
    many = [each for visibility in ("full", "hidden") for each in teams(0.2, visibility=visibility)]
    twice = compare(store, many, by=("organisation",)).json_objects()[0]
    assert (twice["pairs"], twice["difference_n"]) == (12, 6)
    for name in ("difference", "difference_low", "difference_high", "p"):
        assert twice[name] == pytest.approx(once[name])


def test_only_what_is_equal_in_all_else_is_paired(store: Store) -> None:
    apart = [run(0, 0.5), run(1, 0.6, organisation="hybrid")]
    with pytest.raises(TooFewRunsError, match="the same seed and otherwise equal"):
        compare(store, apart, by=("organisation",))
    easy = [run(seed, 0.5, difficulty="easy") for seed in range(3)]
    mixed = [*easy, *teams(0.2)]
    found = compare(store, mixed, by=("organisation",))
    assert found.json_objects()[0]["difference_n"] == 6
    assert found.remarks["Runs"] == ["Without a partner (3): {}, {} and {}".format(*(each.id for each in easy))]


def test_what_a_level_lacks_is_left_out_and_what_differs_as_well_is_named() -> None:
    runs = [run(0, 0.5, organisation="solo", visibility="full"), run(0, 0.6, team_size=3, visibility="hidden")]
    everything = observed(runs, {})
    [factor] = [factor_of("organisation", everything)]
    match = Matched.of(factor, *factor.levels)
    assert match.mixed == ["visibility"]
    assert len(match.cells) == 1


def test_parameters_that_follow_from_others_are_no_factors_of_their_own() -> None:
    runs = [run(0, 0.5, organisation="solo"), run(0, 0.6, team_size=3), run(0, 0.6, team_size=3, visibility="hidden")]
    assert varying(observed(runs, {})) == ["organisation", "visibility"]


def test_small_differences_are_tied_and_few_runs_can_not_tell(store: Store) -> None:
    [tied, *_] = compare(store, teams(0.0), by=("organisation",), within=0.1).verdict
    assert tied.startswith(("pipeline and hybrid are tied within ±0.0", "hybrid and pipeline are tied within ±0.0"))
    wins = [each for seed in range(5) for each in (run(seed, 0.0), run(seed, 1.0, organisation="hybrid"))]
    [open_, *_] = compare(store, wins, by=("organisation",)).verdict
    assert open_.startswith("Can't tell hybrid from pipeline: +1.00 [")
    assert "5 data sets; 1 more data set like these would" in open_


def test_unreadable_reports_count_as_nothing_and_are_said(store: Store) -> None:
    runs = [
        each
        for seed in range(6)
        for each in (run(seed, 0.9), run(seed, 0.9, readable=float(seed > 0), organisation="hybrid"))
    ]
    found = compare(store, runs, by=("organisation",))
    assert "1 of 6 pairs have an unreadable result, which counts as 0" in found.verdict[-1]
    primary = found.json_objects()[0]
    assert primary["difference_method"] == "Gaffke, range only"
    assert primary["difference_low"] >= -1.25, "skill has a floor"


def test_the_best_of_three_and_those_that_can_not_be_told_from_it(store: Store) -> None:
    runs = teams(0.3)
    runs += [run(seed, 0.79 - noise / 2, dollars=0.5, organisation="centralised") for seed, noise in enumerate(NOISE)]
    runs += [run(9, 0.0, organisation="hybrid")]  # a seed that the others lack
    found = compare(store, runs, by=("organisation",))
    first, front, _, scope = found.verdict
    assert first.startswith("hybrid has the best skill (0.80), significantly better than pipeline (by 0.29)")
    assert first.endswith(", but not than centralised.")
    assert front == "On the front of skill and dollars: hybrid, pipeline."
    assert "simultaneous for 3 pairs" in scope
    assert [row["level"] for row in found.table("levels").rows] == ["hybrid", "centralised", "pipeline"]
    [drawing] = found.figures
    figure = drawing.draw()
    assert figure is not None
    points: dict[int, list[float]] = {}
    for line in figure.axes[0].lines:
        if line.get_marker() in MARKERS:
            points.setdefault(round(float(np.asarray(line.get_ydata())[0])), []).append(np.asarray(line.get_xdata())[0])
    rows = [row for row in found.json_objects() if row["role"] == "primary"]
    assert [fmean(points[place]) for place in range(3)] == [pytest.approx(row["difference"]) for row in rows]


def test_a_level_that_lost_a_run_is_compared_where_all_have_one(store: Store) -> None:
    """Organisations are equal, and the model that is better misses a data set of one of them."""
    runs = [
        run(seed, skill, model=model, organisation=organisation)
        for organisation in ("pipeline", "solo", "hybrid")
        for model, skill in (("scripted:diligent", 0.9), ("scripted:hasty", 0.1))
        for seed in range(4)
    ]
    lost = runs[8]
    runs[8] = replace(lost, metrics={"readable": 1.0})
    found = compare(store, runs, by=("organisation",))
    assert [row["mean"] for row in found.table("levels").rows] == [pytest.approx(0.4)] * 3
    without, others = found.remarks["Runs"]
    assert without == f"Without skill, and not counted (1): {lost.id}"
    assert others == f"Without a partner (2): {runs[0].id} and {runs[16].id}"
    assert "common to all" not in found.verdict[-1]
    headings = [column.heading for column in compare(store, runs, by=("model",)).table("compare").columns]
    assert headings[1:3] == ["first", "second"], "names of models would wrap each row"
    few = compare(store, [*runs[:8], *runs[10:12], *runs[14:]], by=("organisation",))
    assert "; fewer than 3 data sets are common to all, so means are over different ones" in few.verdict[-1]


def test_each_split_has_a_sentence_and_a_panel_of_one_figure(store: Store) -> None:
    runs = [each for split in ("split:0", "split:1") for each in teams(0.3 * (split == "split:1"), evidence=split)]
    runs += [
        run(seed, 0.5 + noise, evidence=split, organisation="solo")
        for split in ("split:0", "split:1")
        for seed, noise in enumerate(NOISE)
    ]
    found = ORGANISATIONS.result(Runs.given(store, runs), ORGANISATIONS.params())
    first, second = found.verdict
    assert first.startswith("With evidence split:0: pipeline and solo")
    assert "have the best skill (0.50)" in first
    assert second.startswith("With evidence split:1: hybrid has the best skill (0.80), significantly better than ")
    table = found.table("levels")
    assert [row["evidence"] for row in table.rows] == ["split:0"] * 3 + ["split:1"] * 3
    assert "simultaneous for 6 pairs" in table.notes[0]
    [drawing] = found.figures
    figure = drawing.draw()
    assert figure is not None
    assert [ax.get_title() for ax in figure.axes] == ["evidence split:0", "evidence split:1"]
    with pytest.raises(TooFewRunsError, match="have evidence shared; ask: labmates compare --by organisation"):
        ORGANISATIONS.result(Runs.given(store, teams(0.2)), ORGANISATIONS.params())
    with pytest.raises(UsageError, match="--each evidence: name the one parameter"):
        compare(store, runs, each="evidence")


def test_conditions_are_named_by_their_parameters(store: Store) -> None:
    runs = [*teams(0.2), run(7, 0.4, organisation="solo")]
    found = compare(store, runs, conditions=("team:organisation=hybrid", "other:organisation=pipeline"))
    assert found.verdict[0].startswith("team is better than other by")
    with pytest.raises(UsageError, match="matches 'task=anomaly' and"):
        compare(store, runs, conditions=("task=anomaly", "organisation=hybrid"))
    with pytest.raises(UsageError, match="NAME=VALUE"):
        compare(store, runs, conditions=("hybrid", "organisation=solo"))
    with pytest.raises(TooFewRunsError, match=r"no run matches 'organisation=hybird'; organisation: pipeline, hybrid$"):
        compare(store, teams(0.3), conditions=("organisation=pipeline", "organisation=hybird"))
    with pytest.raises(UsageError, match="colour"):
        compare(store, runs, by=("colour",))


def test_two_studies_are_compared_on_the_data_sets_of_both(store: Store) -> None:
    runs = [replace(each, study=each.condition["organisation"]) for each in teams(0.2)] + [run(7, 0.1)]
    runs += [replace(runs[0], id="played", kind="game", study="games")]
    named = compare(store, runs, conditions=("study=hybrid", "study=pipeline"))
    assert named.verdict[0].startswith("study=hybrid is better than study=pipeline by 0.19 [")
    assert named.verdict[1] == "Confounded, since these differ too: organisation, team_size."
    assert {row["difference_n"] for row in named.json_objects()} == {len(NOISE)}
    with pytest.raises(UsageError, match="unknown study 'nothing'"):
        compare(store, runs, conditions=("study=hybrid", "study=nothing"))


def test_runs_that_do_not_count_are_named(store: Store) -> None:
    failed = replace(run(8, 0.5), status="failed")
    first, *others = teams(0.2)
    invalid = replace(first, invalid="no usable decision")
    runs = [invalid, *others, failed]
    told = compare(store, runs, by=("organisation",)).remarks["Runs"]
    assert told == [
        f"Not ended, and not counted (1): {failed.id}",
        f"Invalid, and counted as they are (1): {invalid.id}",
    ]


def test_lost_runs_are_bounded_by_what_they_may_have_given(store: Store) -> None:
    runs = teams(0.2)
    whole = compare(store, runs, by=("organisation",)).json_objects()[0]
    lost = [replace(runs[1], status="failed", metrics={}), *runs[2:]]
    found = compare(store, [runs[0], *lost], by=("organisation",))
    row = found.json_objects()[0]
    assert row["pairs"] == len(NOISE) - 1
    assert "1 run has no result, assumed missing at random; by the range of the outcome alone," in found.verdict[-1]
    assert row["possible_low"] < whole["possible_low"]
    assert row["possible_high"] > whole["possible_high"]


def test_new_models_or_families_are_claimed_only_with_three(store: Store) -> None:
    runs = [
        each for model in ("scripted:a", "scripted:b", "scripted:c", "scripted:d") for each in teams(0.2, model=model)
    ]
    found = compare(store, runs, by=("organisation",), over=("models",))
    assert "in skill, 4 models" in found.verdict[0]
    assert found.verdict[-1].startswith("This holds for new data sets and models of this task;")
    few = compare(store, runs[:24], by=("organisation",), over=("models",))
    assert few.json_objects()[0]["difference_reason"] == "needs 3"
    assert "in skill, 2 models; an interval needs 3" in few.verdict[0]


def test_an_outcome_by_another_name_is_no_further_test(store: Store) -> None:
    runs = [
        replace(each, metrics={**each.metrics, "provenance": 0.5, "copied": each.metrics["skill"]})
        for each in teams(0.2)
    ]
    found = compare(store, runs, by=("organisation",), all=True).json_objects()
    assert [row["outcome"] for row in found if row["role"] != "cost"] == ["skill", "readable", "provenance"]


def test_the_figure_shows_every_pair(store: Store) -> None:
    [drawing] = compare(store, teams(0.2), by=("organisation",)).figures
    figure = drawing.draw()
    assert figure is not None
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert len(points) == 6


def continuations(origin: str, seed: int, gains: Sequence[float]) -> list[RunRecord]:
    """Continuations of a run with a change and without it."""
    return [
        replace(run(seed, 0.4 + gain * is_changed, budget="2" if is_changed else "1"), origin=f"{origin}@40#{number}")
        for number, gain in enumerate(gains, 1)
        for is_changed in (True, False)
    ]


def test_continuations_of_one_run_are_the_blocks_and_the_answer_is_for_this_run(store: Store) -> None:
    found = compare(store, continuations("a", 0, [0.2, 0.22, 0.18, 0.21, 0.2, 0.19]), by=("budget",))
    assert found.verdict[0].startswith("1 is worse than 2 by 0.20 [")
    assert "in skill, 6 continuations" in found.verdict[0]
    assert found.verdict[1].startswith("This holds for new continuations of this run; ")


def test_continuations_of_six_data_sets_are_averaged_and_the_answer_is_for_new_ones(store: Store) -> None:
    forks = [each for seed in range(6) for each in continuations(f"run{seed}", seed, [0.1, 0.2, 0.3 + seed / 50])]
    found = compare(store, forks, by=("budget",))
    assert found.json_objects()[0]["difference_n"] == 6
    assert found.verdict[1].startswith("This holds for new data sets of this task")


def test_forks_count_only_where_they_are_asked_for(store: Store) -> None:
    everything = [*teams(0.2), *continuations("a", 0, [0.3, 0.3, 0.3])]
    whole = compare(store, everything, by=("organisation",))
    assert whole.json_objects()[0]["difference_n"] == 6
    assert whole.remarks["Runs"] == ["Forks, and left out (6): compare them with --where origin=RUN, of a"]
    of_forks = compare(store, everything, by=("budget",), where=("origin=a",))
    assert of_forks.json_objects()[0]["difference_n"] == 3


def test_a_condition_may_have_a_value_with_a_colon(store: Store) -> None:
    models = {"scripted:hasty": 0.1, "scripted:diligent": 0.9}
    runs = [run(seed, skill, model=model) for seed in range(3) for model, skill in models.items()]
    found = compare(store, runs, conditions=("a:model=scripted:hasty", "model=scripted:diligent"))
    assert found.json_objects()[0]["first"] == "a"


@pytest.mark.parametrize("gain", [-0.2, 0.0, 0.2])
@pytest.mark.parametrize("preset", ["compare", "contrasts", "teamwork", "organisations"])
def test_a_sentence_its_table_and_its_figure_subtract_in_one_direction(store: Store, preset: str, gain: float) -> None:
    analysis = {each.name: each for each in (COMPARE, CONTRASTS, TEAMWORK, ORGANISATIONS)}[preset]
    runs = [
        run(
            seed,
            0.5 + (0.5 * noise + level if team else noise),
            organisation="hybrid" if team else "solo",
            evidence=evidence,
        )
        for seed, noise in enumerate(NOISE)
        for level, evidence in ((gain, "split:0"), (-gain, "split:1"))
        for team in (False, True)
    ]
    chosen = runs if preset == "organisations" else [each for each in runs if each.condition["evidence"] == "split:0"]
    found = analysis.result(Runs.given(store, chosen), analysis.params())
    primary = [row for row in found.json_objects() if row["role"] == "primary"]
    assert {row["second"] for row in primary} == {"one agent" if preset == "teamwork" else "solo"}
    rows = [row for table in found.tables for row in table.rows if row.get("role", "primary") == "primary"]
    shown = [row["difference"] for row in rows if "difference" in row]
    assert shown == pytest.approx([row["difference"] for row in primary])
    for sentence, row in zip(found.verdict, primary, strict=False):
        first, second = row["first"], row["second"]
        how = f"is {'better' if row['difference'] > 0 else 'worse'} than"
        assert (f"{first} {how} {second}" if gain else f"{first} and {second} are tied") in sentence


def test_of_many_levels_the_better_one_is_subtracted_everywhere(store: Store) -> None:
    levels = {"pipeline": 0.2, "solo": 0.5, "hybrid": 0.4}
    runs = [
        run(seed, mean + noise, organisation=name) for seed, noise in enumerate(NOISE) for name, mean in levels.items()
    ]
    found = compare(store, runs, by=("organisation",), all=True)
    primary = [row for row in found.json_objects() if row["role"] == "primary"]
    assert {(row["first"], row["second"]) for row in primary} == {
        ("pipeline", "solo"), ("hybrid", "solo"), ("pipeline", "hybrid")
    }  # fmt: skip
    assert all(row["difference"] < 0 for row in primary)
    of_levels = {row["level"]: row.get("difference") for row in found.table("levels").rows}
    assert of_levels == {"solo": None, **{r["first"]: r["difference"] for r in primary if r["second"] == "solo"}}
