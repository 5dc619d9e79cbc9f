from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.errors import ContextOverflowError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records import schema
from labmates.records.events import ChargeEvent, Event, LLMCallEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.audit import audit, begun_runs
from labmates.studies.fork import changed, fork, whole_steps
from labmates.studies.replay import replay
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support import plays
from tests.support.plays import busy_without_code, looking
from tests.support.puppet import Play, agent_of, dutiful, puppet, step_of, turn_of
from tests.support.story import story

SETTINGS = RunSettings(sandbox="unsafe-local")
UNHEARD = {"temperature": 0.5}
"""A change of which the models hear nothing, so that the fork must come to the same end."""


@dataclass
class Listener:
    """A play that counts how often it is asked."""

    play: Play
    asked: int = 0

    def __call__(self, heard: Heard) -> Draft:
        self.asked += 1
        return self.play(heard)


async def played(store: Store, play: Play, **condition: Any) -> RunRecord:
    return await plays.played(store, play, **{"prices": {"tool_call": "0.0001"}, **condition})


async def go_on(store: Store, run: RunRecord) -> RunRecord:
    [ended] = await Session(store, SETTINGS).execute([run])
    return ended


def number_of(events: Sequence[Event], fits: Callable[[Event], bool]) -> int:
    return next(number for number, event in enumerate(events) if fits(event))


def spent_by(store: Store, run_id: str) -> int:
    query = sa.select(schema.runs.c.spent).where(schema.runs.c.id == run_id)
    return int(store.read(lambda connection: connection.execute(query).scalar_one()))


POINTS: dict[str, Callable[[Sequence[Event]], int]] = {
    "the first event": lambda _: 0,
    "within a step": lambda events: 1 + number_of(events, lambda e: e.type == "llm_call"),
    "the data team's parallel work": lambda events: number_of(events, lambda e: e.step.endswith("data_lead/work/1")),
    "between a reply and its tools": lambda events: number_of(events, lambda e: isinstance(e, ToolCallEvent)),
    "between two tools of a reply": lambda events: number_of(events, lambda e: e.step.endswith("work/3/1")),
    "the middle of a repair": lambda events: 1 + number_of(events, lambda e: e.type == "failed_reply"),
    "a request to another team": lambda events: number_of(events, lambda e: e.type == "request"),
    "the second phase of a team": lambda events: number_of(events, lambda e: e.step == "data/1/data_lead/work/0"),
    "after that phase": lambda events: number_of(events, lambda e: e.step == "model/0/ml_engineer/work/3"),
    "the writing": lambda events: number_of(events, lambda e: e.step == "writing/0/methods_writer/work/0"),
    "the last text": lambda events: number_of(events, lambda e: e.step == "writing/0/final_paper/1"),
    "the end": len,
}


async def test_a_fork_goes_on_from_any_point_to_the_same_end_and_asks_for_nothing_twice(store: Store) -> None:
    origin = await played(store, busy_without_code)
    expected, events = story(store, origin.id), store.events(origin.id)
    for name, point in POINTS.items():
        at = point(events)
        forked = await fork(store, origin.id, at=at, changes=UNHEARD)
        taken = events[: whole_steps(events, at)]
        paid = sum(event.amount for event in taken if isinstance(event, ChargeEvent))
        assert spent_by(store, forked.id) == 0, name
        assert (forked.study, forked.origin) == (None, f"{origin.id}@{len(taken)}"), name
        assert store.events(forked.id) == taken, name

        listener = Listener(busy_without_code)
        with puppet(listener):
            run = await go_on(store, store.run(forked.id))

        assert run.status == "completed", name
        assert story(store, run.id) == expected, name
        calls = expected["types"]["llm_call"] - sum(isinstance(event, LLMCallEvent) for event in taken)
        assert listener.asked == calls, name
        assert (run.budget, run.metrics, run.usage) == (origin.budget, origin.metrics, origin.usage), name
        assert run.budget is not None
        assert spent_by(store, run.id) == sum(expected["charges"].values()) - paid, name
        assert run.key != origin.key
    assert story(store, origin.id) == expected
    assert [fault for _, faults in audit(store, begun_runs(store)) for fault in faults] == []


async def test_a_run_of_one_agent_alone_is_forked_too(store: Store) -> None:
    origin = await played(store, dutiful, model="scripted:silent", solo=True)
    expected, events = story(store, origin.id), store.events(origin.id)
    for share in (0.2, 0.5, 0.9):
        run = await go_on(store, await fork(store, origin.id, at=int(share * len(events)), changes=UNHEARD))
        assert story(store, run.id) == expected, share


async def test_a_fork_is_forked_and_replayed_like_any_run(store: Store) -> None:
    origin = await played(store, dutiful, model="scripted:silent")
    first = await go_on(store, await fork(store, origin.id, at=50, changes={"visibility": "hidden"}))
    second = await go_on(store, await fork(store, first.id, at=100, changes={"visibility": "team"}))
    assert second.origin == f"{first.id}@{whole_steps(store.events(first.id), 100)}"
    common = whole_steps(store.events(origin.id), 50)
    assert store.events(second.id)[:common] == store.events(origin.id)[:common]
    found = await replay(store, second)
    assert found.is_same, found.differences


async def test_code_that_is_taken_over_runs_again_before_new_code_needs_it(store: Store) -> None:
    origin = await played(store, looking)
    events = store.events(origin.id)
    at = number_of(events, lambda event: event.step == "data/0/data_lead/work/1")
    forked = await fork(store, origin.id, at=at, changes=UNHEARD)
    with puppet(looking):
        run = await go_on(store, forked)
    assert story(store, run.id)["tools"] == story(store, origin.id)["tools"]
    found = await replay(store, run)
    assert found.is_same, found.differences


async def test_a_changed_model_of_one_team_writes_from_what_the_others_had_found(store: Store) -> None:
    origin = await played(store, busy_without_code)
    events = store.events(origin.id)
    at = number_of(events, lambda event: event.team == "writing")
    forked = await fork(store, origin.id, at=at, changes={"model.writing": "scripted:silent", "budget": "2"})
    run = await go_on(store, forked)
    calls = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent)]
    assert {call.team for call in calls if call.model == "scripted:silent"} == {"writing"}
    assert {call.team for call in calls if call.model == "scripted:puppet"} == {"data", "model", "eval"}
    assert run.condition["model_for"] == {"writing": "scripted:silent"}
    assert run.models == ["scripted:puppet", "scripted:silent"]
    assert run.budget is not None
    assert run.budget["total"] == "2"
    found = await replay(store, run)
    assert found.is_same, found.differences
    assert found.taken_over == at


async def test_a_larger_budget_resumes_an_exhausted_run_where_its_first_agent_stopped(
    store: Store,
) -> None:
    origin = await played(store, busy_without_code, budget="0.03", reserve="0")
    assert origin.status == "exhausted"
    events = store.events(origin.id)
    with pytest.raises(UsageError, match="'model/0/ml_engineer/work/4'"):
        await fork(store, origin.id, at=len(events), changes={"budget": 1})
    at = number_of(events, lambda event: event.step == "model/0/ml_engineer/work/4")
    forked = await fork(store, origin.id, at=at, changes={"budget": 1})
    with puppet(busy_without_code):
        run = await go_on(store, forked)
    assert run.status == "completed"
    assert run.budget is not None
    assert float(run.budget["spent"]) > 0.03


async def test_a_transcript_that_no_model_could_hold_is_not_asked_again(store: Store) -> None:
    def small(heard: Heard) -> Draft:
        if step_of(heard) == "work" and agent_of(heard) == "data_lead":
            if any("x" * 1000 in text_of(message.content) for message in heard.messages) or turn_of(heard):
                raise ContextOverflowError("too long")
            return Draft("", (call("list_artifacts"),))
        return dutiful(heard)

    origin = await played(store, small)
    events = store.events(origin.id)
    assert any("can't be shortened" in event.text for event in events if event.type == "warning")
    at = number_of(events, lambda event: event.team == "eval")
    forked = await fork(store, origin.id, at=at, changes=UNHEARD)
    with puppet(dutiful):
        run = await go_on(store, forked)
    assert story(store, run.id) == story(store, origin.id)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"deliberation_rounds": 0}, "'data/0/data_lead/deliberation/1/0'"),
        ({"max_turns": 1}, "'data/0/data_lead/work/1'"),
        ({"repair_turns": 0}, "'data/0/data_engineer/deliberation/1/1'"),
        ({"team_size": 3}, "'data/0/data_lead/work/0'"),
        ({"max_requests": 0}, "no further request"),
        ({"budget": "0.001"}, r"\$0.0010 is too small at event \d+ .* are spent there already"),
    ],
)
async def test_a_change_under_which_the_record_would_not_have_come_about_is_refused(
    origin: tuple[Store, RunRecord], changes: dict[str, Any], says: str
) -> None:
    store, run = origin
    events = store.events(run.id)
    at = number_of(events, lambda event: event.step == "eval/0/phase")
    with pytest.raises(UsageError, match=says):
        await fork(store, run.id, at=at, changes=changes)
    assert [one.id for one in store.runs()] == [run.id]


@pytest.mark.parametrize("changes", [{"visibility": "hidden"}, {"theory_of_mind": True}, {"code_timeout": 60}])
async def test_a_change_that_only_the_future_hears_of_is_taken(
    origin: tuple[Store, RunRecord], changes: dict[str, Any]
) -> None:
    store, run = origin
    at = number_of(store.events(run.id), lambda event: event.step == "eval/0/phase")
    forked = await fork(store, run.id, at=at, changes=changes)
    assert {**run.condition, **forked.condition, **changes} == forked.condition
    with store.engine.begin() as connection:
        connection.execute(sa.delete(schema.runs).where(schema.runs.c.id == forked.id))


@pytest.mark.parametrize("at", [-1, 100_000])
async def test_an_event_that_is_not_there_is_refused_with_the_range(origin: tuple[Store, RunRecord], at: int) -> None:
    store, run = origin
    with pytest.raises(UsageError, match=f"no event {at} to fork at; allowed: 0 to {len(store.events(run.id))}"):
        await fork(store, run.id, at=at, changes=UNHEARD)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, RunRecord]]:
    """Return a run that nobody changes."""
    import asyncio

    store = Store(f"sqlite:///{tmp_path_factory.mktemp('origin')}/runs.db")
    yield store, asyncio.run(played(store, busy_without_code))
    store.close()


CONDITION = ScienceCondition(task="anomaly", model="scripted:silent", model_for={"eval": "scripted:hasty"})


def test_changes_reach_fields_entries_and_prices() -> None:
    new = changed(
        CONDITION,
        {
            "model.writing": "scripted:diligent",
            "model_for.data": "scripted:garbage",
            "temperature": 0.5,
            "prices.tool_call": "0.01",
            "prices.default.input": 1,
            "prices.models.openai:gpt-5.4-mini": {"input": "0.1", "output": "0.2"},
        },
    )
    assert isinstance(new, ScienceCondition)
    assert new.model_for == {"data": "scripted:garbage", "eval": "scripted:hasty", "writing": "scripted:diligent"}
    assert (new.model, new.temperature) == ("scripted:silent", 0.5)
    assert (new.prices.tool_call, new.prices.default.input) == (10_000, 1_000_000)
    assert new.prices.of("openai:gpt-5.4-mini").output == 200_000


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "a fork needs a change"),
        ({"task": "ecology"}, "can't change task"),
        ({"difficulty": "hard"}, "can't change difficulty"),
        ({"seed": 3}, "can't change seed"),
        ({"solo": True}, "can't change solo"),
        ({"budgte": 3}, "Did you mean 'budget'"),
        ({"budget.writing": 3}, "budget is one value and has no entry 'writing'"),
        ({"budget": "much"}, "budget: 'much' is not a dollar amount"),
        ({"team_size": 9}, "team_size: the largest team of pipeline has 3 seats"),
        ({"model.kitchen": "scripted:silent"}, "unknown team or seat 'kitchen'. Teams: data, model, eval, writing"),
        ({"model": "scripted:silent"}, "do not alter the condition"),
    ],
)
def test_a_wrong_change_is_refused_with_what_is_allowed(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        changed(CONDITION, changes)
