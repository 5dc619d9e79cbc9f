"""The generators of our own tasks: what the data look like, and that nothing of the truth is in them."""

from __future__ import annotations

import hashlib
import io
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from labmates.errors import UsageError
from labmates.tasks.anomaly.data import NO_READING, SAMPLES
from labmates.tasks.anomaly.findings import AnomalyTruth
from labmates.tasks.base import DIFFICULTIES, Dataset, Difficulty
from labmates.tasks.data_errors import blank, repeat_rows, respell, slip_decimals, swap_letters
from labmates.tasks.ecology.data import LEVELS, draw_community
from labmates.tasks.ecology.findings import EcologyTruth
from labmates.tasks.noise import random_for, red_noise
from labmates.tasks.registry import get_task

NAMES = ("ecology", "anomaly", "biomarker", "geospatial")


@cache
def made(name: str, seed: int = 0, difficulty: Difficulty = "medium") -> Dataset[Any]:
    return get_task(name).generate(seed, difficulty)


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("ecology", "f1a2910ee565d70259cf823a1f09d1be3fc8075f30d00be3446df5ecd0df5173"),
        ("anomaly", "db0df52a700cce0173f8dfed12c6651434d1b9f4fe4594c061994b108ee6ad1b"),
        ("biomarker", "4dd89a8c46bb465b7dc77485eaff21a13cd04fb55e2645c14ee58b1aeac59278"),
        ("geospatial", "0e6a28da2d5cb778c4508cf74b240d1193c15bd11cef06899b1970c06bb10209"),
    ],
)
def test_the_bytes_of_a_seed_are_pinned_on_every_platform(name: str, digest: str) -> None:
    """If this fails on purpose, the data changed: raise the task's version together with the digest."""
    assert hashlib.sha256(made(name).csv()).hexdigest() == digest


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_difficulty_is_a_usage_error_that_names_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"unknown difficulty 'mediun'.*Did you mean 'medium'"):
        get_task(name).generate(0, "mediun")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_some_thousand_rows_with_missing_and_repeated_ones(name: str, difficulty: Difficulty) -> None:
    frame = made(name, 0, difficulty).frame
    assert 2_000 <= len(frame) <= 10_000
    assert frame.duplicated().any()
    assert frame.isna().to_numpy().any()


@pytest.mark.parametrize("name", NAMES)
def test_a_csv_file_gives_back_the_same_table(name: str) -> None:
    data = made(name)
    back = pd.read_csv(io.BytesIO(data.csv()))
    pd.testing.assert_frame_equal(back, data.frame, check_dtype=False)
    assert back.to_csv(index=False, lineterminator="\n").encode() == data.csv()


@pytest.mark.parametrize("name", NAMES)
def test_dirt_grows_with_the_difficulty(name: str) -> None:
    shares = [float(made(name, 0, difficulty).frame.isna().to_numpy().mean()) for difficulty in DIFFICULTIES]
    repeats = [float(made(name, 0, difficulty).frame.duplicated().mean()) for difficulty in DIFFICULTIES]
    assert shares == sorted(shares)
    assert repeats == sorted(repeats)


def test_ecology_names_come_in_several_spellings_of_the_true_species() -> None:
    data = made("ecology", 0, "hard")
    truth: EcologyTruth = data.truth
    written = data.frame["species"].value_counts()
    assert set(truth.species) < set(written.index)
    assert len(written) > 2 * len(truth.species)
    assert written[truth.species].sum() > 0.8 * len(data.frame)


def test_ecology_counts_have_decimal_slips_and_temperatures_two_units() -> None:
    frame = made("ecology", 0, "medium").frame
    typical = frame.groupby("species")["count"].transform("median")
    assert (frame["count"] > 6 * typical).any()
    assert (frame["temperature"] > 45).any()
    assert frame["temperature"].between(-15, 35).mean() > 0.7


@pytest.mark.parametrize("seed", range(5))
def test_ecology_communities_hold_predation_and_competition_and_are_stable(seed: int) -> None:
    for difficulty, level in LEVELS.items():
        effects = draw_community(level, random_for("ecology", seed, difficulty, "community")).effects
        between = np.sign(effects - np.diag(np.diag(effects)))
        assert np.any((between > 0) & (between.T < 0))
        assert np.any((between < 0) & (between.T < 0))
        assert np.abs(np.eye(len(effects)) + effects).sum(axis=1).max() < 1


@pytest.mark.parametrize("seed", range(3))
def test_ecology_truth_speaks_of_its_own_species_only(seed: int) -> None:
    truth: EcologyTruth = made("ecology", seed).truth
    named = {one.source for one in truth.interactions} | {one.target for one in truth.interactions}
    changed = {*truth.declining_species, *truth.increasing_species, *truth.warmth_gains, *truth.warmth_loses}
    assert named | changed <= set(truth.species)
    assert [one.species for one in truth.forecast] == truth.species
    assert not set(truth.declining_species) & set(truth.increasing_species)
    assert all(one.source != one.target for one in truth.interactions)
    assert truth.shift_surveys
    assert truth.declining_species
    assert truth.increasing_species


def test_the_forecast_is_what_the_last_regime_looks_like_on_average() -> None:
    """Counts after the last shift of an easy data set must lie around the forecast, which no count was used for."""
    data = made("ecology", 0, "easy")
    truth: EcologyTruth = data.truth
    late = data.frame[data.frame["survey"] > truth.shift_surveys[-1] + 10]
    means = late.groupby("species")["count"].mean()
    for one in truth.forecast:
        assert means[one.species] == pytest.approx(one.abundance, rel=0.35)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_anomaly_events_are_apart_in_range_and_of_all_three_kinds(seed: int, difficulty: Difficulty) -> None:
    truth: AnomalyTruth = made("anomaly", seed, difficulty).truth
    assert 8 <= len(truth.sensors) <= 12
    assert len(set(truth.sensors)) == len(truth.sensors)
    assert {event.kind for event in truth.events} == {"point", "contextual", "collective"}
    assert all(0 <= event.start <= event.end < SAMPLES for event in truth.events)
    assert all(a.end + 12 < b.start for a, b in zip(truth.events, truth.events[1:], strict=False))
    assert all(len(event.sensors) >= 2 for event in truth.events if event.kind == "collective")
    assert 1 <= len(truth.drifting_sensors) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_every_point_anomaly_was_logged(seed: int) -> None:
    data = made("anomaly", seed, "hard")
    log = data.frame.drop_duplicates("sample").set_index("sample")
    for event in data.truth.events:
        if event.kind == "point":
            value = log.loc[event.start, event.sensors[0]]
            assert np.isfinite(value)
            assert value != NO_READING


def test_easy_point_anomalies_stand_out_from_their_neighbours() -> None:
    data = made("anomaly", 0, "easy")
    log = data.frame.drop_duplicates("sample").set_index("sample").replace(NO_READING, np.nan)
    for event in data.truth.events:
        if event.kind == "point":
            column = log[event.sensors[0]]
            step = (column - column.rolling(9, center=True, min_periods=1).median()).abs()
            assert step[event.start] > 6 * step.median()


def test_a_unit_change_scales_a_sensor_and_stuck_stretches_repeat_a_value() -> None:
    frame = made("anomaly", 0, "hard").frame
    sensors = frame.columns[3:]
    readings = frame[sensors].replace(NO_READING, np.nan)
    ratio = readings.iloc[-300:].median() / readings.iloc[:300].median()
    assert ((ratio > 1.3) | (ratio < 0.7)).any()
    assert any(readings[tag].diff().eq(0).rolling(8).sum().eq(8).any() for tag in sensors)


def test_difficulties_and_tasks_of_the_same_seed_share_no_random_numbers() -> None:
    one = random_for("ecology", 0, "easy", "survey").random(4).tolist()
    assert one == random_for("ecology", 0, "easy", "survey").random(4).tolist()
    others = [("anomaly", 0, "easy", "survey"), ("ecology", 1, "easy", "survey"), ("ecology", 0, "hard", "survey")]
    assert all(one != random_for(*other).random(4).tolist() for other in others)


def test_red_noise_has_unit_spread_and_the_stated_memory() -> None:
    noise = red_noise(np.random.default_rng(0).standard_normal((20_000, 2)), 0.8)
    assert noise.std() == pytest.approx(1, abs=0.05)
    assert np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1] == pytest.approx(0.8, abs=0.02)


def test_dirt_changes_about_the_share_it_is_given_and_leaves_its_input_alone() -> None:
    rng = np.random.default_rng(1)
    clean = np.full(10_000, 50.0)
    assert np.isnan(blank(clean, 0.1, rng)).mean() == pytest.approx(0.1, abs=0.02)
    assert (blank(clean, 0.1, rng, mark=-1.0) == -1).mean() == pytest.approx(0.1, abs=0.02)
    assert set(slip_decimals(clean, 0.5, rng)) == {5.0, 50.0, 500.0}
    assert np.mean([name == "AB" for name in respell(["ab"] * 5000, 0.2, [str.upper], rng)]) == pytest.approx(
        0.2, abs=0.03
    )
    assert (clean == 50).all()


def test_swapped_letters_keep_the_length_and_the_letters() -> None:
    assert swap_letters("Calvora lenta") == "Calvora letna"


def test_repeated_rows_are_copies_and_originals_keep_their_order() -> None:
    frame = pd.DataFrame({"x": range(1000)})
    more = repeat_rows(frame, 0.1, np.random.default_rng(2))
    assert 1050 < len(more) < 1150
    assert more["x"].drop_duplicates().tolist() == list(range(1000))
    assert list(more.index) == list(range(len(more)))
