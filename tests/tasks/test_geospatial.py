"""The geospatial task: fields have the stated covariance, the table has the stated habits, the score its tolerances."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from labmates.tasks.base import DIFFICULTIES, Credit, Dataset, Difficulty, accuracy
from labmates.tasks.geospatial.data import APART, HEIGHT, INSIDE, LEVELS, SPREAD, WIDTH, Ground, draw_ground
from labmates.tasks.geospatial.fields import LOW, Continuity, predicted, random_field
from labmates.tasks.geospatial.findings import Driver, GeospatialFindings, GeospatialTruth, Spot
from labmates.tasks.geospatial.soil import LEAST_STEP, NO_DATA, Soil, draw_sites, draw_soil
from labmates.tasks.geospatial.task import GeospatialTask
from labmates.tasks.noise import Floats, random_for

TASK = GeospatialTask()
SEEDS = range(2)


@cache
def made(seed: int = 0, difficulty: Difficulty = "medium") -> Dataset[GeospatialTruth]:
    return TASK.generate(seed, difficulty)


@cache
def drawn(seed: int = 0, difficulty: Difficulty = "medium") -> tuple[Ground, Soil]:
    """Return the ground and soil behind the data set of a seed."""
    level = LEVELS[difficulty]
    ground = draw_ground(level, random_for("geospatial", seed, difficulty, "ground"))
    places = draw_sites(ground, level, random_for("geospatial", seed, difficulty, "sites"))
    return ground, draw_soil(ground, level, places, random_for("geospatial", seed, difficulty, "soil"))


def unexplained(ground: Ground, soil: Soil) -> Floats:
    """Return S + e: the log grade without covariates, rock and hot spots."""
    trend = soil.standard @ ground.effects + ground.rock_effects[soil.rock]
    bumps = [
        one.peak * 0.5 ** (((soil.places - [one.east, one.north]) ** 2).sum(axis=1) / one.radius**2)
        for one in ground.hot_spots
    ]
    left: Floats = soil.log_grade - trend - sum(bumps)
    return np.asarray(left - left.mean())


def in_order(frame: pd.DataFrame) -> Floats:
    """Return the places of the rows with exchanged coordinates put right, shape (n, 2)."""
    places = frame[["easting_m", "northing_m"]].to_numpy(float)
    return np.sort(places, axis=1)  # eastings are smaller than northings


def credits(truth: GeospatialTruth, **stated: Any) -> dict[str, Credit]:
    return {credit.finding: credit for credit in TASK.score(GeospatialFindings(**stated), truth)}


@given(
    range_m=st.floats(100, 5_000),
    azimuth=st.floats(0, 180),
    ratio=st.floats(1, 5),
    smoothness=st.sampled_from([0.5, 1.5]),
    way=st.floats(0, 360),
    far=st.floats(1, 4_000),
)
def test_correlation_is_low_at_the_range_symmetric_and_falls_with_distance(
    range_m: float, azimuth: float, ratio: float, smoothness: float, way: float, far: float
) -> None:
    shape = Continuity(range_m, azimuth, ratio, smoothness)
    for angle, reach in ((azimuth, range_m), (azimuth + 90, range_m / ratio)):
        step = reach * np.array([math.sin(math.radians(angle)), math.cos(math.radians(angle))])
        assert float(shape.correlation(step)) == pytest.approx(LOW, abs=1e-5)
    step = far * np.array([math.sin(math.radians(way)), math.cos(math.radians(way))])
    here, there, further = (float(shape.correlation(x)) for x in (step, -step, 1.1 * step))
    assert float(shape.correlation(0 * step)) == 1.0
    assert 0 <= further <= here <= 1
    assert here == pytest.approx(there)


@pytest.mark.parametrize("smoothness", [0.5, 1.5])
@pytest.mark.parametrize(("along", "share"), [(True, 0.1), (True, 0.4), (False, 0.1), (False, 0.4)])
def test_fields_have_the_covariance_that_they_are_drawn_from(smoothness: float, along: bool, share: float) -> None:
    shape = Continuity(1_000, 30, 2, smoothness)
    angle = math.radians(30 if along else 120)
    step = share * 1_000 * np.array([math.sin(angle), math.cos(angle)])
    base = np.random.default_rng(0).uniform(0, 200_000, size=(4_000, 2))
    products = []
    for seed in range(3):
        field = random_field(np.concatenate([base, base + step]), shape, 256, np.random.default_rng(seed))
        assert field.std() == pytest.approx(1, abs=0.05)
        products.append((field[:4_000] * field[4_000:]).mean())
    assert np.mean(products) == pytest.approx(float(shape.correlation(step)), abs=0.04)


def test_predictions_use_no_sample_of_their_own_fold_and_get_worse_with_distance() -> None:
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 6_000, size=(600, 2))
    shape, at = Continuity(1_500, 45, 1.5, 0.5), np.arange(600)
    values = random_field(places, shape, 256, rng)
    folds, halves = rng.integers(10, size=600), (places[:, 0] > 3_000).astype(np.int64)
    near, far = (((values - predicted(places, values, fold, shape, 0.1, at)) ** 2).mean() for fold in (folds, halves))
    assert near < 0.5 * far
    changed = np.where(folds == 4, 99.0, values)
    own = np.flatnonzero(folds == 4)
    assert (
        predicted(places, values, folds, shape, 0.1, own) == predicted(places, changed, folds, shape, 0.1, own)
    ).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_the_ground_is_as_the_level_says(seed: int, difficulty: Difficulty) -> None:
    ground, level = drawn(seed, difficulty)[0], LEVELS[difficulty]
    strong = ground.effects[ground.effects != 0]
    assert 10 <= len(ground.covariates) <= 12
    assert 3 <= len(strong) <= 4
    assert ((np.abs(strong) >= level.effect[0]) & (np.abs(strong) <= level.effect[1])).all()
    assert level.nugget[0] <= ground.nugget <= level.nugget[1]
    assert level.ratio[0] <= ground.continuity.ratio <= level.ratio[1]
    second, richest = np.sort(ground.rock_effects)[-2:]
    assert richest - second >= level.rock[0]
    assert 3 <= len(ground.hot_spots) <= 5
    for one in ground.hot_spots:
        assert level.peak[0] <= one.peak <= level.peak[1]
        assert INSIDE <= one.east <= WIDTH - INSIDE
        assert INSIDE <= one.north <= HEIGHT - INSIDE
    for a, b in itertools.combinations(ground.hot_spots, 2):
        assert math.hypot(a.east - b.east, a.north - b.north) >= APART


def test_harder_levels_have_weaker_effects_and_more_nugget() -> None:
    for harder, easier in itertools.pairwise(reversed([LEVELS[name] for name in DIFFICULTIES])):
        assert harder.effect[1] < easier.effect[0]
        assert harder.peak[1] < easier.peak[0]
        assert harder.rock[1] < easier.rock[0]
        assert harder.nugget[0] > easier.nugget[0]
        assert harder.ratio[0] < easier.ratio[0]
        assert harder.line_step > easier.line_step
        assert harder.shared > easier.shared


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_sites_are_apart_inside_the_area_and_every_hot_spot_was_sampled(seed: int, difficulty: Difficulty) -> None:
    ground, soil = drawn(seed, difficulty)
    places = soil.places
    assert ((places >= 0) & (places <= [WIDTH, HEIGHT])).all()
    assert (places == np.round(places)).all()
    assert not cKDTree(places).query_pairs(LEAST_STEP - 0.5, p=np.inf)
    for one in ground.hot_spots:
        assert (np.hypot(*(places - [one.east, one.north]).T) < one.radius).sum() >= 3


def test_the_order_of_the_work_does_not_tell_which_grids_lie_on_hot_spots() -> None:
    first = []
    for seed in range(12):
        ground = draw_ground(LEVELS["medium"], random_for("geospatial", seed, "medium", "ground"))
        places = draw_sites(ground, LEVELS["medium"], random_for("geospatial", seed, "medium", "sites"))
        tree = cKDTree(places)
        in_grid = tree.query_ball_point(places, 110, return_length=True) > 9
        spots = np.array([[one.east, one.north] for one in ground.hot_spots])
        on_spot = cKDTree(spots).query(places)[0] < 500
        first.append(np.median(np.flatnonzero(in_grid & on_spot)) < np.median(np.flatnonzero(in_grid & ~on_spot)))
    assert 3 <= sum(first) <= 9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_variance_and_correlation_of_the_unexplained_part_are_as_the_truth_says(
    seed: int, difficulty: Difficulty
) -> None:
    ground, soil = drawn(seed, difficulty)
    left = unexplained(ground, soil)
    assert left.std() == pytest.approx(SPREAD, rel=0.05)
    assert soil.local.var() == pytest.approx(ground.nugget * SPREAD**2, rel=0.1)
    # Half the mean square of the differences of close samples: what the variogram says there.
    pairs = cKDTree(soil.places).query_pairs(120, output_type="ndarray")
    first, second = pairs[:, 0], pairs[:, 1]
    expected = 1 - (1 - ground.nugget) * ground.continuity.correlation(soil.places[first] - soil.places[second]).mean()
    found = ((left[first] - left[second]) ** 2).mean() / 2 / SPREAD**2
    assert found == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_random_folds_flatter_and_blocks_leave_the_spatial_model_a_lead(seed: int, difficulty: Difficulty) -> None:
    truth = made(seed, difficulty).truth
    assert 0 < truth.r2_covariates_cv < truth.r2_block_cv < truth.r2_random_cv < 1
    assert truth.r2_random_cv - truth.r2_block_cv > 0.03


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_a_careful_reader_of_the_table_counts_the_true_sites(seed: int, difficulty: Difficulty) -> None:
    data = made(seed, difficulty)
    places = np.unique(in_order(data.frame), axis=0)
    second = {pair[1] for pair in cKDTree(places).query_pairs(15)}
    assert len(places) - len(second) == data.truth.n_sites
    assert (data.frame["easting_m"] > data.frame["northing_m"]).any()


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_second_samples_are_marked_and_tell_the_nugget(difficulty: Difficulty) -> None:
    differences: list[float] = []
    shares: list[float] = []
    for seed in SEEDS:
        data = made(seed, difficulty)
        frame = data.frame.drop_duplicates().reset_index(drop=True)
        second = np.flatnonzero(frame["sample_type"].str.strip().str.lower().str.startswith("dup"))
        places, grades = in_order(frame), frame["grade_ppm"].to_numpy()
        for row in second:
            first = row - 1 if np.hypot(*(places[row] - places[row - 1])) < 15 else None
            if first is not None and min(grades[row], grades[first]) > 1:
                change = abs(math.log(grades[row] / grades[first]))
                differences += [change / (SPREAD * math.sqrt(2 * data.truth.nugget_share))] if change < 2.1 else []
        shares.append(len(second) / data.truth.n_sites)
    assert np.mean(shares) == pytest.approx(LEVELS[difficulty].duplicates, rel=0.3)
    assert np.std(differences) == pytest.approx(0.6, abs=0.12)  # of absolute values of a standard normal


def test_grades_come_in_parts_per_billion_for_whole_batches_and_negative_near_the_limit() -> None:
    frame = made(1, "hard").frame
    by_batch = frame["grade_ppm"].abs().groupby(frame["batch"]).median()
    assert (by_batch > by_batch.median() * 100).sum() == LEVELS["hard"].ppb_batches
    ppm = frame[frame["batch"].map(by_batch) < 1_000]
    limits = ppm.loc[ppm["grade_ppm"] < 0].groupby("lab")["grade_ppm"].unique()
    assert all(len(values) == 1 for values in limits)
    assert sorted(-values[0] for values in limits)[1] == 2 * sorted(-values[0] for values in limits)[0]
    for lab, values in limits.items():
        positive = ppm.loc[(ppm["lab"] == lab) & (ppm["grade_ppm"] > 0), "grade_ppm"]
        assert positive.min() >= -values[0]


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_heights_are_in_feet_for_as_many_crews_as_the_level_says(difficulty: Difficulty) -> None:
    frame = made(0, difficulty).frame
    by_crew = frame.groupby("crew")["elevation_m"].median()
    assert (by_crew > 2 * by_crew.min()).sum() == LEVELS[difficulty].feet_crews


def test_only_what_was_read_from_grids_has_holes() -> None:
    ground, frame = drawn(0, "hard")[0], made(0, "hard").frame
    for one in ground.covariates:
        assert (frame[one.column] == NO_DATA).any() == one.gridded
        usual = frame[one.column][frame[one.column] != NO_DATA]
        assert usual.isna().mean() == pytest.approx(LEVELS["hard"].missing, abs=0.02)
        assert (usual.dropna() > 0).all() or one.column == "gravity_mgal"


def test_the_decoys_look_as_if_they_mattered() -> None:
    """Ordinary least squares, which takes neighbours for independent, calls most decoys significant."""
    flagged: list[bool] = []
    for seed in range(4):
        ground, soil = drawn(seed, "easy")
        x = np.column_stack([soil.standard, np.eye(len(ground.rocks))[soil.rock]])
        beta, rest, *_ = np.linalg.lstsq(x, soil.log_grade, rcond=None)
        error = np.sqrt(rest / (len(x) - x.shape[1]) * np.diag(np.linalg.inv(x.T @ x)))
        t = (beta / error)[: len(ground.effects)]
        assert (np.sign(t) == np.sign(ground.effects))[ground.effects != 0].all()
        flagged += (np.abs(t[ground.effects == 0]) > 1.96).tolist()
    assert np.mean(flagged) > 0.5


def test_a_covariate_counts_with_its_sign_less_without_and_not_with_both() -> None:
    one = Driver(name="soil_ph", sign="-")
    truth = made().truth.model_copy(update={"covariates": [one]})

    def credit(*stated: Driver) -> float:
        return credits(truth, covariates=list(stated))["covariates"].credit

    assert credit(one) == 1.0
    assert credit(Driver(name="Soil pH", sign="-")) == 1.0
    assert credit(Driver(name="soil_ph", sign=None)) == pytest.approx(0.3 * 0.6)
    assert credit(Driver(name="soil_ph", sign="+")) == 0.0
    assert credit(one, Driver(name="soil_ph", sign="+")) == 0.0
    assert credit(one, Driver(name="iron_pct", sign="+")) == pytest.approx(2 / 3)
    assert credit() == 0.0


def test_a_wrong_sign_cancels_a_right_one_so_that_guessing_signs_does_not_pay() -> None:
    true = [Driver(name=name, sign="+") for name in ("soil_ph", "iron_pct", "clay_pct")]
    truth = made().truth.model_copy(update={"covariates": true})
    turned = [*true[:2], Driver(name="clay_pct", sign="-")]
    assert (
        credits(truth, covariates=turned)["covariates"].credit
        < credits(truth, covariates=true[:1])["covariates"].credit
    )
    assert credits(truth, covariates=[true[0], *turned[2:]])["covariates"].credit == 0.0


def test_a_hot_spot_fades_with_its_distance_and_a_wrong_radius_costs_a_part() -> None:
    true = Spot(x=1_000, y=2_000, radius=300)
    truth = made().truth.model_copy(update={"hot_spots": [true]})

    def credit(**change: object) -> float:
        return credits(truth, hot_spots=[true.model_copy(update=change)])["hot_spots"].credit

    away = [credit(x=1_000 + metres) for metres in (0, 90, 150, 250, 310)]
    assert away[:2] == [1.0, 1.0]
    assert away == sorted(away, reverse=True)
    assert away[-1] == 0.0
    assert credit(radius=350) == 1.0
    assert credit(radius=None) == credit(radius=3_000) == pytest.approx(0.85)
    assert credit(x=1.7e308, y=-1.7e308, radius=-1.7e308) == 0.0


def test_a_direction_is_the_same_half_a_turn_on() -> None:
    truth = made().truth.model_copy(update={"anisotropy_azimuth": 176.0})
    azimuths = (176, 3, -4, 356, 7, 17, 86)
    found = [credits(truth, anisotropy_azimuth=value)["anisotropy_azimuth"].credit for value in azimuths]
    assert found[:4] == [1.0] * 4
    assert 1 > found[4] > found[5] > found[6] == 0.0


@pytest.mark.parametrize(
    ("field", "full", "none"),
    [
        ("range_m", 0.29, 0.91),
        ("anisotropy_ratio", 0.39, 1.21),
        ("n_sites", 0.0019, 0.011),
    ],
)
def test_numbers_count_in_full_near_the_truth_and_not_at_all_far_from_it(field: str, full: float, none: float) -> None:
    truth = made().truth.model_copy(update={"n_sites": 3_000})
    true = float(getattr(truth, field))

    def credit(off: float) -> float:
        value = true * (1 + off)
        return credits(truth, **{field: round(value) if field == "n_sites" else value})[field].credit

    assert credit(full) == credit(-full) == 1.0
    assert 0 < credit((full + none) / 2) < 1
    assert credit(none) == credit(-none) == 0.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=50)
def test_shares_count_by_their_distance(nugget: float, a: float, b: float, c: float) -> None:
    truth = made().truth
    found = credits(truth, nugget_share=nugget, r2_random_cv=a, r2_block_cv=b, r2_covariates_cv=c)
    assert (found["nugget_share"].credit == 1) == (abs(nugget - truth.nugget_share) <= 0.08)
    assert (found["r2_random_cv"].credit > 0) == (abs(a - truth.r2_random_cv) < 0.15)
    assert found["hot_spots"].credit == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_listing_everything_and_stating_the_usual_do_not_pay(seed: int) -> None:
    ground, _ = drawn(seed)
    east, north = ground.corner
    names = [one.column for one in ground.covariates]
    everything: dict[str, Any] = {
        "covariates": [Driver(name=name, sign="+") for name in names],
        "hot_spots": [
            Spot(x=east + x, y=north + y, radius=300) for x in range(0, 10_001, 800) for y in range(0, 8_001, 800)
        ],
    }
    usual: dict[str, Any] = {
        "range_m": 1_000,
        "anisotropy_azimuth": 45,
        "anisotropy_ratio": 2,
        "nugget_share": 0.4,
        "r2_random_cv": 0.6,
        "r2_block_cv": 0.4,
        "r2_covariates_cv": 0.3,
    }
    truth = made(seed).truth
    assert accuracy(list(credits(truth, **everything).values())) < 0.12
    assert accuracy(list(credits(truth, **usual).values())) < 0.4
    assert accuracy(list(credits(truth, **everything, **usual).values())) < 0.45


def test_checks_hold_for_the_truth_in_prose_and_fail_for_other_numbers() -> None:
    truth = made().truth
    held = {check.name for check in TASK.checks(truth) if check.holds(TASK.summary(truth))}
    assert held == {check.name for check in TASK.checks(truth)}
    spot = truth.hot_spots[0]
    for name, told in {
        "range told": f"The range is {truth.range_m + 0.4:,.1f} m.",
        "hot spot located": f"A hot-spot lies at ({spot.x + 1.5:,.1f}, {spot.y:,.1f}).",
    }.items():
        assert [check.holds(told) for check in TASK.checks(truth) if check.name == name] == [True]
    other = TASK.summary(made(1).truth)
    missed = {check.name for check in TASK.checks(truth) if not check.holds(other)}
    assert {"hot spot located"} <= missed
    assert not any(check.holds(TASK.brief) for check in TASK.checks(truth) if check.name.endswith(("told", "located")))
