"""The lab as a game between models: known ratings come back, seats are told apart, and nothing is filled in."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.stats.deviation import deviation_ratings, joint_deviation_ratings
from labmates.stats.intervals import ONE
from labmates.stats.metagame import Array, mean_payoffs
from labmates.stats.replicator import replicator_dynamics
from labmates.workflows.analysis import TooFewRunsError
from labmates.workflows.experiment import make_condition
from labmates.workflows.science.seat_ratings import (
    ANY_SEAT,
    SeatGame,
    SeatRatings,
    rate_teams,
    seat_ratings,
    symmetrised,
    teams_table,
)
from labmates.workflows.science.seatings import seat_games

SEATS = ("data", "model", "eval", "writing")
WORTH = np.array([[0.0, 0.1, 0.3], [0.2, 0.2, 0.0], [0.0, 0.05, 0.1], [0.3, 0.1, 0.0]])
"""What each model adds to the score on each seat."""


def additive(worth: Array) -> Array:
    """Return the scores of all seatings where each seat adds what its model is worth there."""
    seats, models = worth.shape
    return np.array(
        [sum(worth[s, m] for s, m in enumerate(who)) for who in product(range(models), repeat=seats)]
    ).reshape((models,) * seats)


def played(payoffs: Array, seeds: int = 3, noise: float = 0.0) -> SeatGame:
    rng = np.random.default_rng(0)
    models = tuple(f"m:{name}" for name in "abcdef"[: len(payoffs)])
    scores = {
        who: [(seed, float(payoffs[who]) + noise * rng.standard_normal()) for seed in range(seeds)]
        for who in np.ndindex(payoffs.shape)
    }
    return SeatGame({"task": "ecology"}, SEATS[: payoffs.ndim], models, scores)


def test_models_that_add_to_the_score_get_what_they_are_worth_on_each_seat() -> None:
    found = {name: values[0] for name, values in seat_ratings(additive(WORTH)[None]).items()}
    others = WORTH.mean(axis=1).sum() - WORTH.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found["mean"][:4], WORTH + others)
    best = WORTH.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found["deviation"][:4], WORTH - best, atol=1e-7)
    np.testing.assert_allclose(found["fitness"][:4], WORTH + best.sum() - best, atol=1e-3)
    np.testing.assert_array_equal(found["rank"][:4], [[3, 2, 1], [1.5, 1.5, 3], [3, 2, 1], [1, 2, 3]])
    np.testing.assert_allclose(found["population"].sum(axis=1), 1)


def test_on_any_seat_a_model_is_worth_its_mean_over_seats() -> None:
    found = {name: values[0, -1] for name, values in seat_ratings(additive(WORTH)[None]).items()}
    worth = WORTH.mean(axis=0)
    np.testing.assert_allclose(found["mean"], worth + 3 * worth.mean())
    np.testing.assert_allclose(found["deviation"], worth - worth.max(), atol=1e-7)


@settings(max_examples=4)
@given(st.integers(0, 2**31), st.integers(2, 3), st.integers(2, 3))
@example(1, 3, 2)  # two populations of it would drift apart
def test_the_symmetrised_game_is_rated_as_dilemmas_are(seed: int, models: int, seats: int) -> None:
    payoffs = np.random.default_rng(seed).random((models,) * seats)
    same = symmetrised(payoffs[None])[0]
    found = {name: values[0, -1] for name, values in seat_ratings(payoffs[None]).items()}
    dynamics = replicator_dynamics(same)
    np.testing.assert_allclose(found["mean"], mean_payoffs(same))
    np.testing.assert_allclose(found["fitness"], dynamics.fitness, atol=1e-9)
    np.testing.assert_allclose(found["population"], dynamics.population, atol=1e-9)
    np.testing.assert_allclose(found["deviation"], deviation_ratings(same))


@settings(max_examples=4)
@given(st.integers(0, 2**31))
def test_ratings_follow_models_and_seats_however_they_are_ordered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    payoffs = rng.random((3, 3, 3))
    models, seats = rng.permutation(3), rng.permutation(3)
    moved = np.transpose(payoffs[np.ix_(models, models, models)], seats)
    one, other = seat_ratings(payoffs[None]), seat_ratings(moved[None])
    for name in ("mean", "fitness", "deviation"):
        np.testing.assert_allclose(other[name][0, :3], one[name][0][seats][:, models], atol=1e-6)


def test_joint_ratings_know_a_dominated_choice_of_each_player() -> None:
    # Row player: the second choice always costs 1; column player: the first one always costs 2.
    rows, columns = np.array([[3.0, 3.0], [2.0, 2.0]]), np.array([[0.0, 2.0], [0.0, 2.0]])
    np.testing.assert_allclose(joint_deviation_ratings([rows, columns]), [[0, -1], [-2, 0]], atol=1e-7)
    with pytest.raises(UsageError, match="payoffs of 1 players need arrays with 1 axes"):
        joint_deviation_ratings([rows])


def test_intervals_hold_the_truth_and_are_over_data_sets_where_these_are_shared() -> None:
    payoffs = additive(WORTH[:3, :2])
    truth = seat_ratings(payoffs[None])["mean"][0]
    found = rate_teams(played(payoffs, seeds=8, noise=0.05), resamples=100)
    assert found.resampled == "seed"
    assert _held(found, truth).mean() > 0.8
    game = played(payoffs, noise=0.05)
    scores = {who: [(seed + sum(who), value) for seed, value in some] for who, some in game.scores.items()}
    assert rate_teams(SeatGame({}, SEATS[:3], game.models, scores), resamples=10).resampled == "run"


def test_intervals_hold_with_few_data_sets() -> None:
    seeds = 3
    payoffs = additive(WORTH[:3, :2])
    truth = seat_ratings(payoffs[None])["mean"][0]
    held = []
    for study in range(12):
        rng = np.random.default_rng([study, seeds])
        shared = rng.normal(0, 0.03, seeds)
        scores = {
            seating: [(seed, float(value + shared[seed] + rng.normal(0, 0.05))) for seed in range(seeds)]
            for seating, value in np.ndenumerate(payoffs)
        }
        held.append(_held(rate_teams(SeatGame({}, SEATS[:3], ("a", "b"), scores), resamples=30, seed=study), truth))
    # Ratings of one study go together: 12 studies count, of which a rate of .93 falls below .71 in one of 700 seeds.
    assert np.mean(held) >= 0.93 - 3 * (0.93 * 0.07 / 12) ** 0.5


def _held(found: SeatRatings, truth: Array) -> Array:
    each = found.estimates["mean"]
    low = np.array([[one.low for one in row] for row in each], dtype=float)
    high = np.array([[one.high for one in row] for row in each], dtype=float)
    return np.asarray((low <= truth) & (truth <= high))


def test_a_single_play_has_no_interval_and_says_so() -> None:
    found = rate_teams(played(additive(WORTH[:, :2]), seeds=1))
    table = teams_table([found], "accuracy")
    assert {row["mean_reason"] for row in table.rows} == {ONE}
    assert any(note.startswith("No interval: one value") for note in table.notes)
    assert [row["seat"] for row in table.rows][-2:] == [ANY_SEAT, ANY_SEAT]


def test_a_seating_that_was_not_played_is_never_filled_in() -> None:
    game = played(additive(WORTH[:, :2]))
    scores = {who: some for who, some in game.scores.items() if who != (0, 1, 0, 1)}
    lacking = SeatGame({}, SEATS, game.models, scores)
    assert lacking.missing() == [(0, 1, 0, 1)]
    with pytest.raises(UsageError, match="1 of 16 seatings were not played"):
        rate_teams(lacking)
    with pytest.raises(UsageError, match="there is only one"):
        rate_teams(SeatGame({}, SEATS, ("a",), {(0, 0, 0, 0): [(0, 1.0)]}))


def test_an_organisation_of_one_team_has_no_seatings_to_compare(tmp_path: Path) -> None:
    runs = []
    for model in ("scripted:hasty", "scripted:diligent"):
        made = make_condition("science", {"task": "ecology", "model": model, "organisation": "blackboard"})
        condition = made.model_dump(mode="json")
        runs.append(
            RunRecord(model, "science", made.key, 0, 0, condition, [model], "completed", metrics={"skill": 0.5})
        )
    with Store(f"sqlite:///{tmp_path}/runs.db") as store, pytest.raises(TooFewRunsError, match="several teams"):
        seat_games(store, runs)
