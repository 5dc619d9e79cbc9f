"""Debate: members state their positions at the same time, then answer each other's, in several rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from labmates.agents.organisation_parts import Seat
from labmates.budgets.purse import Purse
from labmates.models.orders import Order
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, Told
from labmates.workflows.science.steps.talk import TALK, read_contribution

FIRST = """# Step: debate, round $round of $rounds {always}
Before $lead the artifact `$artifact`, the team debates what may stand in it. In each round all speak at the \
same time, and hear the others afterwards. {always}

What you reported: $summary {always}

$output

No tool can be called in this step. State your position in 2 or 3 sentences: the results that you stand for, \
each with its number, how sure you are, and what would prove you wrong. Answer with those sentences only. {always}

$theory_of_mind

$budget"""

NEXT = """# Step: debate, round $round of $rounds {always}
What the others stated: {always}
$said

No tool can be called in this step. Test that against your own results: which of it is better supported than \
yours, and which contradicts what you computed? In 2 or 3 sentences state your position anew, with its numbers, \
and say what changed it, or why nothing did. Agreement is no aim: give way to evidence alone. Answer with those \
sentences only. {always}

$theory_of_mind

$budget"""

NOTE = "The last statement of each member is its final position in the debate."


class Debate(LabStep):
    """Members debate in rounds; by default in as many as they would talk."""

    name = "debate"
    does = "talk"
    pace = "rounds"
    tells = True
    detail = "rounds"
    prompts: ClassVar = {"debate": FIRST, "debate_again": NEXT}

    async def take(self, run: StepRun) -> Update:
        """Let all members speak at the same time, round by round."""
        told, members, since = Told(), run.team.members, 0
        for round_ in range(1, run.ctx.rounds(run.lab) + 1):
            heard, since = told.said[since:], len(told.said)

            def order(seat: Seat, purse: Purse, now: int = round_, said: Sequence[tuple[str, str]] = heard) -> Order:
                return debate_order(run, seat, now, said, purse)

            told = await run.ask_together(
                members, order, lambda _seat: read_contribution, part=str(round_), before=told
            )
        return run.next_with(told, *([NOTE] if told.said else []))

    def answer(self, order: Step, heard: Heard) -> Draft:
        """As in a talk: its results, and what it thinks of others'."""
        return TALK.answer(order, heard)


DEBATE = Debate()


def debate_order(run: StepRun, seat: Seat, round_: int, said: Sequence[tuple[str, str]], purse: Purse) -> Order:
    """A member's order to state its position, after what was said in the round before."""
    ctx, lab = run.ctx, run.lab
    others = [(who, text) for who, text in ctx.heard(seat, said) if who != seat.id]
    values = briefs.round_values(ctx, lab, seat, round_, others) | briefs.own_work_values(ctx, lab, seat)
    return run.order(seat, purse, values, "debate" if round_ == 1 else "debate_again")
