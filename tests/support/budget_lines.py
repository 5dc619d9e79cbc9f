"""What agents are told of a pool and what it buys, held against the charges of the record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from labmates.budgets.money import show_dollars
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    FindingsEvent,
    LLMCallEvent,
    RequestEvent,
    ToolCallEvent,
)
from labmates.records.recorder import Recorder


def place_of(step: str) -> tuple[str, str]:
    """The phase and the kind of a step, TEAM/PHASE/SEAT/KIND/…, whoever takes it."""
    team, number, _, kind, *_ = step.split("/")
    return f"{team}/{number}", kind


def lines_told(recorder: Recorder) -> Iterator[tuple[str, str, list[tuple[Counter[str], int]]]]:
    """Each line about the budget: its step, its text, and what was spent at each moment since the step began.

    A moment has the charges of all teams, and of the agent in this step.
    """
    moments, began = [Counter[str]()], dict[tuple[str, str], int]()
    for event in recorder.events:
        if isinstance(event, ChargeEvent):
            own = "/".join(event.step.split("/")[:4])
            moments.append(moments[-1] + Counter({event.team: event.amount, own: event.amount}))
        elif isinstance(event, LLMCallEvent):
            since, own = began.setdefault(place_of(event.step), len(moments) - 1), "/".join(event.step.split("/")[:4])
            text = str(recorder.bodies[event.messages[-1]]["content"])
            for line in re.findall("^Budget: .*", text, re.MULTILINE):
                teams = (Counter({name: n for name, n in at.items() if "/" not in name}) for at in moments[since:])
                yield event.step, line, [(at, had[own]) for at, had in zip(teams, moments[since:], strict=True)]


def false_lines(recorder: Recorder, total: int) -> Iterator[str]:
    """Lines about the budget that differ from the charges before their call."""
    for step, line, moments in lines_told(recorder):
        team, (spent, own) = step.split("/")[0], moments[-1]
        whole, true = spent.total(), list[tuple[str, ...]]()
        if share := re.search(r"Your share was \$([\d.]+); \$([\d.]+) of it is left", line):
            limit, left = (round(float(amount) * 1e6) for amount in share.groups())
            for at, before in moments:
                told = f"when your share was set, {show_dollars(at.total())} of {show_dollars(total)} were spent"
                true += [(told, f"you have spent {show_dollars(own - before)} since")] * (
                    abs(limit - own + before - left) <= 100 or left == 0 < own
                )
        elif " left" in line:
            true = [
                (
                    f"Budget: {show_dollars(whole)} of {show_dollars(total)} spent",
                    f", {show_dollars(total - whole)} ({(total - whole) * 100 // total} %) left",
                )
            ]
        elif "your share was set" in line:
            true = [
                (f" had spent {show_dollars(at[team])};", f"you have spent {show_dollars(own - before)} since")
                for at, before in moments
            ]
        else:
            true = [(f" spent {show_dollars(spent[team])}.",)]
        if not any(all(part in line for part in parts) for parts in true):
            yield f"{step}: {line}; true: {true[-1:]}"


def idle_purchases(recorder: Recorder) -> Iterator[str]:
    """Steps of calls without effect; a bid of 0 ends the bidding."""
    events = recorder.events
    calls = {place: event for place, event in enumerate(events) if isinstance(event, LLMCallEvent)}
    works = {place: place_of(call.step)[0] for place, call in calls.items() if place_of(call.step)[1] == "work"}
    used = {event.step.rpartition("/")[0] for event in events if isinstance(event, ToolCallEvent)}
    wrote = {(event.team, event.agent) for event in events if isinstance(event, ArtifactEvent | FindingsEvent)}
    worked = {step.rpartition("/")[0] for step in used}
    for at, call in calls.items():
        phase, kind = place_of(call.step)
        team, _, seat, *_ = call.step.split("/")
        has_effect = {
            "plan": any(place > at and where == phase for place, where in works.items()),
            "bid": any(place > at and where == phase for place, where in works.items())
            or str(recorder.bodies[call.reply]["content"]).startswith("0: "),
            "deliberation": any(place < at and where == phase for place, where in works.items()) or not works,
            "work": call.step.rpartition("/")[0] in worked,
            "write": (team, seat) in wrote,
        }
        if not has_effect.get(kind, True):
            yield call.step
    for at, event in enumerate(events):
        if isinstance(event, RequestEvent):
            later = [call.step.split("/") for place, call in calls.items() if place > at]
            if not any((team, kind) == (event.to, "work") for team, _, _, kind, *_ in later):
                yield event.step


def purchases(recorder: Recorder) -> int:
    """The number of purchases that `idle_purchases` checks."""
    return sum(isinstance(event, LLMCallEvent | RequestEvent) for event in recorder.events)
