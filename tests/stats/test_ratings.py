"""Ratings: the recorded cells, invariances of random metagames, wrong input."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labmates.errors import UsageError
from labmates.mechanisms.repetition import discount_weights
from labmates.stats.deviation import TIE, deviation_gains, deviation_ratings, ranks
from labmates.stats.domains import Domain
from labmates.stats.intervals import EQUAL, Estimate
from labmates.stats.metagame import Array, mean_payoffs, metagame
from labmates.stats.pooled_ratings import _drawn, mean_rank, pooled_ratings
from labmates.stats.ratings import ALL_GAMES, Cell, Scale, Summary, _domain, _failed, rate, summarise
from labmates.stats.replicator import AT_REST, replicator_dynamics
from labmates.stats.validity import Tally
from labmates.workflows.dilemmas.payoff_files import read_cells
from labmates.workflows.dilemmas.ratings import cells_table, summaries_table

RECORDED = Path(__file__).parent / "data" / "dilemma_payoffs.json.gz"


@st.composite
def metagames(draw: st.DrawFn) -> Array:
    """Random metagames of few models; payoffs often repeat, so that optima are degenerate as in real ones."""
    models, players = draw(st.sampled_from([(2, 2), (3, 2), (5, 2), (6, 2), (2, 3), (3, 3), (4, 3)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (models,) * players
    array = rng.integers(-3, 4, shape).astype(float) if draw(st.booleans()) else rng.normal(size=shape)
    return (array + np.swapaxes(array, 1, 2)) / 2 if players == 3 else array


@pytest.fixture(scope="module")
def payoffs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("payoffs") / "payoffs.json"
    path.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return path


@pytest.fixture(scope="module")
def recorded(payoffs_file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(payoffs_file.read_bytes())
    return found


def test_every_recorded_cell_has_its_ratings(payoffs_file: Path, recorded: dict[str, Any]) -> None:
    cells = read_cells(payoffs_file)
    assert len(cells) == len(recorded["cells"]) == 24
    for cell, expected in zip(cells, recorded["cells"], strict=True):
        found = rate(cell)
        for name in ("mean", "fitness", "population"):
            np.testing.assert_allclose(getattr(found, name), expected[name], rtol=0, atol=1e-9)
        assert found.deviation is not None
        assert found.rank is not None
        np.testing.assert_allclose(found.deviation, expected["dev_exact"], rtol=0, atol=1e-6)
        assert found.rank.tolist() == expected["rank_exact"]


@pytest.fixture(scope="module")
def published(payoffs_file: Path) -> list[Summary]:
    """The summaries of the recorded payoffs."""
    return list(summarise(map(rate, read_cells(payoffs_file))))


def test_means_over_runs_are_those_of_the_published_tables(published: list[Summary]) -> None:
    found = {(one.mechanism, one.rating): one for one in published if one.game == ALL_GAMES}
    assert found["Mediation", "mean"].average.value == pytest.approx(0.695, abs=5e-4)
    assert found["Repetition", "mean"].average.value == pytest.approx(0.587, abs=5e-4)
    assert [one.value for one in found["Repetition", "fitness"].each] == pytest.approx(
        [0.810, 0.972, 0.912, 0.788, 0.643, 0.616], abs=5e-4
    )
    assert found["Mediation", "mean"].normalised
    for summary in found.values():
        for one in (*summary.each, *([] if summary.rating == "rank" else [summary.average])):
            assert one.low is not None
            assert one.high is not None
            assert one.low <= one.value <= one.high
            assert summary.rating == "rank" or one.low < one.high


def test_equal_runs_have_no_interval_instead_of_one_without_width(published: list[Summary]) -> None:
    each = [one for summary in published for one in (*summary.each, summary.average)]
    equal = [one for one in each if one.low is None]
    assert {one.reason for one in equal} == {EQUAL}
    ratings = [one for summary in published if summary.rating != "rank" for one in summary.each]
    assert all(one.high > one.low for one in ratings if one.low is not None and one.high is not None)
    table = summaries_table(published)
    assert any("2.083 [=]" in cell for row in table.cells() for cell in row)
    assert f"No interval: {EQUAL} ({len(equal)})." in table.notes


def test_equal_models_with_noise_may_have_rank_1_or_last_and_the_rating_0() -> None:
    rng = np.random.default_rng(4)
    runs = [rng.normal(1, 0.3, (4, 4)) for _ in range(6)]
    found = pooled_ratings(runs)
    for rating, rank in zip(found["deviation"], found["rank"][:-1], strict=False):
        assert rating.high == 0, "the truth"
        assert (rank.low, rank.high) == (1, 4)
    assert found["deviation"][0].value == pytest.approx(deviation_ratings(np.mean(runs, axis=0))[0])


def test_no_interval_of_a_rating_leaves_what_a_deviation_can_lose() -> None:
    runs = [np.array([[2.0, 0.0], [3.0, 1.0]]), np.array([[0.0, 3.0], [1.0, 2.0]])]
    lows = [each.low for each in pooled_ratings(runs, Domain(0, 3))["deviation"]]
    assert min(each.low or 0 for each in pooled_ratings(runs)["deviation"]) < -3 == min(low or 0 for low in lows)


def test_models_apart_by_more_than_noise_have_ranks_of_their_own() -> None:
    rng = np.random.default_rng(4)
    runs = [np.array([[3.0] * 3, [2.0] * 3, [1.0] * 3]) + rng.normal(0, 0.01, (3, 3)) for _ in range(6)]
    assert [(rank.low, rank.high) for rank in pooled_ratings(runs)["rank"][:-1]] == [(1, 1), (2, 2), (3, 3)]
    [summary] = [
        one
        for one in summarise(rate(Cell(str(n), "none", "g", ("a", "b", "c"), run)) for n, run in enumerate(runs))
        if one.rating == "rank"
    ]
    assert [one.value for one in summary.each] == [1, 2, 3]
    assert summary.each[0].method == "bootstrap of runs"


def test_pooled_ranks_tie_within_a_share_of_the_payoffs_range() -> None:
    rng = np.random.default_rng(4)
    for apart, ends in ((5e-7, (1, 2)), (1e-2, (1, 1))):
        first = np.array([[3.0] * 3, [3.0 - apart] * 3, [1.0] * 3])
        runs = [first + rng.normal(0, 0.01) for _ in range(6)]
        for unit in (1.0, 1e-7):
            rank = pooled_ratings([run * unit for run in runs])["rank"]
            assert (rank[0].low, rank[0].high) == ends
            assert rank[0].value == sum(ends) / 2


def test_a_mean_rank_over_games_has_as_many_runs_as_the_game_with_fewest() -> None:
    found = mean_rank(
        [Estimate(1.0, None, 1.0, 2.0, 5), Estimate(2.0, None, 1.0, 3.0, 3), Estimate(3.0, None, 3.0, 3.0, 4)]
    )
    assert (found.value, found.low, found.high, found.n) == (2.0, 5 / 3, 8 / 3, 3)


def test_runs_of_many_cells_share_their_variances() -> None:
    rng = np.random.default_rng(3)
    cells = [
        Cell(f"{run}", mechanism, game, ("a", "b"), rng.uniform(1, 3, (2, 2)), Scale(1.0, 2.0), domain=Domain(0, 3))
        for mechanism in ("none", "contract", "mediation", "repetition", "reputation", "other")
        for game in ("prisoners", "public-goods", "travellers", "trust")
        for run in range(3)
    ]
    found = [one for one in summarise(map(rate, cells)) if one.rating == "mean"]
    alone = [one for one in found if one.game != ALL_GAMES]
    assert len(alone) == 24
    for summary in alone:
        for one in summary.each:
            assert one.method == "t on the logit scale, variances pooled over 24 cells"
            assert one.df is not None
            assert 20 < one.df <= 48
            assert one.low is not None
            assert one.high is not None
            assert 0 < one.low < one.high < 3


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_ranks_do_not_depend_on_what_payoffs_are_counted_in(
    recorded: dict[str, Any], payoffs_file: Path, unit: float
) -> None:
    for cell, expected in zip(read_cells(payoffs_file), recorded["cells"], strict=True):
        found = rate(Cell("", "", "", cell.models, cell.payoffs * unit))
        assert found.rank is not None
        assert found.rank.tolist() == expected["rank_exact"]


@settings(max_examples=60, deadline=None)
@given(metagames(), st.sampled_from([1e-6, 1e6]))
def test_ranks_of_random_metagames_do_not_depend_on_the_unit(payoffs: Array, unit: float) -> None:
    models = tuple(f"m{place}" for place in range(len(payoffs)))
    plain, scaled = (rate(Cell("", "", "", models, payoffs * by)) for by in (1.0, unit))
    assert plain.rank is not None
    assert scaled.rank is not None
    assert scaled.rank.tolist() == plain.rank.tolist()


def test_a_population_that_has_not_come_to_rest_is_marked() -> None:
    game = np.array([[2.0, 0.0], [3.0, 1.0]])
    resting, slow = (rate(Cell("1", "none", "g", ("a", "b"), game * unit)) for unit in (1.0, 1e-6))
    assert (resting.converged, slow.converged) == (True, False)
    table = cells_table([resting, slow])
    assert [row[5].endswith("†") for row in table.cells()] == [False, False, True, True]
    assert any("In 1 of 2 cells the population is not at rest" in note for note in table.notes)
    [fitness] = [one for one in summarise([resting, slow, slow]) if one.rating == "fitness"]
    assert fitness.unconverged == 2
    assert fitness.average.value == pytest.approx(1 / 3, abs=1e-4), "all defect in one, and nobody earns in the others"
    assert any("not at rest" in note for note in summaries_table([fitness]).notes)


@settings(max_examples=60, deadline=None)
@given(metagames(), st.sampled_from([1e-6, 1e-3, 1e3, 1e6]), st.sampled_from([-5.0, 0.0, 100.0]))
@example(np.array([[-2.0, -2.0, 2.0], [-2.0, 3.0, -1.0], [-2.0, 1.0, 1.0]]), 1e-6, -5.0)
def test_whether_a_population_rests_does_not_depend_on_what_payoffs_are_counted_in(
    payoffs: Array, unit: float, more: float
) -> None:
    # Equal shares can be an unstable equilibrium, which rounding alone would leave.
    start = np.sqrt(np.arange(2, len(payoffs) + 2))
    start /= start.sum()
    plain = replicator_dynamics(payoffs, start=list(start))
    scaled = replicator_dynamics((payoffs + more) * unit, rate=0.1 / unit, start=list(start))
    assert scaled.gain == pytest.approx(plain.gain, abs=1e-6)
    assert scaled.converged == plain.converged or plain.gain == pytest.approx(AT_REST, abs=1e-6)


def test_an_equilibrium_is_at_rest_and_a_cycle_is_not() -> None:
    cycle = np.array([[0.0, -1.0, 2.0], [2.0, 0.0, -1.0], [-1.0, 2.0, 0.0]])
    assert replicator_dynamics(cycle).converged
    pushed = np.array([[0.0, -2.0, 1.1], [1.0, 0.0, -2.0], [-2.0, 1.0, 0.0]])
    assert not replicator_dynamics(pushed).converged


@settings(max_examples=250, deadline=None)
@given(metagames(), st.randoms(use_true_random=False))
def test_deviation_ratings_do_not_depend_on_the_order_of_models(payoffs: Array, random: Any) -> None:
    order = list(range(len(payoffs)))
    random.shuffle(order)
    relabelled = payoffs[np.ix_(*[order] * payoffs.ndim)]
    np.testing.assert_allclose(deviation_ratings(relabelled), deviation_ratings(payoffs)[order], rtol=0, atol=1e-6)


@settings(max_examples=250, deadline=None)
@given(metagames(), st.integers(0, 100))
def test_a_clone_changes_no_deviation_rating(payoffs: Array, which: int) -> None:
    cloned = [*range(len(payoffs)), which % len(payoffs)]
    with_clone = payoffs[np.ix_(*[cloned] * payoffs.ndim)]
    np.testing.assert_allclose(deviation_ratings(with_clone), deviation_ratings(payoffs)[cloned], rtol=0, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(metagames(), st.floats(0.1, 50), st.floats(-50, 50))
def test_deviation_ratings_scale_with_payoffs_and_are_never_above_0(payoffs: Array, unit: float, base: float) -> None:
    ratings = deviation_ratings(payoffs)
    assert ratings.max() <= 1e-7
    np.testing.assert_allclose(deviation_ratings(payoffs * unit + base), ratings * unit, rtol=0, atol=1e-6 * unit)


@settings(max_examples=60, deadline=None)
@given(metagames())
def test_the_best_rating_is_the_least_largest_gain(payoffs: Array) -> None:
    from scipy.optimize import linprog

    gains = deviation_gains(payoffs)
    rows, columns = gains.shape
    found = linprog(
        np.eye(columns + 1)[0],
        A_ub=np.hstack([-np.ones((rows, 1)), gains]),
        b_ub=np.zeros(rows),
        A_eq=np.hstack([[[0.0]], np.ones((1, columns))]),
        b_eq=[1.0],
        bounds=[(None, None)] + [(0, None)] * columns,
    )
    assert deviation_ratings(payoffs).max() == pytest.approx(found.fun, abs=1e-6)


def test_a_dominant_model_has_the_best_rating_and_takes_the_population() -> None:
    prisoners = [[2.0, 0.0], [3.0, 1.0]]
    assert deviation_ratings(prisoners).tolist() == pytest.approx([-1.0, 0.0])
    dynamics = replicator_dynamics(prisoners)
    assert dynamics.population[1] > 0.999
    assert dynamics.path.shape == (1001, 2)
    assert dynamics.path[0].tolist() == [0.5, 0.5]
    assert dynamics.average == pytest.approx(1.0, abs=1e-3)


@settings(max_examples=50, deadline=None)
@given(metagames(), st.floats(0, 1000))
def test_shares_add_up_to_1_whatever_the_rate(payoffs: Array, rate_: float) -> None:
    path = replicator_dynamics(payoffs, steps=20, rate=rate_).path
    assert np.isfinite(path).all()
    np.testing.assert_allclose(path.sum(axis=1), 1.0)


def test_equal_payoffs_make_equal_ratings() -> None:
    assert deviation_ratings(np.full((3, 3), 0.3)).tolist() == [0.0, 0.0, 0.0]
    assert ranks([0.0, 0.0, 0.0]).tolist() == [2.0, 2.0, 2.0]


def test_ties_share_the_average_rank() -> None:
    assert ranks([-1.0, 0.0, -5e-7, -2.0]).tolist() == [3.0, 1.5, 1.5, 4.0]
    assert ranks([0.0, -TIE, -1.5 * TIE]).tolist() == [1.5, 1.5, 3.0]  # a tie is with the first, not a chain


def test_the_last_round_stands_for_all_that_would_follow() -> None:
    weights = discount_weights(0.8, 15)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] == pytest.approx(0.2)
    assert weights[-1] == pytest.approx(0.8**14)
    assert discount_weights(1.0, 1).tolist() == [1.0]


def test_a_metagame_averages_seats_and_orders() -> None:
    matches = [((0, 0), (1.0, 3.0)), ((0, 1), (5.0, 0.0)), ((1, 0), (2.0, 7.0)), ((1, 1), (4.0, 4.0))]
    found = metagame(2, matches)
    assert found.tolist() == [[2.0, 6.0], [1.0, 4.0]]
    assert mean_payoffs(found).tolist() == [4.0, 2.5]


@pytest.mark.parametrize(
    ("payoffs", "said"),
    [
        ([1.0, 2.0], "one axis per player"),
        ([[1.0, 2.0]], "one axis per player"),
        ([[1.0, float("nan")], [1.0, 2.0]], "not a finite number"),
        ([[1e308, -1e308], [-1e308, 1e308]], "larger than 1e\\+100"),
        (np.arange(8.0).reshape(2, 2, 2), "order of co-players"),
        ([["a", "b"], ["c", "d"]], "array of numbers"),
    ],
)
def test_what_is_no_metagame_is_refused(payoffs: Any, said: str) -> None:
    for rating in (deviation_ratings, replicator_dynamics, mean_payoffs):
        with pytest.raises(UsageError, match=said):
            rating(payoffs)


@pytest.mark.parametrize("start", [[1.0], [1.0, 0.0], [0.5, 0.6]])
def test_shares_that_make_no_population_are_refused(start: list[float]) -> None:
    with pytest.raises(UsageError, match="a positive share of each of 2 models, with the sum 1"):
        replicator_dynamics(np.eye(2), start=start)


def test_the_error_of_a_pooled_rating_is_the_spread_of_its_draws() -> None:
    runs = np.random.default_rng(1).normal(size=(3, 2, 2))
    draws = np.array([deviation_ratings(drawn) for drawn in _drawn(runs, runs.mean(axis=0))])
    errors = [each.error for each in pooled_ratings(list(runs))["deviation"][:-1]]
    np.testing.assert_allclose(np.array(errors, dtype=float), draws.std(axis=0, ddof=1))


def test_payoffs_of_a_game_where_cooperation_earns_less_keep_their_order_of_bounds() -> None:
    cell = Cell("r", "none", "g", ("m",), np.ones(1), Scale(defect=2.0, cooperate=1.0), domain=Domain(0.0, 3.0))
    assert _domain([cell], normalise=True) == Domain(-1.0, 2.0)


def test_failures_of_a_model_are_unknown_if_those_of_a_run_are() -> None:
    known = Cell("r", "none", "g", ("m",), np.ones(1), failures={"m": Tally(4, 1)})
    assert _failed([known, known], "m") == 0.25
    assert _failed([known, replace(known, failures=None)], "m") is None


def test_a_population_starts_from_its_shares() -> None:
    start = np.array([0.9, 0.1])
    grown = start * np.exp(0.1 * start)  # each earns its own share
    path = replicator_dynamics(np.eye(2), start=list(start), steps=1).path
    np.testing.assert_allclose(path, [start, grown / grown.sum()])


def test_matches_that_make_no_metagame_are_refused() -> None:
    with pytest.raises(UsageError, match=r"model 0 never met the co-players \[1\]"):
        metagame(2, [((0, 0), (1.0, 1.0))])
    with pytest.raises(UsageError, match="unknown models"):
        metagame(2, [((0, 2), (1.0, 1.0))])
    with pytest.raises(UsageError, match="3 payoffs"):
        metagame(2, [((0, 1), (1.0, 1.0, 1.0))])
    with pytest.raises(UsageError, match="same number of seats"):
        metagame(2, [((0, 0), (1.0, 1.0)), ((0, 0, 0), (1.0, 1.0, 1.0))])
    with pytest.raises(UsageError, match="too large"):
        metagame(3000, [((0, 0, 0), (1.0, 1.0, 1.0))])


def test_a_cell_without_a_metagame_has_means_alone() -> None:
    cell = Cell("1", "reputation", "prisoners", ("a", "b"), np.array([1.5, 2.0]), Scale(1.0, 2.0))
    found = rate(cell)
    assert found.mean.tolist() == [1.5, 2.0]
    assert found.fitness is found.deviation is found.rank is None
    assert {one.rating for one in summarise([rate(cell)])} == {"mean"}


@pytest.mark.parametrize(("models", "players"), [(4, 2), (5, 3), (4, 4), (3, 5)])
def test_replicator_dynamics_are_those_of_the_definition(models: int, players: int) -> None:
    rng = np.random.default_rng(players)
    payoffs = rng.normal(size=(models,) * players)
    payoffs = np.mean([np.transpose(payoffs, (0, *order)) for order in permutations(range(1, players))], axis=0)
    shares = np.full(models, 1 / models)
    for _ in range(300):
        fitness = payoffs
        for _ in range(players - 1):
            fitness = fitness @ shares
        shares = shares * np.exp(0.1 * (fitness - fitness.max()))
        shares /= shares.sum()
    np.testing.assert_allclose(replicator_dynamics(payoffs, steps=300).population, shares, rtol=0, atol=1e-10)


def _file(path: Path, **data: Any) -> Path:
    match = {"seats": [0, 1], "rounds": [[2.0, 1.0]]}
    same = [{"seats": [place, place], "rounds": [[1.0, 1.0]]} for place in (0, 1)]
    cell = {"run": "1", "mechanism": "none", "game": "g", "matchups": [match, *same]}
    path.write_text(json.dumps({"cells": [{**cell, **one} for one in data.pop("cells")], **data}))
    return path


def test_cells_may_have_models_of_their_own(tmp_path: Path) -> None:
    path = _file(tmp_path / "p.json", models=["a", "b"], cells=[{}, {"models": ["c", "d"]}])
    assert [cell.models for cell in read_cells(path)] == [("a", "b"), ("c", "d")]
    alone = _file(tmp_path / "q.json", cells=[{"models": ["c", "d"]}], conventions={"range": {"g": [0, 5]}})
    [cell] = read_cells(alone)
    assert (cell.models, cell.domain) == (("c", "d"), Domain(0, 5))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"cells": [{"models": ["c", "d"]}, {}]}, r"cells\[1\] names no models, nor does the file"),
        ({"cells": [{"models": ["c", "c"]}]}, "names a model twice: c, c"),
        (
            {"models": ["a", "b"], "cells": [{}], "conventions": {"range": {"g": [2, 2]}}},
            "the range of g is empty: from 2 to 2",
        ),
    ],
)
def test_cells_without_models_are_refused(tmp_path: Path, data: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_cells(_file(tmp_path / "p.json", **data))
