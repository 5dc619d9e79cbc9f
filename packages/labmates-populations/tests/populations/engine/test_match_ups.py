"""Games of strategies without chance are played once, and nothing of a result shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from labmates_populations.engine.workers import Batch, Result, Workers, chunks
from labmates_populations.repeated import make_repeated
from tests.support.strategies import HEAD, strategy

BODIES = {
    "COLLECTIVE_1": "return C",
    "COLLECTIVE_2": "return C if history.round_number == 0 or history.opponent_cooperators[-1] > 0 else D",
    "SELFISH_3": "return D if history.round_number % 3 else C",
    "SELFISH_4": "return C if random.random() < 0.5 else D",
    "SELFISH_5": "return C if history.round_number < 2 else None",
}
TEXT = HEAD + "".join(
    strategy(body, name=f"Strategy_{name}", arguments="history, *stock") for name, body in BODIES.items()
)
RANDOM, FAILING = 3, 4


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(processes=1) as made:
        made.load("five", TEXT)
        yield made


def played(workers: Workers, batch: Batch) -> list[Result]:
    return workers.play(list(chunks(batch, 64)))


@pytest.mark.parametrize("game", ["public-goods", "collective-risk", "common-pool"])
def test_a_result_does_not_depend_on_what_was_played_before(workers: Workers, game: str) -> None:
    made, chance = make_repeated(game, 4, 6), np.random.default_rng(1)
    for seed in range(3):
        batch = Batch(made, chance.integers(0, len(BODIES), (48, 4)), seed, cooperate=frozenset({0, 1}))
        with Workers(processes=2) as fresh:
            fresh.load("five", TEXT)
            for one, other in zip(played(workers, batch), played(fresh, batch), strict=True):
                assert (one.actions == other.actions).all()
                assert (one.failed == other.failed).all()
                assert one.errors == other.errors


def test_every_game_counts_its_own_failures(workers: Workers) -> None:
    batch = Batch(make_repeated("public-goods", 4, 6), np.full((20, 4), FAILING), 0)
    assert [result.errors[FAILING].count for result in played(workers, batch)] == [16 * 4 * 4, 4 * 4 * 4]
    assert played(workers, batch)[0].failed.all()
    [few] = played(workers, Batch(batch.game, batch.groups[:2], 0))
    assert set(few.errors[FAILING].seats) == {f"{group} {seat}" for group in range(2) for seat in range(4)}


@pytest.mark.parametrize(("game", "remembered"), [("public-goods", True), ("common-pool", False)])
def test_seats_mean_nothing_where_there_is_no_stock(workers: Workers, game: str, remembered: bool) -> None:
    made = make_repeated(game, 4, 6)
    [first] = workers.play([Batch(made, np.array([[0, 1, 2, 2]]), 0)])
    [again] = workers.play([Batch(made, np.array([[0, 1, 2, 2]]), 1)])
    [moved] = workers.play([Batch(made, np.array([[2, 1, 2, 0]]), 2)])
    assert (again.actions == first.actions).all()
    assert (moved.actions == first.actions[:, :, [2, 1, 3, 0]]).all()
    assert again.seconds == 0, "nothing was played"
    assert (moved.seconds == 0) == remembered


def test_a_strategy_that_is_not_run_any_more_falls_back(workers: Workers) -> None:
    made, groups = make_repeated("public-goods", 4, 6), np.array([[0, 1, 2, 2]])
    workers.play([Batch(made, groups, 0)])
    [broken] = workers.play([Batch(made, groups, 0, broken=frozenset({0}))])
    assert not broken.actions[0, :, 0].any()
    assert broken.errors[0].count == 6


def test_players_of_large_groups_that_have_seen_the_same_are_asked_once(workers: Workers) -> None:
    body = "x = {}\nfor i in range(100_000): x[i % 7] = i\nreturn C if x[3] % 2 else D"
    [slow] = workers.load("slow", HEAD + strategy(body))
    batch = Batch(make_repeated("public-goods", 64, 2), np.full((1, 64), slow.index), 0)
    [each], [once], [known] = (
        workers.play([one]) for one in (replace(batch, anew=True), batch, replace(batch, seed=1))
    )
    assert (each.actions == once.actions).all()
    assert each.own_seconds > 8 * once.own_seconds
    assert once.own_seconds > 8 * known.own_seconds
