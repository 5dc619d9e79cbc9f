"""A step of the lab in one file: before the paper is written, each member warns of its weakest result.

A step is a class with a declaration, a prompt, what happens, and the answer of the scripted baselines. Measures,
drawings, seats from outside, prompts and `labmates organisations check` read the declaration. A package declares the
step by an entry point of the group `labmates.steps`; a call of `register` does the same in one process.
"""

from functools import partial
from typing import ClassVar

import labmates
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import Seat
from labmates.agents.steps import STEPS
from labmates.budgets.purse import Purse
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun

PROMPT = """# Step: warn
You reported: $summary

No tool can be called in this step. In one sentence, name the result of yours that is most likely to be wrong, and why.

$budget"""


class Warn(LabStep):
    """All members name their weakest result at the same time."""

    name = "warn"
    does = "talk"  # without tools; its cost is coordination
    tells = True  # what it says goes to those whom a seat may tell
    prompts: ClassVar = {"warn": PROMPT}

    async def take(self, run: StepRun) -> Update:
        """Ask all members at the same time, each with its share of the money."""
        told = await run.ask_together(run.team.members, partial(order, run), lambda _seat: read)
        return run.next_with(told, "Say of each result that a member warned of how sure it is.")

    def answer(self, order: Step, heard: Heard) -> Draft:
        """Warn of the last thing that it reported."""
        return Draft(f"Least sure is this: {order.facts['reported'].split('. ')[-1]}")


def order(run: StepRun, seat: Seat, purse: Purse) -> Order:
    """The values of the prompt; those with facts (`Shown`) are what baselines know."""
    return run.order(seat, purse, briefs.own_work_values(run.ctx, run.lab, seat))


def read(reply: Reply, last: bool) -> str:
    """The sentence; a reply without one is asked for again."""
    if not last and not reply.text.strip():
        raise UnusableAnswerError("it has no text", form="Answer with one sentence.")
    return reply.text.strip()[:500] or "Nothing."


WARN = Warn()

if __name__ == "__main__":
    STEPS.register("warn", WARN)
    peer = {"count": 2, "title": "researcher", "part": "Answer all questions of the project."}
    team = {"artifact": "final_paper", "sections": ["Results", "Conclusion"], "seats": {"peer": peer}}
    flow = [{"pair": ["work", "warn", "write"]}]
    wary = Organisation.model_validate({"name": "wary", "flow": flow, "teams": {"pair": team}})
    [run] = labmates.run(
        "science",
        task="anomaly",
        difficulty="easy",
        model="scripted:diligent",
        organisation=wary,
        store="sqlite:///warn.db",
    )
    print(
        f"{run.status}: {run.metrics['messages']:.0f} messages, {run.metrics['coordination_tokens']:.0%} coordination"
    )
