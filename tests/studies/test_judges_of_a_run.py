"""Further judges of a run when it ends: asked through the run's settings, apart from the teams and their budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labmates.api import ajudge, arun, load
from labmates.errors import UsageError
from labmates.judges.rubric import VERSION
from labmates.models.scripted.base import Draft, Heard
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from tests.judges.conftest import answer
from tests.support.openai_server import Answer, OpenAIServer, fault
from tests.support.puppet import Play, dutiful, puppet

CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy"}


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def without_findings(heard: Heard) -> Draft:
    """Be dutiful, but state no findings."""
    draft = dutiful(heard)
    return replace(draft, calls=tuple(one for one in draft.calls if one.name != "state_findings"))


async def ran(store: Store, *judges: str, play: Play = dutiful, **settings: Any) -> RunRecord:
    models = {"max_retries": 0, "call_timeout": 20, **settings.pop("models", {})}
    chosen = RunSettings(sandbox="unsafe-local", judges=judges, models=models, **settings)
    with puppet(play) as model:
        [run] = await arun("science", store=store.url, settings=chosen, model=model, **CONDITION)
    return run


async def test_further_judges_score_with_heuristic_and_verified_and_cost_the_teams_nothing(store: Store) -> None:
    plain = await ran(store, play=without_findings)
    with OpenAIServer(Answer(text=answer())) as server:
        chosen = {"base_url": server.base_url}
        run = await ran(store, "openai:gpt", play=without_findings, models=chosen)
    assert run.status == "completed"
    by_judge = {score.judge: score for score in store.scores(run.id)}
    assert list(by_judge) == ["heuristic", "verified", "rubric:openai:gpt"]
    assert by_judge["rubric:openai:gpt"].version == VERSION
    assert (run.usage, run.budget, run.key) == (plain.usage, plain.budget, plain.key)
    assert run.models == plain.models
    events = store.events(run.id)
    assert sum(event.type == "llm_call" for event in events) == run.usage.llm_calls
    # One by rubrics; one extraction, since this team stated no findings, with its repair turns.
    assert [e.judge for e in events if e.type == "judge_call"] == ["verified"] * 3 + ["rubric:openai:gpt"]


async def test_judges_may_be_asked_at_another_server_than_the_teams_models(store: Store) -> None:
    teams, judge = OpenAIServer(Answer(text="")), OpenAIServer(Answer(text=answer()))
    with teams, judge:
        settings = RunSettings(
            sandbox="unsafe-local",
            judges=(f"openai:gpt?base_url={judge.base_url}",),
            models={"base_url": teams.base_url, "max_retries": 0},
        )
        [run] = await arun("science", store=store.url, settings=settings, model="openai:team", **CONDITION)
    assert run.status == "completed"
    assert {request.body["model"] for request in teams.requests} == {"team"}
    assert judge.requests == []  # That team wrote no paper, so there is nothing to ask about.
    assert {s.value for s in store.scores(run.id) if s.judge == "rubric:openai:gpt"} == {0.0}


async def test_a_judge_that_can_not_be_reached_fails_no_run(store: Store) -> None:
    with OpenAIServer(fault(500)) as server:
        run = await ran(store, "openai:gpt", models={"base_url": server.base_url})
    assert run.status == "completed"
    assert run.metrics["completeness"] == 0
    unscored = [score for score in store.scores(run.id) if score.judge == "rubric:openai:gpt"]
    assert [(score.value, score.failed) for score in unscored] == [(None, True)] * 3


async def test_a_wrong_judge_is_refused_before_the_run_starts(store: Store) -> None:
    with pytest.raises(UsageError, match="unknown judge 'heuristics'"):
        await ran(store, "heuristics")
    assert list(store.runs()) == []


async def test_a_run_that_is_taken_up_again_is_judged_by_its_own_judges_once(store: Store) -> None:
    calls = 0

    def stops(heard: Heard) -> Draft:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise RuntimeError("stop here")
        return dutiful(heard)

    settings = RunSettings(sandbox="unsafe-local", judges=("scripted:referee",))
    with puppet(stops) as model:
        [run] = await arun("science", store=store.url, settings=settings, model=model, **CONDITION)
        assert run.status == "failed"
        again = RunSettings.model_validate(store.run(run.id).settings)
        [ended] = await Session(store, again).execute([stopped_run(store, run.id)])
    assert ended.status == "completed"
    judges = [score.judge for score in store.scores(run.id)]
    assert judges == ["heuristic"] * 3 + ["verified"] * 3 + ["rubric:scripted:referee"] * 3


async def test_judging_later_from_python_gives_what_judging_at_the_end_gives(store: Store) -> None:
    first = await ran(store, "scripted:referee")
    second = await ran(store)
    [found] = await ajudge([second.id], ["scripted:referee"], store=store.url)
    assert [(s.judge, s.metric, s.value, s.reason) for s in found.added] == [
        (s.judge, s.metric, s.value, s.reason) for s in store.scores(first.id) if s.judge == "rubric:scripted:referee"
    ]
    frame = load("scores", store=store.url)
    assert set(frame["judge"]) == {"heuristic", "verified", "rubric:scripted:referee"}
    with pytest.raises(UsageError, match="call_timeout"):
        await ajudge([second.id], store=store.url, models={"call_timeout": -1})
