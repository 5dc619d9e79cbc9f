"""Review: before the text is final, the other members read it as referees; then its author revises it.

Write `review` and `write` into one phase, after a phase that ends with `write`. The author of that second text sees the
first one, the reviews, and all material of the earlier phases.
"""

from __future__ import annotations

import re
from functools import partial
from typing import ClassVar

from labmates.agents.organisation_parts import Seat
from labmates.budgets.purse import Purse
from labmates.models.orders import Order
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.context import delimited
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun
from labmates.workflows.science.steps.talk import read_contribution

MOST_REVIEW_CHARS = 6_000

PROMPT = """# Step: review {always}
This text, `$artifact`, is the work of $lead, who revises it once, after the reviews of all other members. You did \
not write it: read it as a referee would. {always}

$draft

What you reported of your own work: $summary {always}

$output

No tool can be called in this step. Write at most five points, each on a line of its own that begins with a \
dash: the section, what is wrong, missing or not supported by the results that you know, and what should stand \
there, with its number. Leave style alone. If nothing has to change, write one such line that says so. {always}

$theory_of_mind

$budget"""

FORM = "Answer with lines that begin with a dash, one for each point, and without a tool call."

NOTE = """These are reviews of the version of `{artifact}` under the artifacts. Write it anew: keep what is right in \
it, and settle each point by the material."""


class Review(LabStep):
    """All members but the author review the team's text, at the same time, without seeing each other's reviews."""

    name = "review"
    does = "talk"
    tells = True
    reopens = True
    prompts: ClassVar = {"review": PROMPT}

    async def take(self, run: StepRun) -> Update:
        """Let the members review; what they say goes to those whom they may tell."""
        team, draft = run.team, run.ctx.newest(run.lab).get(run.team.artifact)
        if draft is None:  # the pool could not pay for the first version
            return run.next()
        told = await run.ask_together(
            [seat for seat in team.members if seat != team.lead],
            partial(review_order, run),
            lambda _seat: partial(read_contribution, form=FORM, most=MOST_REVIEW_CHARS),
        )
        return run.next_with(told, *([NOTE.format(artifact=team.artifact)] if told.said else []))

    def answer(self, order: Step, heard: Heard) -> Draft:
        """A point for each result of its own that the text lacks."""
        del heard
        draft, reported = str(order.facts.get("draft", "")), str(order.facts.get("reported", ""))
        known = set(re.findall(r"\d+(?:\.\d+)?", draft))
        sentences = re.split(r"(?<=[.!?])\s+", reported)
        lacking = [text for text in sentences if not set(re.findall(r"\d+(?:\.\d+)?", text)) <= known]
        points = [f"- Results: my work gave this, and the text lacks it: {text}" for text in lacking[:3]]
        return Draft("\n".join(points or ["- Nothing has to change: the text has all results of my work."]))


REVIEW = Review()


def review_order(run: StepRun, seat: Seat, purse: Purse) -> Order:
    """A member's order to review the newest version of the team's text that it may read."""
    ctx, team = run.ctx, run.team
    draft = ctx.newest(run.lab, seat).get(team.artifact, "(you may not read it: review what you heard of it)")
    return run.order(
        seat,
        purse,
        {
            **briefs.own_work_values(ctx, run.lab, seat, all_phases=True),
            "lead": briefs.name_of(team.lead, team),
            "draft": briefs.Shown(delimited(team.artifact, draft), {"draft": draft}),
        },
    )
