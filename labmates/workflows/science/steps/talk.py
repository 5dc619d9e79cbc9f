"""Talk: members speak in turn, in several rounds, and each hears the others at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.organisation_parts import Seat
from labmates.agents.sections import excerpt
from labmates.agents.steps import find_step
from labmates.agents.workspace import MOST_MESSAGE_CHARS
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.diligent import contribution, fit_text
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.context import calls_text
from labmates.workflows.science.lab.state import LabState
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, spending

_SENTENCES = "Answer with 2 or 3 sentences, and without a tool call."


class Talk(LabStep):
    """Members talk their results over."""

    name = "talk"
    does = "talk"
    pace = "turns"
    tells = True
    detail = "rounds"
    label = "deliberation"
    order = "deliberate"

    async def take(self, run: StepRun) -> Update:
        """Let the members speak in turn; in later rounds only those whose answer somebody needs, until nobody does."""
        ctx, phase, team = run.ctx, run.phase, run.team
        names = ctx.flow(run.lab).names
        worked = [name for name in names[: names.index(self.name)] if find_step(name).does == "work"]
        # Who has not worked has nothing to say before it is asked.
        asked = {seat.id for seat in team.members if not worked or phase["members"][seat.id]["turns"]}
        if not asked:
            run.lacking(team.lead, "nobody has worked in this phase")
            return run.next()
        purse = run.purse()
        talk = list(phase["said"])
        spoken: dict[str, tuple[list[BaseMessage], int]] = {}
        lab = cast(LabState, {**run.lab, "agenda": [{**phase, "said": talk}]})
        exhausted = False
        for round_ in range(1, ctx.rounds(run.lab) + 1):
            speaking, asked = asked, set()
            for seat in team.members:
                if seat.id not in speaking | asked:
                    continue
                asked.discard(seat.id)
                mine = purse.spend_as(seat.id)
                if seat.id in spoken:
                    before, heard = spoken[seat.id]
                    messages = [*before, next_round_order(run, seat, round_, talk[heard:], mine).human()]
                else:
                    messages = run.opening(seat, first_round_order(run, lab, seat, round_, mine), continued=True)
                try:
                    answer = await run.ask(seat, messages, mine, read_contribution, part=str(round_))
                except InsufficientFundsError:
                    if mine.is_bound_by_share:
                        continue
                    exhausted = True
                    break
                if answer:
                    text, calls = answer
                    talk.append((seat.id, text))
                    spoken[seat.id] = ([*messages, *(calls or [AIMessage(text)])], len(talk))
                    asked |= needed(text, team.seats) - {seat.id}
                    run.tell(seat, text, str(round_))
            if exhausted or not asked:
                break
        if exhausted and not ctx.sets_aside:
            return run.unpaid(purse)
        conversations: dict[str, list[int]] = {}
        for seat in team.members:
            if seat.id in spoken:
                conversations |= run.remember(seat, spoken[seat.id][0])
        return run.next({"said": talk}, **spending(purse), exhausted=exhausted, conversations=conversations)

    def answer(self, order: Step, heard: Heard) -> Draft:
        """Two or three sentences on its results."""
        return Draft(fit_text(lambda most: contribution(order, most), order.hurry, heard.max_tokens))


TALK = Talk()


def first_round_order(run: StepRun, lab: LabState, seat: Seat, round_: int, purse: Purse) -> Order:
    """A member's first order in the team's deliberation, with a digest of its work."""
    ctx, phase = run.ctx, lab["agenda"][0]
    task = phase["members"][seat.id]["task"]
    return run.order(
        seat,
        purse,
        {
            **briefs.round_values(ctx, lab, seat, round_, ctx.heard(seat, phase["said"])),
            **briefs.own_work_values(ctx, lab, seat),
            "task": briefs.Shown(task, {"task": task}),
            "calls": calls_text(ctx, phase, seat) or "nothing with a tool",
        },
        "",
        *_further(run, round_),
    )


def next_round_order(run: StepRun, seat: Seat, round_: int, since: Sequence[tuple[str, str]], purse: Purse) -> Order:
    """A member's order to speak again, with its teammates' contributions `since` it spoke."""
    values = briefs.round_values(run.ctx, run.lab, seat, round_, run.ctx.heard(seat, since))
    return run.order(seat, purse, values, "deliberate_again", *_further(run, round_))


def _further(run: StepRun, round_: int) -> list[str]:
    return ["rounds"] if round_ < run.ctx.rounds(run.lab) else []


def needed(text: str, seats: Collection[str]) -> set[str]:
    """The seats whose answer a contribution needs, from its line ``Answer needed: NAME``."""
    named: set[str] = set()
    for line in text.splitlines():
        head, _, names = line.partition(":")
        if head.strip(" *-#>`_").lower() == "answer needed":
            named |= {*re.findall(r"\w+", names)}
    return named & {*seats}


def read_contribution(reply: Reply, last: bool, form: str = _SENTENCES, most: int = MOST_MESSAGE_CHARS) -> str:
    """The text of a reply, at most `most` characters of it; `form` says what an unusable one lacks."""
    if not reply.text.strip():
        raise UnusableAnswerError("it is a tool call" if reply.tool_calls else "it has no text", form=form)
    if "cut" in reply.faults and not last:
        raise UnusableAnswerError("it was cut off at its length limit", form=form)
    return excerpt(reply.text.strip(), most, "first")
