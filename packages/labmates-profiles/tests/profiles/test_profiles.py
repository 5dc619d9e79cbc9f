"""Profiles: what the numbers are, and what they are not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from labmates.records.run import RunRecord, Usage
from labmates.stats.validity import MOST_FAILED
from labmates_profiles.profile_figures import profile_figure
from labmates_profiles.profiles import games_of, games_table, profiles, profiles_table


def record(model: str, game: str, replicate: int, **metrics: float) -> RunRecord:
    return RunRecord(
        id=f"{model}{game}{replicate}",
        kind="game",
        key=f"{model} {game}",
        replicate=replicate,
        seed=replicate,
        condition={"game": game, "model": model},
        models=[model],
        status="completed",
        metrics={"failed_decision_rate": 0.0, **metrics},
        usage=Usage(30, 1000, 50),
        seconds=2.0,
    )


def test_a_profile_has_means_standard_errors_and_costs_of_each_game() -> None:
    runs = [record("m:a", "o-ring", i, level=level, pareto_proximity=0.5) for i, level in enumerate((4.0, 6.0, 8.0))]
    runs += [record("m:a", "weakest-link", 0, failed_decision_rate=0.5)]
    failed = record("m:a", "o-ring", 7, level=1.0)
    costly = [replace(run, spent=spent) for run, spent in zip(runs, (100, 50), strict=False)]
    [profile] = profiles([*costly, *runs[2:], replace(failed, status="failed")])
    ring, link = profile.games
    assert ring.level is not None
    assert (ring.level.value, ring.simulations) == (6.0, 3)
    assert ring.level.error == pytest.approx(2 / math.sqrt(3))
    assert (ring.calls, ring.input_tokens, ring.output_tokens, ring.seconds, ring.cost) == (30, 1000, 50, 2.0, 150)
    assert ring.efficiency is None
    assert link.level is None
    assert link.failed_rate == 0.5
    assert profile.failed_rate == 0.25
    assert profile.excluded_games == ("weakest-link",)
    assert not profile.excluded, "one game is left"


def test_a_game_in_which_almost_all_decisions_failed_is_excluded_and_the_others_stay() -> None:
    games = ["public-goods", "weakest-link", "common-pool", "common-pool-sanctions", "collective-risk", "o-ring"]
    runs = [
        record("m:a", game, i, level=2.0 + i, failed_decision_rate=0.97 if game == "public-goods" else 0.03)
        for game in games
        for i in range(3)
    ]
    [profile] = profiles(runs)
    assert profile.failed_rate < MOST_FAILED, "over all games few decisions failed"
    assert profile.excluded_games == ("public-goods",)
    table = profiles_table([profile])
    assert [row["game"] for row in table.rows if row["excluded"]] == ["public-goods"]
    assert [row["game"] for row in table.rows if row["level"] is None] == ["public-goods"]
    told = "m:a in public-goods is excluded: 97.0% of its decisions failed, more than 20%."
    assert table.notes[-1] == told
    figure = profile_figure([profile], games_of(runs))
    crossed = [axes.get_title() for axes in figure.axes if any(line.get_marker() == "x" for line in axes.lines)]
    assert crossed == ["public-goods"]


def test_the_share_of_play_near_the_best_is_told_by_model_and_by_game() -> None:
    runs = [
        record(f"m:{model}", "weakest-link", i, level=10 * (1 - distance), efficiency=1 - distance)
        for model, distances in (("a", (0.0, 0.1, 0.2, 0.9)), ("b", (0.21, 0.3, 0.5, 0.6)))
        for i, distance in enumerate(distances)
    ]
    runs += [record("m:a", "o-ring", 0, level=1.0)]
    found = profiles(runs)
    assert [row["near_best"] for row in profiles_table(found).rows] == [0.75, None, 0.0]
    [row] = games_table(found).rows
    assert (row["game"], row["models"], row["simulations"]) == ("weakest-link", 2, 8)
    assert (row["near_best"], row["near_models"]) == (0.375, 0.0)
    assert row["people"].startswith("fall to a mean effort of 3 to 4")


def test_settings_of_one_model_are_no_further_models() -> None:
    distances = (0.05, 0.15, 0.25)
    runs = [
        record(f"m:{model}", "weakest-link", i, level=9.0, efficiency=1 - distance)
        for model in "abc"
        for i, distance in enumerate(distances)
    ]
    other = {"game": "weakest-link", "group_size": 9}
    again = [replace(run, id=f"{run.id}+", key=f"{run.key}+", condition={**run.condition, **other}) for run in runs]
    [once], [twice] = (games_table(profiles(some)).rows for some in (runs, [*runs, *again]))
    assert (once["models"], twice["models"], twice["simulations"]) == (3, 3, 18)
    assert (once["near_best"], once["near_best_n"]) == (twice["near_best"], twice["near_best_n"])


def test_a_profiles_interval_lies_in_the_games_range_or_is_absent_without_variation() -> None:
    runs = [record("m:a", "o-ring", i, level=6.0) for i in range(3)]
    runs += [record("m:a", "weakest-link", i, level=level) for i, level in enumerate((4.0, 6.0, 8.0))]
    runs += [record("m:a", "public-goods", 0, level=5.0)]
    ring, link, goods = profiles_table(profiles(runs)).rows
    assert (ring["level_low"], ring["level"], ring["level_reason"]) == (None, 6.0, "equal values")
    # Efforts are 1 to 10; plain t would give 6 ± 4.97.
    assert 1 < link["level_low"] < 6 < link["level_high"] < 10
    assert (link["level_n"], link["level_df"], link["level_method"]) == (3, 2, "t on the logit scale")
    assert (goods["level"], goods["level_error"], goods["level_low"]) == (5.0, None, None)
    assert goods["level_reason"] == "one value"


def test_a_model_with_a_fifth_of_failed_decisions_is_not_excluded_yet() -> None:
    [profile] = profiles([record("m:a", "o-ring", 0, failed_decision_rate=0.2, level=1)])
    assert not profile.excluded


def test_what_was_played_under_several_conditions_is_told_apart() -> None:
    runs = [record("m:a", game, i, level=float(i)) for game in ("o-ring", "weakest-link") for i in range(4)]
    assert "setting" not in [column.key for column in profiles_table(profiles(runs)).columns]
    runs[:2] = [replace(run, key="another", condition={**run.condition, "group_size": 3}) for run in runs[:2]]
    runs[2:4] = [replace(run, condition={**run.condition, "group_size": 5}) for run in runs[2:4]]
    found = profiles(runs)
    assert [(one.setting, [(game.game, game.simulations) for game in one.games]) for one in found] == [
        ("group_size=3", [("o-ring", 2)]),
        ("group_size=5", [("o-ring", 2)]),
        ("", [("weakest-link", 4)]),
    ]
    rows = profiles_table(found).rows
    assert [(row["setting"], row["level"]) for row in rows] == [("group_size=3", 0.5), ("group_size=5", 2.5), ("", 1.5)]


@pytest.mark.parametrize("metrics", [{}, {"cooperation": 0.4, "efficiency": 0.5}])
def test_a_game_without_a_cooperation_says_why(metrics: dict[str, float]) -> None:
    table = profiles_table(profiles([record("a", "public-goods", 0, level=2.0, **metrics)]))
    assert any("undefined in public-goods" in remark for remark in table.notes) == (not metrics)
