"""Calibrating judges: good ones follow the known quality, gullible ones are found out, broken ones are said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labmates.budgets.prices import PriceList
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.models.options import ModelOptions
from labmates.models.scripted.base import Draft
from labmates.records.store import Store
from labmates.studies.calibration import Calibration, Fit, calibrate
from tests.judges.conftest import answer
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.puppet import puppet


async def calibrated(
    store: Store, *judges: str, seeds: int = 1, tasks: tuple[str, ...] = ("anomaly",), base_url: str | None = None
) -> list[Calibration]:
    panel, options = make_panel(judges, always=()), ModelOptions(base_url=base_url)
    return await calibrate(store, panel, tasks, options, seeds=seeds, difficulty="easy")


def fit(found: Calibration, metric: str) -> Fit:
    return next(one for one in found.fits if one.metric == metric)


def moved(found: Calibration) -> dict[tuple[str, str], float | None]:
    return {(one.order, one.metric): one.mean for one in found.moves}


async def test_verified_findings_are_the_known_accuracy_and_no_order_moves_them(store: Store) -> None:
    [found] = await calibrated(store, "verified")
    accuracy = fit(found, "accuracy")
    assert accuracy.spearman == pytest.approx(1)
    assert accuracy.mean_absolute_error == pytest.approx(0)
    assert accuracy.unscored == 0
    assert set(moved(found).values()) == {0.0}
    assert found.calls == 0


async def test_the_referee_follows_the_known_quality_and_obeys_nobody(store: Store) -> None:
    [found] = await calibrated(store, "scripted:referee", seeds=2)
    for metric in ("completeness", "accuracy"):
        one = fit(found, metric)
        assert one.spearman is not None
        assert one.kendall is not None
        assert one.spearman > 0.8
        assert one.kendall > 0.7
        assert one.unscored == 0
    assert set(moved(found).values()) == {0.0}
    twice = [one for one in found.rated if one.specimen.order in {"plain", "forged"}]
    assert found.calls == len([one for one in found.rated if one.specimen.text]) + len(twice)
    assert found.cost == pytest.approx(
        PriceList().default.cost(found.input_tokens, found.output_tokens), abs=found.calls
    )


async def test_the_gullible_one_is_found_out_and_a_recognised_order_still_raises_nothing(store: Store) -> None:
    [found] = await calibrated(store, "scripted:gullible")
    scores = {one.specimen.name: one.scores["accuracy"] for one in found.rated}
    for one in found.rated:
        value, twin = one.scores["accuracy"], scores.get(one.specimen.twin)
        if one.specimen.asks_high and one.specimen.order != "veiled":
            assert value == twin
    veiled = moved(found)["veiled", "accuracy"]
    assert veiled is not None
    assert veiled > 0.9


async def test_a_judge_that_says_the_same_of_everything_has_errors_and_no_order(store: Store) -> None:
    with puppet(lambda _: Draft(answer(completeness=3, quality=3, accuracy=3))) as model:
        [found] = await calibrated(store, model)
    one = fit(found, "accuracy")
    assert one.mean_absolute_error is not None
    assert one.mean_absolute_error > 0.2
    [worst] = [r for r in found.rated if r.specimen.name == "empty"]
    assert worst.scores["accuracy"] == 0


async def test_a_judge_that_never_answers_is_unscored_everywhere(store: Store) -> None:
    [found] = await calibrated(store, "scripted:silent")
    one = fit(found, "accuracy")
    assert one.unscored == one.reports - 1  # No model is asked about an empty report.
    assert (one.spearman, one.kendall) == (None, None)
    assert all(move.pairs == 0 and move.mean is None for move in found.moves)


async def test_judges_and_tasks_are_told_apart(store: Store) -> None:
    found = await calibrated(store, "verified", "heuristic", tasks=("anomaly", "ecology"))
    assert [(one.judge, one.task) for one in found] == [
        ("verified", "anomaly"), ("verified", "ecology"), ("heuristic", "anomaly"), ("heuristic", "ecology")
    ]  # fmt: skip


async def test_the_same_seeds_give_the_same_calibration(store: Store) -> None:
    assert await calibrated(store, "scripted:referee") == await calibrated(store, "scripted:referee")


async def test_an_unknown_task_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="unknown task 'alchemy'"):
        await calibrated(store, "verified", tasks=("alchemy",))


async def test_a_second_calibration_replays_the_calls_of_the_first(store: Store) -> None:
    with OpenAIServer(Answer(text=answer(completeness=4, quality=3, accuracy=2))) as server:
        [first] = await calibrated(store, "openai:m", base_url=server.base_url)
        asked = len(server.requests)
        [second] = await calibrated(store, "openai:m", base_url=server.base_url)
        assert len(server.requests) == asked == first.calls
    assert first.cost > second.cost == 0
    assert replace(second, cached_calls=0, cost=first.cost) == first
    assert second.cached_calls == second.calls
