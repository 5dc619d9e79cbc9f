"""Judging runs that have ended: scores are added, never repeated unasked, and survive whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from labmates.budgets.prices import PriceList
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.models.options import ModelOptions
from labmates.models.scripted.base import Draft
from labmates.records import schema
from labmates.records.events import Event, ScoreEvent
from labmates.records.listing import select_runs
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.audit import unproven
from labmates.studies.judging import Judged, judge_runs, judgeable, judging_usage
from labmates.workflows.calls.assessing import add_events, has_judged
from labmates.workflows.protocol.experiment import EXPERIMENTS, Experiment
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.judges.conftest import answer
from tests.studies.ended import ended_run, right_report
from tests.support.openai_server import Answer, Json, OpenAIServer, fault
from tests.support.puppet import puppet

GPT = "openai:gpt"


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


async def judged(
    store: Store, runs: list[RunRecord], *judges: str, server: OpenAIServer | None = None, **more: Any
) -> list[Judged]:
    options: dict[str, Any] = {"max_retries": 0, "call_timeout": 20, **more.pop("options", {})}
    if server is not None:
        options["base_url"] = server.base_url
    return await judge_runs(store, runs, make_panel(judges, always=()), ModelOptions(**options), **more)


def stored(store: Store, run: RunRecord) -> list[tuple[str, str, float | None]]:
    return [(score.judge, score.metric, score.value) for score in store.scores(run.id)]


async def test_what_was_added_is_told_in_the_panels_order_whoever_was_done_first(store: Store) -> None:
    run = ended_run(store)
    with OpenAIServer(Answer(text=answer(), delay=0.5)) as server:
        [told] = await judged(store, [run], GPT, "heuristic", server=server)
    assert list(dict.fromkeys(score.judge for score in told.added)) == [f"rubric:{GPT}", "heuristic"]
    assert stored(store, run)[0][0] == "heuristic"


async def test_the_truth_is_made_anew_from_the_seed_of_each_run(store: Store) -> None:
    right, other = ended_run(store, seed=3), ended_run(store, right_report(seed=4), seed=3)
    await judged(store, [right, other], "verified")
    full, less = ({metric: value for _, metric, value in stored(store, run)}["accuracy"] for run in (right, other))
    assert full == pytest.approx(1.0)
    assert less is not None
    assert less < 0.5


async def test_scores_are_added_with_judge_version_and_time_and_the_run_stays_as_it_was(store: Store) -> None:
    run = store.run(ended_run(store).id)
    before = store.events(run.id)
    [found] = await judged(store, [run], "heuristic", "scripted:referee")
    assert found.is_done
    assert store.events(run.id)[: len(before)] == before
    after = store.run(run.id)
    kept = {name: getattr(run, name) for name in ("metrics", "chain", "digest", "spent")}
    assert replace(after, **kept) == run
    assert after.digest not in (None, run.digest)
    assert list(unproven(store, run.id)) == []
    assert run.metrics.items() < after.metrics.items()
    assert sorted(score.judge for score in found.added) == sorted(score.judge for score in store.scores(run.id))
    assert {score.judge for score in found.added} == {"heuristic", "rubric:scripted:referee"}
    assert all(score.version and score.at > 1e9 for score in found.added)


async def test_the_same_judge_and_version_adds_nothing_unless_asked_again(store: Store) -> None:
    run = ended_run(store)
    await judged(store, [run], "heuristic", "scripted:referee")
    once = store.events(run.id)
    [second] = await judged(store, [run], "heuristic", "scripted:referee")
    assert (second.added, second.calls, store.events(run.id)) == ([], [], once)
    [third] = await judged(store, [run], "scripted:referee", again=True)
    assert [score.metric for score in third.added] == ["completeness", "quality", "accuracy"]
    assert len(store.events(run.id)) == len(once) + 4


async def test_a_judge_of_another_version_judges_once_more(store: Store) -> None:
    old = ScoreEvent(judge="heuristic", version="0", metric="heuristic_quality", value=0.1, reason="")
    run = ended_run(store, more=[old])
    [found] = await judged(store, [run], "heuristic")
    assert len(found.added) == 3
    assert stored(store, run)[0] == ("heuristic", "heuristic_quality", 0.1)


async def test_reports_that_a_dead_server_left_unscored_are_scored_later(
    store: Store,
) -> None:
    run = ended_run(store)
    with OpenAIServer(fault(500)) as server:
        [dead] = await judged(store, [run], GPT, server=server)
    assert not dead.is_done
    assert {score.value for score in dead.added} == {None}
    with OpenAIServer(Answer(text=answer())) as server:
        [alive] = await judged(store, [run], GPT, server=server)
    assert [score.value for score in alive.added] == [1.0, 0.5, 0.25]
    assert len(store.scores(run.id)) == 6
    with OpenAIServer(Answer(text="I'd rather not.")) as server:
        [unable] = await judged(store, [run], "openai:other", server=server)
        [again] = await judged(store, [run], "openai:other", server=server)
    assert unable.is_done
    assert (len([s for s in unable.added if s.judge == "rubric:openai:other"]), again.added) == (3, [])


async def test_calls_of_judges_are_recorded_apart_with_their_cost(store: Store) -> None:
    prices = PriceList.model_validate({"models": {GPT: {"input": "1000", "output": "2000"}}})
    run = ended_run(store, prices=prices)
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    with OpenAIServer([Answer(text="Hm.", usage=usage), Answer(text=answer(), usage=usage)]) as server:
        [found] = await judged(store, [run], GPT, server=server)
        [dearer] = await judged(store, [run], GPT, server=server, again=True, prices=PriceList())
    [used] = judging_usage(found.calls)
    assert (used.judge, used.calls, used.input_tokens, used.output_tokens) == (f"rubric:{GPT}", 2, 200, 20)
    assert used.cost == 2 * (100 * 1000 + 10 * 2000)
    assert judging_usage(dearer.calls)[0].cost == 100 // 2 + 10 * 3
    calls = [event for event in store.events(run.id) if event.type == "judge_call"]
    assert [call.model for call in calls] == [GPT] * 3
    assert store.run(run.id).usage.llm_calls == 1


async def test_judging_a_studys_runs_stays_within_its_cap(store: Store) -> None:
    prices = PriceList.model_validate({"models": {GPT: {"input": "1000", "output": "1000"}}})
    runs = [ended_run(store, seed=seed, study="capped", prices=prices) for seed in (1, 2, 3)]
    cap = 20_000_000
    study = {"name": "capped", "spec": {}, "cap": cap, "created": 0.0}
    store.write(lambda connection: connection.execute(sa.insert(schema.studies).values(study)))
    with OpenAIServer(Answer(text=answer(), delay=1)) as server:
        found = await judged(store, runs, GPT, server=server)
        costs = [sum(call.cost for call in one.calls) for one in found]
        assert 0 < sum(costs) <= cap
        unpaid = [score.reason for one in found for score in one.added if score.value is None]
        assert unpaid
        assert all("the cap of its study, can't pay the judge" in reason for reason in unpaid)
        store.write(lambda connection: connection.execute(sa.update(schema.studies).values(cap=cap * 9)))
        assert all(one.is_done for one in await judged(store, runs, GPT, server=server))
    assert study_counts(store, "capped").overspent(cap * 9) == 0


async def test_two_model_judges_have_a_mean_that_follows_when_a_third_comes(store: Store) -> None:
    run = ended_run(store)
    levels = {"one": 1, "two": 5, "three": 3}

    def rates(request: Json, _number: int) -> Answer:
        return Answer(text=answer(accuracy=levels[request["model"]]))

    with OpenAIServer(rates) as server:
        await judged(store, [run], "openai:one", server=server)
        assert not [score for score in store.scores(run.id) if score.judge == "rubric"]
        await judged(store, [run], "openai:one", "openai:two", server=server)
        await judged(store, [run], "openai:one", "openai:two", server=server)
        await judged(store, [run], "openai:three", server=server)
    means = [score for score in store.scores(run.id) if score.judge == "rubric" and score.metric == "accuracy"]
    assert [mean.value for mean in means] == [0.5, 0.5]
    assert means[0].details == {"judges": {"rubric:openai:one": 0.0, "rubric:openai:two": 1.0}}
    assert len(means[1].details["judges"]) == 3


async def test_there_is_no_mean_of_one_score(store: Store) -> None:
    run = ended_run(store)
    await judged(store, [run], "scripted:referee", "scripted:silent")
    means = [score for score in store.scores(run.id) if score.judge == "rubric"]
    assert {mean.value for mean in means} == {None}
    assert "1 of 2 model judges" in means[0].reason


async def test_a_run_of_another_version_of_the_task_is_not_judged_and_the_others_are(store: Store) -> None:
    then = ScoreEvent(
        judge="verified", version="0", metric="accuracy", value=0.5, reason="",
        details={"task": {"name": "anomaly", "version": "0"}},
    )  # fmt: skip
    old, new = ended_run(store, more=[then]), ended_run(store)
    first, second = await judged(store, [old, new], "verified")
    assert first.error is not None
    assert "version 0 of the task anomaly" in first.error
    assert first.added == []
    assert second.is_done


async def test_a_run_without_a_report_scores_zero_and_asks_nobody(store: Store) -> None:
    run = ended_run(store, "")
    [found] = await judged(store, [run], "verified", "scripted:referee")
    assert {score.value for score in found.added if score.metric != "skill"} == {0.0}
    assert all((score.value or 0) < 0 for score in found.added if score.metric == "skill")
    assert found.calls == []


async def test_a_judge_that_fails_breaks_neither_the_others_nor_the_mean(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("labmates.judges.heuristic.find_sections", lambda _: broken())
    run = ended_run(store)
    [found] = await judged(store, [run], "heuristic", "verified")
    assert [(s.judge, s.value, s.failed) for s in sorted(found.added, key=lambda s: s.judge)] == [
        *[("heuristic", None, True)] * 3,
        ("verified", pytest.approx(1.0), False), ("verified", pytest.approx(1.0), False),
        ("verified", 0.0, False)
    ]  # fmt: skip
    assert not found.is_done


async def test_calls_in_flight_are_bounded_whatever_the_number_of_runs_and_judges(store: Store) -> None:
    runs = [ended_run(store, f"Report {n}.") for n in range(6)]
    with OpenAIServer(Answer(text=answer(), delay=0.01)) as server:
        found = await judged(store, runs, "openai:a", "openai:b", server=server, options={"max_concurrent_calls": 2})
        assert server.peak <= 2
    assert all(one.is_done for one in found)
    assert len(server.requests) == 12


async def test_what_is_judged_stays_when_judging_is_stopped_and_the_rest_goes_on_later(store: Store) -> None:
    runs = [ended_run(store, f"Report {n}.") for n in range(4)]

    def slow(request: Json, _number: int) -> Answer:
        return Answer(text=answer(), silent="Report 0." not in request["messages"][-1]["content"])

    with OpenAIServer(slow) as server:
        seen: list[Judged] = []
        first = asyncio.Event()

        def watch(one: Judged) -> None:
            seen.append(one)
            first.set()

        task = asyncio.create_task(judged(store, runs, GPT, server=server, watch=watch))
        await first.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [one.run.id for one in seen] == [runs[0].id]
    assert [len(store.scores(run.id)) for run in runs] == [3, 0, 0, 0]
    with OpenAIServer(Answer(text=answer())) as server:
        await judged(store, runs, GPT, server=server)
        assert len(server.requests) == 3
    assert [len(store.scores(run.id)) for run in runs] == [3, 3, 3, 3]


async def test_two_that_judge_the_same_runs_at_once_lose_nothing(store: Store) -> None:
    runs = [ended_run(store, f"Report {n}.") for n in range(5)]
    other = Store(store.url)
    with OpenAIServer(Answer(text=answer(), delay=0.01)) as server:
        found = await asyncio.gather(
            judged(store, runs, "openai:a", server=server), judged(other, runs, "openai:b", server=server)
        )
    other.close()
    assert all(one.is_done for ones in found for one in ones)
    for run in runs:
        assert {score.judge for score in store.scores(run.id)} >= {"rubric:openai:a", "rubric:openai:b"}


def test_events_are_written_anew_if_another_process_was_quicker(store: Store) -> None:
    run = ended_run(store)
    made = 0

    def make(had: Any, _bodies: Any) -> list[Event]:
        nonlocal made
        made += 1
        if made == 1:
            add_events(store, run.id, lambda _had, _bodies: [score("other")])
        return [score(f"mine after {len(had)}")]

    add_events(store, run.id, make)
    assert [one.judge for one in store.scores(run.id)] == ["other", "mine after 1"]


def score(judge: str) -> ScoreEvent:
    return ScoreEvent(judge=judge, version="1", metric="quality", value=0.5, reason="")


async def test_a_model_that_can_not_be_asked_is_refused_before_anything_starts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ended_run(store)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        await judged(store, [run], "verified", GPT)
    assert store.scores(run.id) == []


async def test_judges_are_asked_with_seeds_of_the_run(store: Store) -> None:
    heard: list[int] = []

    with puppet(lambda one: heard.append(one.seed) or Draft(answer())) as model:  # type: ignore[func-returns-value]
        for seed in (1, 1, 2):
            await judged(store, [ended_run(store, "Report.", seed=seed)], model)
    assert heard[0] == heard[1] != heard[2]


def test_runs_that_have_not_ended_are_refused_by_name_and_left_out_otherwise(store: Store) -> None:
    ended, stopped = ended_run(store), ended_run(store, status="interrupted")
    exhausted = ended_run(store, status="exhausted")
    assert judgeable([ended, stopped, exhausted], strict=False) == [ended, exhausted]
    with pytest.raises(UsageError, match=rf"'{stopped.id}' has not ended \(interrupted\)"):
        judgeable([ended, stopped], strict=True)
    with pytest.raises(UsageError, match="has not ended"):
        judgeable([stopped], strict=False)


def test_a_kind_that_writes_no_report_can_not_be_judged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ended_run(store)
    silent: Any = None
    monkeypatch.setitem(EXPERIMENTS._loaded, "science", Experiment("science", ScienceCondition, silent, silent, ()))
    with pytest.raises(UsageError, match="of the kind science, which writes no report"):
        judgeable([run], strict=True)
    with pytest.raises(UsageError, match="which writes no report"):
        judgeable([run], strict=False)


def test_runs_are_chosen_by_id_study_kind_and_task(store: Store) -> None:
    one, two = ended_run(store, study="pilot"), ended_run(store, "Text.", task="ecology")
    assert [run.id for run in select_runs(store)] == [one.id, two.id] or len(select_runs(store)) == 2
    assert [run.id for run in select_runs(store, study="pilot")] == [one.id]
    assert [run.id for run in select_runs(store, task="ecology", kind="science")] == [two.id]
    assert [run.id for run in select_runs(store, [two.id, two.id])] == [two.id]
    with pytest.raises(UsageError, match="no run 'nope'"):
        select_runs(store, ["nope"])
    with pytest.raises(UsageError, match="has no run of study 'main', task 'ecology'"):
        select_runs(store, study="main", task="ecology")


def _verified(
    metric: str, value: float | None, version: str = "2", *, failed: bool = False, **details: object
) -> ScoreEvent:
    return ScoreEvent(
        judge="verified", version=version, metric=metric, value=value, reason="", details=details, failed=failed
    )


@pytest.mark.parametrize(
    ("had", "version", "done"),
    [
        ([], "2", False),
        ([_verified("accuracy", 0.5), _verified("provenance", 0.5)], "2", True),
        ([_verified("accuracy", None, failed=True), _verified("provenance", 0.5)], "2", False),
        ([_verified("accuracy", None, failed=True), _verified("accuracy", 0.5)], "2", True),
        ([_verified("all", None, failed=True), _verified("accuracy", 0.5)], "2", True),
        ([_verified("accuracy", 0.5), _verified("all", None, failed=True)], "2", False),
        ([_verified("accuracy", 0.5)], "3", False),
        ([_verified("accuracy", 0.5, readable=True)], "2+m", True),
        ([_verified("accuracy", 0.0, readable=False)], "2+m", False),
        ([_verified("accuracy", 0.0, "2+m", readable=False), _verified("provenance", 0.0)], "2+m", True),
    ],
)
def test_a_judge_has_judged_when_no_metric_of_it_is_left_failed(
    had: list[ScoreEvent], version: str, done: bool
) -> None:
    assert has_judged("verified", version, had) is done


async def test_the_metrics_of_a_run_follow_its_newest_judges(store: Store) -> None:
    run = ended_run(store)
    assert "skill" not in run.metrics
    [found] = await judged(store, [run], "heuristic", "verified")
    metrics = store.run(run.id).metrics
    values = {(score.judge, score.metric): score.value for score in found.added}
    assert metrics["skill"] == values["verified", "skill"] == pytest.approx(1.0)
    assert metrics["accuracy"] == values["verified", "accuracy"]
    assert metrics["provenance"] == values["verified", "provenance"] == 0.0
    assert metrics["heuristic_quality"] == values["heuristic", "heuristic_quality"]
    assert metrics["readable"] == 1.0
    assert set(run.metrics) <= set(metrics)
