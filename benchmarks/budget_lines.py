"""What agents are told of a pool and what it buys, held against the ledger: 20 pools in each organisation.

    python -m benchmarks.budget_lines
    python -m benchmarks.budget_lines --model scripted:talkative --pools 5 --organisation hybrid

In each run every line about the budget in a prompt must be what the charges before its call add up to, and every
purchase must have its effect: a plan, a bid or a request is followed by work, talk follows work, work runs a tool or
reports, and an author writes. Beside that stands what is left of the pools of runs that ended as exhausted: in all,
without what the last reply could have written, which is what estimates and shares leave, and in how many it is at most
5 % of the pool or the price of a usual reply.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pools import TASKS, Remembering, buy, pools
from labmates.agents.organisation_files import BUILT_IN
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
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.science.lab.condition import ScienceCondition

LEAST_POOL = 4_000
"""The smallest pool of a sweep, in micro-dollars: a paper and not much more."""


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


async def sweep(organisation: str, model: str, task: str, amounts: list[int]) -> int:
    """Check the runs of an organisation with pools of these sizes; returns the number of faults."""
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    lines = bought = faults = papers = 0
    left, unclaimed, close = list[float](), list[float](), 0
    with tempfile.TemporaryDirectory() as folder:
        for amount in amounts:
            condition = ScienceCondition(
                task=task, difficulty="easy", model=model, organisation=organisation,
                budget=f"{amount / 1e6:.6f}",
            )  # fmt: skip
            one, recorder = await buy(condition, 0, SandboxPool(backend, 4), Path(tempfile.mkdtemp(dir=folder)))
            lines, bought, papers = (
                lines + len([*lines_told(recorder)]),
                bought + purchases(recorder),
                papers + one.paper,
            )
            for fault in (*false_lines(recorder, amount), *idle_purchases(recorder)):
                faults += 1
                print(f"  ${amount / 1e6:.4f}  {fault}")
            if one.exhausted:
                calls = [event for event in recorder.events if isinstance(event, LLMCallEvent)]
                price, rest = condition.prices.of(model), amount - one.spent
                usual = statistics.median(price.cost(call.input_tokens, call.output_tokens) for call in calls)
                unwritten = price.cost(0, (calls[-1].output_limit or 0) - calls[-1].output_tokens)
                left.append(rest / amount)
                unclaimed.append((rest - unwritten) / amount)
                close += rest <= max(0.05 * amount, usual)
    await backend.close()
    shown = "–"
    if left:
        of_estimates = f"{statistics.median(unclaimed):.1%}, at most {max(unclaimed):.1%}"
        shown = f"{statistics.median(left):.0%}, at most {max(left):.0%}; {of_estimates}; {close}"
    print(f"{organisation:14}{papers:3}/{len(amounts)}{lines:7}{bought:7}{faults:7}{len(left):6}   {shown}", flush=True)
    return faults


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--organisation", action="append", choices=BUILT_IN)
    parser.add_argument("--model", default="scripted:diligent")
    parser.add_argument("--task", default="anomaly", choices=TASKS)
    parser.add_argument("--pools", type=int, default=20)
    asked = parser.parse_args()
    amounts = pools(asked.pools, LEAST_POOL)
    print(f"{'':14}papers  lines  calls faults  exhausted: median left; unclaimed; close")
    sys.exit(
        min(
            1,
            sum(asyncio.run(sweep(name, asked.model, asked.task, amounts)) for name in asked.organisation or BUILT_IN),
        )
    )


if __name__ == "__main__":
    main()
