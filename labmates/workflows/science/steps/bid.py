"""Bid: each member offers its contribution, and the highest bidder works next, alone."""

from __future__ import annotations

import re
from collections import Counter

from langchain_core.messages import AIMessage

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
from labmates.workflows.science.baselines.diligent import bid_text
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.state import Phase, new_member
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, spending


class Bid(LabStep):
    """Members bid for the next task."""

    name = "bid"
    does = "talk"

    async def take(self, run: StepRun) -> Update:
        """Let each member bid; the highest bidder works alone. Bidding ends without bids.

        Among equal bids, the seat that has worked least often wins, then the first one.
        """
        state, phase, team = run.state, run.phase, run.team
        purse = run.purse()
        worked = Counter(who for past in state["earlier"].get(team.name, []) for who in past["chosen"])
        bids: dict[str, tuple[int, str]] = {}
        conversations: dict[str, list[int]] = {}
        exhausted = False
        for seat in run.workers:
            messages = run.opening(seat, bid_order(run, seat, purse.spend_as(seat.id)))
            try:
                purse.keep(run.money_for_work(seat, messages, purse.spent, [seat]))
                answer = await run.ask(seat, messages, purse, read_bid)
            except InsufficientFundsError:
                exhausted = exhausted or not purse.is_bound_by_share
                continue
            bids[seat.id], calls = answer or ((0, ""), [])
            if answer:
                said = calls or [AIMessage("{}: {}".format(*bids[seat.id]))]
                conversations |= run.remember(seat, [*messages, *said])
        exhausted = exhausted and not bids
        if exhausted and not run.ctx.sets_aside:
            return run.unpaid(purse)
        best = min(bids, key=lambda name: (-bids[name][0], worked[name]), default="")
        agenda: list[Phase] = [{**phase, "steps": phase["steps"][1:]}, *state["agenda"][1:]]
        if exhausted or not best or not bids[best][0]:
            while agenda[1:] and run.ctx.organisation.flow[agenda[1]["place"]].names[0] == self.name:
                del agenda[1]
            agenda[0] = {**agenda[0], "steps": [step for step in agenda[0]["steps"] if find_step(step).does != "work"]}
        else:
            members = {name: new_member(bids[best][1], done=name != best) for name in team.seats}
            agenda[0] = {**agenda[0], "members": members, "chosen": [best]}
        return {"agenda": agenda, **spending(purse), "exhausted": exhausted, "conversations": conversations}

    def answer(self, order: Step, heard: Heard) -> Draft:
        """A high bid before the first work, none after it."""
        del heard
        return Draft(bid_text(order))

    def least(self, order: Step, *, idle: bool) -> str:
        """A low bid before anybody's first work, none after it."""
        return "0: nothing" if idle or order.facts["so_far"] else "1: have a quick look and report"


BID = Bid()


def bid_order(run: StepRun, seat: Seat, purse: Purse) -> Order:
    """The order to propose the next step."""
    return run.order(
        seat,
        purse,
        {
            **briefs.so_far(run.ctx, run.lab, seat),
            "part": briefs.Shown(seat.part, {"part": seat.part}),
            "artifact_names": briefs.readable_value(run.ctx, run.lab, seat),
        },
    )


def read_bid(reply: Reply, last: bool) -> tuple[int, str]:
    """The points and the task of a bid, from a line ``7: fit the model``."""
    del last
    match = re.search(r"^[ \t*\-#>`_]*+(10|\d)[`*_]*+[ \t]*+:[*_]*+\s*+(\S.*)$", reply.text, flags=re.MULTILINE)
    if match is None:
        problem = "it has no line with a number from 0 to 10, a colon and a task"
        raise UnusableAnswerError(problem, form="Answer with this one line, with your number and your task: 0: …")
    return int(match[1]), excerpt(match[2].strip(), MOST_MESSAGE_CHARS, "first")
