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
import statistics
import sys
import tempfile
from pathlib import Path

from labmates.agents.organisation_files import BUILT_IN
from labmates.records.events import LLMCallEvent
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.budget_lines import false_lines, idle_purchases, lines_told, purchases
from tests.support.pools import TASKS, Remembering, buy, pools

LEAST_POOL = 4_000
"""The smallest pool of a sweep, in micro-dollars: a paper and not much more."""


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
