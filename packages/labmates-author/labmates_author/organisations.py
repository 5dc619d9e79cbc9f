"""The check of an organisation: two offline runs with a scripted model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from labmates.agents.steps import find_step, kinds_by_label, label_of
from labmates.budgets.money import show_dollars
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    FindingsEvent,
    LLMCallEvent,
    MessageEvent,
    ToolCallEvent,
    WarningEvent,
    fields_with_bodies,
)
from labmates.records.recorder import Recorder
from labmates.tasks.registry import get_task
from labmates.workflows.calls.call import outer_step
from labmates.workflows.people.approval import approve_all
from labmates.workflows.protocol.experiment import EXPERIMENTS, Outcome
from labmates.workflows.protocol.unkept import unkept_services
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates_author.trial import Mild, Trial

RULES = {
    "ends": "it ends before its pool is empty",
    "delivers": "every artifact is written",
    "states": "the findings of the paper are stated",
    "seats": "every seat works",
    "valid": "the run is valid",
    "pays": "it spends no more than its pool",
    "shares": "no seat spends more than its share",
    "agents": "external agents do nothing but their work",
    "private": "no seat reads beyond its channels",
    "measured": "every call belongs to a step that declares it",
    "evidence": "divided evidence can be brought together",
    "repeats": "the same seed gives the same events",
}
"""The rules in order, each with the property of an organisation that passes."""


async def check_organisation(condition: ScienceCondition, seed: int = 0) -> Trial:
    """Run an organisation twice, and apply the rules.

    Parameters
    ----------
    condition
        With scripted models, since the runs are not stored. They also replace people; other external agents work as in
        any run.
    """
    people = {name: condition.model for name, (_, seat) in condition.organisation.seats.items() if seat.human}
    if people:
        condition = condition.model_copy(update={"model_for": {**people, **condition.model_for}})
    condition.check()
    if any(seat.evidence is not None for _, seat in condition.organisation.seats.values()):
        condition.check_instruments()
    lost = condition.dead_end() if get_task(condition.task).instruments else ""
    first, recorder = await _run(condition, seed)
    second, again = await _run(condition, seed)
    spent = recorder.spent()
    over = f"{show_dollars(spent)} of {show_dollars(condition.pool)}" if spent > condition.pool else ""
    written = {event.name for event in recorder.events if isinstance(event, ArtifactEvent)}
    missing = [name for name in condition.organisation.handed if name not in written]
    stated = any(isinstance(e, FindingsEvent) and e.team == condition.organisation.author for e in recorder.events)
    found: dict[str, str | Mild] = {
        "ends": "the pool ran out" if first.status == "exhausted" else "",
        "delivers": f"not written: {', '.join(missing)}" if missing else "",
        "states": "" if stated else "no findings were stated",
        "seats": next(_idle(condition, recorder), ""),
        "valid": first.invalid or "",
        "pays": over,
        "shares": next(_overspent(condition, recorder), ""),
        "agents": next(_misdeeds(condition, recorder), ""),
        "private": next(_peeks(condition, recorder), ""),
        "measured": next(_unmeasured(condition, recorder), ""),
        "evidence": Mild(lost) if lost else "",
        "repeats": _difference(first, recorder, second, again),
    }
    trial = Trial(RULES, tried={*found})
    for rule, fault in found.items():
        if fault:
            trial.add(rule, fault)
    return trial


async def _run(condition: ScienceCondition, seed: int) -> tuple[Outcome, Recorder]:
    science: Any = EXPERIMENTS.get(condition.kind)
    async with unkept_services(science, condition, seed, Recorder(None, None)) as services:
        return await science.execute(condition, replace(services, approver=approve_all)), services.recorder


def _overspent(condition: ScienceCondition, recorder: Recorder) -> Iterator[str]:
    """Seats that spent more than their share of the pool, without the writing of artifacts."""
    spent, kinds = Counter[str](), kinds_by_label()
    for event in recorder.events:
        kind = kinds.get(label_of(event.step))
        if isinstance(event, ChargeEvent) and not (kind is not None and kind.does == "write"):
            spent[event.agent] += event.amount
    for seat, share in condition.crew.share_of_seats().items():
        if spent[seat] > share * condition.pool:
            yield f"{seat}: {show_dollars(spent[seat])} of {show_dollars(int(share * condition.pool))}"


def _idle(condition: ScienceCondition, recorder: Recorder) -> Iterator[str]:
    """Seats that no step asks."""
    asked = {event.agent for event in recorder.events if isinstance(event, LLMCallEvent)}
    for seat in condition.crew.seats if condition.organisation.declares_seats else ():
        if seat not in asked:
            yield f"{seat}: no step of the flow asks it"


def _misdeeds(condition: ScienceCondition, recorder: Recorder) -> Iterator[str]:
    """The recorded failures and violations of external agents."""
    outside = {name for name, (_, seat) in condition.organisation.seats.items() if seat.outside}
    for event in recorder.events:
        if isinstance(event, WarningEvent) and event.agent in outside:
            yield f"{event.agent}: {event.text}"


def _peeks(condition: ScienceCondition, recorder: Recorder) -> Iterator[str]:
    """Seats that read an artifact written only by hidden teammates."""
    authors: dict[str, set[str]] = {}
    for event in recorder.events:
        if isinstance(event, ArtifactEvent):
            authors.setdefault(event.name, set()).add(event.agent)
        if not (isinstance(event, ToolCallEvent) and event.tool == "read_artifact" and event.ok):
            continue
        name = recorder.bodies[event.arguments]["name"]
        if not any(condition.crew.may("read", event.agent, author) for author in authors[name]):
            yield f"{event.agent} read {name} ({event.step})"


def _unmeasured(condition: ScienceCondition, recorder: Recorder) -> Iterator[str]:
    """Calls and messages that the measures of coordination would misread, since no step of the flow declares them."""
    if condition.organisation.graph:  # its calls are all work
        return
    steps = [find_step(name) for phase in condition.crew.flow for name in phase.names]
    declared = {kind.label: kind for kind in steps}
    telling: dict[str, str] = {}
    for event in recorder.events:
        label = label_of(event.step)
        kind = declared.get(label)
        if isinstance(event, LLMCallEvent) and not outer_step(event.step):
            if kind is None:
                yield f"{event.step}: no step of the flow records its calls as '{label}'"
            elif kind.tells:
                telling.setdefault(label, kind.name)
        elif isinstance(event, ToolCallEvent) and kind is not None and kind.does == "talk":
            yield f"{event.step}: the step {kind.name} declares that it talks, but calls tools"
        elif isinstance(event, MessageEvent):
            telling.pop(label, None)
    for name in telling.values():
        yield f"the step {name} declares that it tells, but records no message"


def _difference(first: Outcome, recorder: Recorder, second: Outcome, again: Recorder) -> str:
    """The first step in which two runs differ; empty if there is none."""
    if (first.status, dict(first.metrics)) != (second.status, dict(second.metrics)):
        return "the runs end differently"
    stories = [_story(recorder), _story(again)]
    steps = dict.fromkeys([*stories[0], *stories[1]])
    differing = (step for step in steps if stories[0].get(step) != stories[1].get(step))
    return next((f"step {step} ({kind})" for kind, step in differing), "")


def _story(recorder: Recorder) -> dict[tuple[str, str], str]:
    """The events of a run by type and step, without times."""
    story: dict[tuple[str, str], str] = {}
    for event in recorder.events:
        fields = {
            name: value for name, value in fields_with_bodies(event, recorder.bodies).items() if name != "seconds"
        }
        key = (event.type, event.step)
        story[key] = story.get(key, "") + json.dumps(fields, sort_keys=True, default=str)
    return story
