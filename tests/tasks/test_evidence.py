"""Divided evidence: one part alone tells little, the keys of all restore the table, and the split is met."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from _pytest.mark import ParameterSet
from scipy.spatial import cKDTree

from benchmarks.evidence import Solver, arms, as_loaded
from labmates.errors import UsageError
from labmates.tasks.base import DIFFICULTIES, Dataset, Difficulty, Division, accuracy
from labmates.tasks.biomarker.records import NOT_DONE
from labmates.tasks.ecology.instruments import EcologyInstruments
from labmates.tasks.ecology.task import EcologyTask
from labmates.tasks.evidence import Part, closed_shares, closed_units, divide, instruments_of
from labmates.tasks.merging import merge_findings
from labmates.tasks.noise import random_for
from labmates.tasks.registry import get_task
from labmates.tasks.restoring import Keys
from labmates_author.tasks.cases import Case
from labmates_author.tasks.data_rules import instruments as instruments_rule
from tests.support.line_task import LineFindings, LineTask

NAMES = ("anomaly", "ecology", "biomarker", "geospatial")


def slow(*values: object) -> ParameterSet:
    """A task whose data take long to analyse, beside quicker ones in the same test."""
    return pytest.param(*values, marks=pytest.mark.slow("tests/tasks/test_evidence.py"))


@cache
def made(name: str, seed: int = 0, difficulty: Difficulty = "medium") -> Dataset[Any]:
    return get_task(name).generate(seed, difficulty)


@cache
def divided(name: str, split: float, seed: int = 0, difficulty: Difficulty = "medium") -> tuple[Part, ...]:
    return divide(get_task(name), seed, difficulty, split)


@cache
def loaded(name: str, split: float) -> tuple[tuple[pd.DataFrame, ...], tuple[Keys, ...]]:
    frames = tuple(as_loaded(part) for part in divided(name, split))
    declared = instruments_of(get_task(name))
    return frames, tuple(json.loads(json.dumps(declared.hand_over(frame))) for frame in frames)


def combined(name: str, split: float) -> pd.DataFrame:
    frames, keys = loaded(name, split)
    table = instruments_of(get_task(name)).combine(frames[0], keys[1:])
    assert table is not None
    return table


@pytest.mark.parametrize("name", NAMES)
def test_at_split_0_every_instrument_holds_the_unchanged_data_set(name: str) -> None:
    parts = divided(name, 0.0)
    assert len(parts) == 3
    assert {part.csv() for part in parts} == {made(name).csv()}
    assert {part.description for part in parts} == {made(name).description}


def test_another_seed_gives_other_parts() -> None:
    pairs = zip(divided("ecology", 1.0), divided("ecology", 1.0, 1), strict=True)
    assert all(mine.csv() != theirs.csv() for mine, theirs in pairs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_the_share_of_closed_credit_grows_unit_by_unit_up_to_the_split(name: str, difficulty: Difficulty) -> None:
    task, data = get_task(name), made(name, 0, difficulty)
    units = instruments_of(task).units(data)
    splits = (0, 0.25, 0.5, 0.75, 1)
    chosen = [closed_units(task, data, split, random_for(name, 0, difficulty, "evidence")) for split in splits]
    assert chosen[0] == ()
    assert set(chosen[-1]) == set(units)
    for fewer, more in pairwise(chosen):
        assert more[: len(fewer)] == fewer
    shares = closed_shares(task, data.truth, chosen[-1])
    assert shares == sorted(shares)
    assert [shares[len(units)] for units in chosen] == pytest.approx(splits, abs=0.23)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_handed_over_is_short_against_the_readings(name: str) -> None:
    parts, (_, keys) = divided(name, 1.0), loaded(name, 1.0)
    assert keys[0] == {}
    assert all(len(json.dumps(given)) < 5_000 for given in keys)
    assert sum(len(json.dumps(given)) for given in keys) < len(parts[0].csv()) / 40


@pytest.mark.parametrize("name", ["anomaly", "ecology", slow("biomarker"), slow("geospatial")])
def test_the_instruments_pass_the_rule_of_conformance(name: str) -> None:
    data = made(name)
    assert list(instruments_rule(Case(get_task(name), 0, "medium", data, data.csv()))) == []


@pytest.mark.parametrize("split", [0.5, 1.0])
def test_the_keys_restore_the_readings_of_sensors(split: float) -> None:
    table, original = combined("anomaly", split), made("anomaly").frame.drop_duplicates("sample")
    restored = table.drop_duplicates("sample").sort_values("sample")[made("anomaly").truth.sensors]
    error = np.abs(restored.to_numpy() - original[made("anomaly").truth.sensors].to_numpy())
    spread = original[made("anomaly").truth.sensors].diff().abs().median().to_numpy()
    assert np.nanmedian(error / spread) < 0.02
    assert np.isnan(error).mean() == original.isna().to_numpy()[:, 3:].mean()


@pytest.mark.parametrize("split", [0.5, 1.0])
def test_the_keys_restore_the_counts_of_species(split: float) -> None:
    def means(frame: pd.DataFrame) -> pd.Series:
        table = frame[frame["species"].isin(made("ecology").truth.species)]
        return table.groupby(["species", table["survey"] // 26])["count"].median()

    assert (means(combined("ecology", split)) / means(made("ecology").frame)).between(0.85, 1.15).all()


def test_the_keys_restore_arms_improvements_and_levels_of_patients() -> None:
    truth, table = made("biomarker").truth, combined("biomarker", 1.0)
    assert table["patient"].nunique() == truth.n_patients
    means = table.groupby(table["arm"].str.strip().str.lower())["improvement"].mean()
    original = made("biomarker").frame.drop_duplicates("patient").replace(NOT_DONE, np.nan)
    arms_ = original["arm"].str.strip().str.lower()
    assert means.to_dict() == pytest.approx(original.groupby(arms_)["improvement"].mean().to_dict(), abs=0.1)
    half = combined("biomarker", 0.5).set_index("patient")
    for marker in truth.prognostic_markers:
        mine, theirs = (
            pd.to_numeric(frame[marker.marker], errors="coerce") for frame in (half, original.set_index("patient"))
        )
        assert (mine / theirs).dropna().between(0.9, 1.1).mean() > 0.99


@pytest.mark.parametrize("split", [0.5, 1.0])
def test_the_keys_restore_places_and_covariates_of_samples(split: float) -> None:
    table, original = combined("geospatial", split), made("geospatial").frame
    ordered = np.sort(table[["easting_m", "northing_m"]].to_numpy(float), axis=1)
    known = np.sort(original[["easting_m", "northing_m"]].to_numpy(float), axis=1)
    assert cKDTree(known).query(ordered)[0].max() < 2
    assert cKDTree(ordered).query(known)[0].max() < 2
    for driver in made("geospatial").truth.covariates:
        assert table[driver.name].median() == pytest.approx(original[driver.name].median(), rel=0.02)


@pytest.mark.parametrize(
    ("name", "difficulty"),
    [("anomaly", "medium"), ("ecology", "medium"), slow("biomarker", "easy"), slow("geospatial", "easy")],
)
def test_at_split_1_a_team_that_shares_wins_and_no_one_else(name: str, difficulty: Difficulty) -> None:
    task, data = get_task(name), made(name, 3, difficulty)
    solver = Solver(task, data, difficulty)
    outcome = arms(task, divided(name, 1.0, 3, difficulty), solver)
    scores = {arm: solver.accuracy(outcome[arm]) for arm in ("prior", "restricted", "mute", "team", "oracle")}
    assert scores["restricted"] <= scores["prior"] + 0.05
    gain = scores["oracle"] - scores["restricted"]
    assert scores["team"] - scores["restricted"] >= 0.9 * gain > 0.2
    assert scores["mute"] - scores["restricted"] <= 0.1 * gain


@pytest.mark.parametrize(
    ("name", "difficulty"), [("anomaly", "medium"), ("ecology", "medium"), slow("biomarker", "easy")]
)
def test_at_split_0_a_team_ties_with_one_agent(name: str, difficulty: Difficulty) -> None:
    data = made(name, 3, difficulty)
    solver = Solver(get_task(name), data, difficulty)
    outcome = arms(get_task(name), divided(name, 0.0, 3, difficulty), solver)
    scores = {arm: solver.accuracy(outcome[arm]) for arm in ("restricted", "mute", "team", "oracle")}
    assert set(scores.values()) == {scores["oracle"]}


@pytest.mark.parametrize("name", NAMES)
def test_with_keys_missing_a_table_is_still_restored(name: str) -> None:
    frames, keys = loaded(name, 1.0)
    declared = instruments_of(get_task(name))
    for some in ((), keys[1:2], keys[2:]):
        table = declared.combine(frames[0], some)
        assert table is not None
        assert len(table) > 1_000
    assert declared.combine(frames[1]) is None


def test_what_is_known_of_open_units_earns_no_more_than_all_and_no_less_than_nothing() -> None:
    for name in NAMES:
        task, data = get_task(name), made(name)
        units = instruments_of(task).units(data)
        half = instruments_of(task).known(data.truth, units[::2])
        assert 0 < accuracy(task.score(half, data.truth)) < 1


def test_a_task_without_instruments_and_a_split_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'line' declares no instruments, so its evidence can't be split"):
        divide(LineTask(), 0, "medium", 0.5)
    with pytest.raises(UsageError, match=r"split must be between 0 and 1, not 1\.5"):
        divide(get_task("anomaly"), 0, "medium", 1.5)


class Telling(EcologyInstruments):
    """Leaves the names of species in the readings."""

    def divide(
        self, data: Dataset[Any], other: Dataset[Any], closed: Collection[str], rng: np.random.Generator
    ) -> Division:
        division = super().divide(data, other, closed, rng)
        readings = division.tables["readings"]["readings"].assign(note=data.truth.species[0])
        return Division(division.plain, {**division.tables, "readings": {"readings": readings}})


class Silent(EcologyInstruments):
    """Hands over nothing."""

    def hand_over(self, frame: pd.DataFrame) -> Keys:
        return {}

    def combine(self, frame: pd.DataFrame, received: Any = ()) -> pd.DataFrame | None:
        return super().combine(frame, received) if received and any(received) else None


class Verbose(EcologyInstruments):
    """Hands over the readings."""

    def hand_over(self, frame: pd.DataFrame) -> Keys:
        return {**super().hand_over(frame), "everything": frame.head(400).to_csv()}


class Fickle(EcologyInstruments):
    """Draws from other random numbers each time."""

    def divide(
        self, data: Dataset[Any], other: Dataset[Any], closed: Collection[str], rng: np.random.Generator
    ) -> Division:
        return super().divide(data, other, closed, np.random.default_rng())


class Two(EcologyInstruments):
    """Has two instruments."""

    about: ClassVar = {"readings": "", "guide": ""}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Telling, "reveals '"),
        (Silent, "restore no table"),
        (Verbose, "hands over more than 5000 characters"),
        (Fickle, "the same seed gave different parts"),
        (Two, "must describe at least 3 instruments"),
        (dict, "must be an instance of Instruments"),
    ],
)
def test_the_rule_names_what_is_wrong_with_instruments(broken: Callable[[], Any], message: str) -> None:
    task = type("Broken", (EcologyTask,), {"instruments": broken()})()
    data = made("ecology")
    problems = [str(getattr(one, "text", one)) for one in instruments_rule(Case(task, 0, "medium", data, data.csv()))]
    assert any(message in problem for problem in problems)


def test_a_private_seed_has_a_campaign_of_its_own_that_no_public_seed_gives() -> None:
    private = divide(get_task("ecology"), 2**127 + 1, "easy", 1.0)
    assert private[0].csv() != divide(get_task("ecology"), 2**31 - 1, "easy", 1.0)[0].csv()


def test_findings_of_silent_researchers_are_merged_field_by_field() -> None:
    findings = get_task("anomaly").findings
    event = {"start": 100, "end": 140, "sensors": ["TT101"], "kind": "collective"}
    stated = [
        findings.model_validate({"n_point": 9, "most_affected_sensor": "TT101", "events": []}),
        findings.model_validate({"n_point": 4, "most_affected_sensor": "PT200", "events": [event]}),
        findings.model_validate({"most_affected_sensor": "PT200", "events": [event | {"start": 101}]}),
    ]
    merged = merge_findings(stated)
    assert merged.n_point in (4, 9)
    assert merged.most_affected_sensor == "PT200"
    assert merged.events == stated[1].events
    assert merged.n_sensors is None
    assert merge_findings(stated[::-1]) == merged


def test_merging_two_researchers_favours_neither_order_nor_size() -> None:
    rng = random.Random(3)
    pairs = [(rng.random(), rng.random()) for _ in range(400)]
    merged = [merge_findings([LineFindings(slope=one), LineFindings(slope=other)]).slope for one, other in pairs]
    assert 160 < sum(slope == min(pair) for slope, pair in zip(merged, pairs, strict=True)) < 240
    assert 160 < sum(slope == pair[0] for slope, pair in zip(merged, pairs, strict=True)) < 240
    assert merged == [merge_findings([LineFindings(slope=b), LineFindings(slope=a)]).slope for a, b in pairs]


def test_one_researcher_alone_states_what_the_merger_states() -> None:
    assert merge_findings([LineFindings(slope=2.5)]) == LineFindings(slope=2.5)
