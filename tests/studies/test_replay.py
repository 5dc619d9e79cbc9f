from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.budgets.tokens import estimate_messages, text_of
from labmates.errors import UsageError
from labmates.judges.panel import make_panel
from labmates.models.errors import ContextOverflowError
from labmates.models.options import ModelOptions
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.bodies import Bodies
from labmates.records.events import ErrorEvent, Event, LLMCallEvent, ScoreEvent
from labmates.records.run import RunRecord, new_run_id
from labmates.records.store import Store
from labmates.studies.judging import judge_runs
from labmates.studies.replay import replay
from labmates.studies.rerun import differences_of_run
from labmates.studies.settings import RunSettings
from tests.support import plays
from tests.support.plays import busy_without_code, looking
from tests.support.puppet import Play, agent_of, dutiful, puppet, step_of, turn_of

SETTINGS = RunSettings(sandbox="unsafe-local")


async def played(store: Store, play: Play, **condition: Any) -> RunRecord:
    """Execute a run by a play, then let nobody ask its model again."""
    run = await plays.played(store, play, **condition)

    def asked(heard: Heard) -> Draft:
        raise AssertionError("a replay must ask no model")

    with puppet(asked):  # from now on
        return run


def copy(store: Store, run: RunRecord, events: Sequence[Event], **changes: Any) -> RunRecord:
    """Put the same run with other events into the store."""
    other = replace(run, id=new_run_id(), **changes)
    store.create(other, events=events, bodies=store.bodies(run.id))
    return other


@pytest.mark.parametrize("play", [busy_without_code, looking])
async def test_a_run_with_requests_repairs_and_code_gives_the_same_events_again(store: Store, play: Play) -> None:
    run = await played(store, play, prices={"tool_call": "0.0001"})
    before = store.events(run.id)
    found = await replay(store, run)
    assert found.is_same, found.differences
    assert dict(found.left_out) == {}
    assert sum(found.compared.values()) == len(before)
    assert found.compared["tool_call"] >= 9  # the paper's author calls no tool at work
    assert store.events(run.id) == before
    assert [one.id for one in store.runs()] == [run.id]


async def test_replies_of_every_malformed_kind_come_out_of_the_record_as_they_went_in(store: Store) -> None:
    run = await played(store, busy_without_code, model="scripted:garbage", max_turns=2)
    found = await replay(store, run)
    assert found.is_same, found.differences
    assert found.compared["failed_reply"] > 10


async def test_an_exhausted_run_ends_as_exhausted_again(store: Store) -> None:
    run = await played(store, busy_without_code, budget="0.02")
    assert run.status == "exhausted"
    found = await replay(store, run)
    assert found.is_same, found.differences


async def test_a_replay_tells_what_has_changed_since_the_run_was_made(store: Store) -> None:
    run = await played(store, busy_without_code, budget="0.02")
    told: list[str] = []
    await replay(store, run, notify=told.append)
    before = list(told)
    assert run.made is not None
    await replay(store, replace(run, made={**run.made, "science": "0123456789abcdef"}), notify=told.append)
    (changed,) = [text for text in told if text not in before]
    assert "science (1 run with 0123456789abcdef, now " in changed


def running(*cells: str) -> Play:
    """A play whose first agent runs code, one cell a turn."""

    def runs(heard: Heard) -> Draft:
        if step_of(heard) == "work" and agent_of(heard) == "data_lead" and turn_of(heard) < len(cells):
            return Draft("", (call("run_code", code=cells[turn_of(heard)]),))
        return dutiful(heard)

    return runs


async def test_code_that_prints_something_else_is_told_apart_from_a_record_that_contradicts_itself(
    store: Store,
) -> None:
    chance = "import uuid\nprint(uuid.uuid4())"
    run = await played(store, running("seen = 1", chance, "seen", "import time; time.time_ns()"))
    found = await replay(store, run)
    assert (found.is_same, found.follows, found.is_whole, found.differences) == (False, True, True, ())
    work = "data/0/data_lead/work"
    assert [(one.step, one.type, one.field) for one in found.cells] == [
        (f"{work}/1/0", "tool_call", "result"),
        (f"{work}/3/0", "tool_call", "result"),
    ]
    assert found.ran == 4
    assert found.cells[0].recorded != found.cells[0].now
    said = Bodies(store.bodies(run.id))
    events = store.events(run.id)
    [event] = [event for event in events if event.type == "tool_call" and event.step == f"{work}/1/0"]
    assert found.cells[0].recorded == str(said[event.result])


async def test_an_output_that_was_changed_in_the_record_contradicts_what_follows(store: Store) -> None:
    run = await played(store, running("print('seen')"))
    events = store.events(run.id)
    [ran] = [event for event in events if event.type == "tool_call" and event.status]
    other = next(event.content for event in events if event.type == "artifact")
    forged = ran.model_copy(update={"result": other})
    found = await replay(store, copy(store, run, [forged if event is ran else event for event in events]))
    assert not found.follows
    assert [one.step for one in found.cells] == [forged.step]
    assert (found.differences[0].step, found.differences[0].field) == ("data/0/data_lead/work/1", "messages")


async def test_code_that_was_stopped_and_is_stopped_again_is_the_same_wherever_it_was(store: Store) -> None:
    run = await played(store, running("n = 0\nwhile True:\n    print(n := n + 1, id(object()))"), code_timeout=0.2)
    assert [e.status for e in store.events(run.id) if e.type == "tool_call" and e.status] == ["timeout"]
    found = await replay(store, run)
    assert found.is_same, (found.differences, found.cells)
    assert found.ran == 1


async def test_a_call_that_the_record_lacks_is_told_and_ends_the_replay(store: Store) -> None:
    run = await played(store, busy_without_code)
    step = "model/0/ml_engineer/work/2"
    events = [e for e in store.events(run.id) if not (isinstance(e, LLMCallEvent) and e.step == step)]
    found = await replay(store, copy(store, run, events))
    assert not found.is_same
    assert not found.is_whole
    assert [(one.step, one.type, one.recorded) for one in found.differences] == [(step, "llm_call", None)]


async def test_an_event_that_does_not_come_any_more_is_a_difference(store: Store) -> None:
    run = await played(store, busy_without_code)
    events = store.events(run.id)
    [message, *_] = [e for e in events if e.type == "message"]
    more = message.model_copy(update={"step": "data/0/data_lead/deliberation/9"})
    [gone] = [e for e in events if e.step == "data/0/end"]
    found = await replay(store, copy(store, run, [*(e for e in events if e is not gone), more]))
    assert [(d.step, d.type, d.recorded, d.now) for d in found.differences] == [
        (more.step, "message", "an event", None),
        (gone.step, "phase", None, "an event"),
    ]


async def test_how_a_run_ended_is_compared_too(store: Store) -> None:
    run = await played(store, busy_without_code)
    found = await replay(store, copy(store, run, store.events(run.id), status="exhausted"))
    [difference] = found.differences
    assert (difference.type, difference.recorded, difference.now) == ("run", "exhausted", "completed")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metrics": {"phases": 0.99}}, "metrics.phases"),
        ({"usage": {"input_tokens": 1}}, "usage.input_tokens"),
        ({"usage": {"tool_calls": 1}}, "usage.tool_calls"),
        ({"invalid": "nobody likes it"}, "invalid"),
    ],
)
async def test_numbers_that_were_edited_are_found(store: Store, changes: dict[str, Any], field: str) -> None:
    run = await played(store, busy_without_code)
    edited = dict(changes)
    if "metrics" in changes:
        edited["metrics"] = {**run.metrics, **changes["metrics"]}
    if "usage" in changes:
        edited["usage"] = replace(run.usage, **changes["usage"])
    found = await replay(store, copy(store, run, store.events(run.id), **edited))
    [difference] = found.differences
    assert (difference.type, difference.field) == ("run", field)
    assert not found.is_same


async def test_a_metric_that_was_added_or_lost_is_found(store: Store) -> None:
    run = await played(store, busy_without_code)
    for metrics in ({**run.metrics, "invented": 1.0}, {k: v for k, v in run.metrics.items() if k != "phases"}):
        [difference] = (await replay(store, copy(store, run, store.events(run.id), metrics=metrics))).differences
        assert difference.field in ("metrics.invented", "metrics.phases")
    earlier = replace(run, made=None, metrics={"phases": run.metrics["phases"]})
    assert not list(differences_of_run(earlier, run))


async def test_transcripts_that_were_too_long_are_so_again(store: Store) -> None:
    def small(heard: Heard) -> Draft:
        if step_of(heard) != "work" or agent_of(heard) not in ("data_lead", "data_engineer"):
            return dutiful(heard)
        if sum(len(text_of(message.content)) for message in heard.messages[2:]) > 3_000:
            raise ContextOverflowError("too long")
        if agent_of(heard) == "data_engineer" and turn_of(heard):
            raise ContextOverflowError("too long in any version")
        return Draft("x" * 1_000, (call("list_artifacts"),))

    run = await played(store, small)
    warnings = [event.text for event in store.events(run.id) if event.type == "warning"]
    assert {text.partition("; ")[2] for text in warnings if "overflowed" in text} == {
        "the transcript was shortened",
        "it can't be shortened further",
    }
    found = await replay(store, run)
    assert found.is_same, found.differences
    assert found.compared["warning"] > 1


async def test_a_transcript_is_compacted_before_the_model_would_refuse_it_and_so_again(store: Store) -> None:
    context, sent = 6_000, []

    def talkative(heard: Heard) -> Draft:
        sent.append(estimate_messages(heard.messages, heard.tools) + (heard.max_tokens or 0))
        if step_of(heard) != "work" or turn_of(heard) > 5:
            return dutiful(heard)
        return Draft("word " * 600, (call("list_artifacts"),))

    run = await played(store, talkative, context_tokens=context, max_output_tokens=1_000)
    warnings = [event for event in store.events(run.id) if event.type == "warning"]
    compacted = [event.step for event in warnings if "compacted from about" in event.text]
    assert compacted
    assert all(step.endswith("/compacted") for step in compacted)
    assert max(sent) <= context
    found = await replay(store, run)
    assert found.is_same, found.differences
    assert found.compared["warning"] == len(warnings)


async def test_what_judges_said_later_is_compared_and_why_attempts_failed_is_left_out(store: Store) -> None:
    run = await played(store, busy_without_code)
    events = store.events(run.id)
    first = next(event for event in events if isinstance(event, ScoreEvent))
    failed = first.model_copy(update={"judge": "rubric:scripted:referee", "value": None, "failed": True})
    found = await replay(store, copy(store, run, [events[0], ErrorEvent(text="lost"), *events[1:], first, failed]))
    assert found.is_same, found.differences
    assert dict(found.left_out) == {"error": 1, "score": 1}
    later = first.model_copy(update={"value": 0.123})
    [difference] = (await replay(store, copy(store, run, [*events, later]))).differences
    assert (difference.step, difference.field) == (f"{first.judge} {first.metric}", "value")


async def test_what_models_have_judged_is_judged_again_from_their_recorded_answers(store: Store) -> None:
    run = await played(store, busy_without_code)
    panel = make_panel(["scripted:referee", "scripted:garbage"])
    [judged] = await judge_runs(store, [run], panel, ModelOptions(), again=True)
    assert judged.error is None
    events = store.events(run.id)
    found = await replay(store, store.run(run.id))
    assert found.is_same, found.differences
    assert found.compared["judge_call"] > 1
    for judge in ("rubric:scripted:referee", "rubric"):
        forged = [
            e.model_copy(update={"value": 0.9}) if isinstance(e, ScoreEvent) and e.judge == judge else e for e in events
        ]
        wrong = (await replay(store, copy(store, store.run(run.id), forged))).differences
        assert judge in {difference.step.partition(" ")[0] for difference in wrong}
    referee = "rubric:scripted:referee"  # Verdicts are stored in the order in which they come.
    asked = next(n for n, event in enumerate(events) if event.type == "judge_call" and event.judge == referee)
    lost = (await replay(store, copy(store, store.run(run.id), events[:asked] + events[asked + 1 :]))).differences
    assert (referee, "value", "null") in {(d.step.partition(" ")[0], d.field, d.now) for d in lost}


async def test_a_score_that_a_model_helped_with_is_left_out(store: Store) -> None:
    run = await played(store, busy_without_code)
    events = [
        e.model_copy(update={"version": "1+model", "value": 0.9})
        if isinstance(e, ScoreEvent) and e.judge == "verified"
        else e
        for e in store.events(run.id)
    ]
    found = await replay(store, copy(store, run, events))
    assert found.is_same, found.differences
    assert dict(found.left_out) == {"score": 3}


async def test_another_score_of_a_judge_without_a_model_is_a_difference(store: Store) -> None:
    run = await played(store, busy_without_code)
    events = [e.model_copy(update={"value": 0.77}) if isinstance(e, ScoreEvent) else e for e in store.events(run.id)]
    found = await replay(store, copy(store, run, events))
    assert {(one.step, one.field) for one in found.differences} == {
        ("heuristic completeness", "value"),
        ("heuristic heuristic_quality", "value"),
        ("heuristic accuracy", "value"),
        ("verified accuracy", "value"),
        ("verified skill", "value"),
        ("verified provenance", "value"),
    }


async def test_a_body_that_was_changed_is_found(store: Store) -> None:
    run = await played(store, busy_without_code)
    bodies, events = Bodies(store.bodies(run.id)), store.events(run.id)
    number = next(e.content for e in events if e.type == "artifact")
    other = replace(run, id=new_run_id())
    changed = Bodies()
    for n in range(1, len(store.bodies(run.id)) + 1):
        changed.keep("forged" if n == number else bodies[n])
    store.create(other, events=events, bodies=changed.take_new())
    found = await replay(store, other)
    assert ("artifact", "content") in {(one.type, one.field) for one in found.differences}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "interrupted"}, r"has not ended \(interrupted\)"),
        ({"status": "failed"}, r"has not ended \(failed\)"),
        ({"kind": "opera"}, "no experiment 'opera' is installed here"),
        ({"origin": "somewhere"}, "can't be replayed"),
        ({"origin": "abc@7"}, "can't be replayed"),
        ({"condition": {"task": "anomaly"}}, "from another version of labmates: model: this key is missing$"),
    ],
)
async def test_a_run_that_can_not_be_replayed_is_refused(store: Store, changes: dict[str, Any], says: str) -> None:
    run = RunRecord(
        id="abc",
        kind="science",
        key="k",
        replicate=0,
        seed=0,
        condition={"task": "anomaly", "model": "scripted:silent"},
        models=["scripted:silent"],
        status="completed",
    )
    with pytest.raises(UsageError, match=says):
        await replay(store, replace(run, **changes))
