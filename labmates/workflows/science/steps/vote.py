"""Vote: members choose, in a secret ballot, whose results the team's text rests on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from labmates.agents.organisation_parts import Seat
from labmates.agents.sections import excerpt
from labmates.agents.workspace import MOST_MESSAGE_CHARS
from labmates.budgets.purse import Purse
from labmates.models.conversation import Read
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun

PROMPT = """# Step: vote {always}
The team now votes whose results `$artifact` should rest on where results differ. Nobody sees your vote before \
all have voted. {always}

The reports that you may read: {always}
$reports

No tool can be called in this step. Choose one of $candidates (not yourself) by how well the results are \
supported, not by how surely they are told. Answer with one line: the name, a colon and your reason in one \
sentence. {always}

$theory_of_mind

$budget"""

PRINTED_CHARS = 600
"""Characters of each member's output that a voter sees."""


class Vote(LabStep):
    """Each member has a vote; among equal numbers of votes, the first seat wins."""

    name = "vote"
    does = "talk"
    tells = True
    prompts: ClassVar = {"vote": PROMPT}

    async def take(self, run: StepRun) -> Update:
        """Let all members vote at the same time, and tell the author how it ended."""
        workers = [seat.id for seat in run.workers]
        voters = [seat for seat in run.team.members if {*workers} - {seat.id}]
        told = await run.ask_together(
            voters,
            lambda seat, purse: vote_order(run, seat, purse, [name for name in workers if name != seat.id]),
            lambda seat: reader([name for name in workers if name != seat.id]),
        )
        votes = Counter(text.partition(":")[0] for _, text in told.said)
        if not votes:
            return run.next_with(told)
        chosen = max(workers, key=lambda name: votes[name])  # the first of equals
        counts = ", ".join(f"{name} {votes[name]}" for name in workers if votes[name])
        return run.next_with(told, f"Votes: {counts}. Where results differ, state those of {chosen}.")

    def answer(self, order: Step, heard: Heard) -> Draft:
        """A vote for whoever reports most numbers."""
        del heard
        reports, candidates = order.facts.get("reports", {}), order.facts["candidates"]

        def numbers(name: str) -> int:
            return len(re.findall(r"\d+(?:\.\d+)?", reports.get(name, {}).get("reported", "")))

        chosen = max(candidates, key=numbers)
        return Draft(f"{chosen}: the report with most numbers, {numbers(chosen)}.")

    def least(self, order: Step, *, idle: bool) -> str:
        """A vote for the first candidate."""
        del idle
        return f"{order.facts['candidates'][0]}: it comes first."


VOTE = Vote()


def vote_order(run: StepRun, seat: Seat, purse: Purse, candidates: Sequence[str]) -> Order:
    """A member's order to vote for one of the candidates."""
    shown = briefs.Shown(", ".join(candidates), {"candidates": [*candidates]})
    reports = briefs.reports_value(run.ctx, run.lab, seat, PRINTED_CHARS)
    return run.order(seat, purse, {"reports": reports, "candidates": shown})


def reader(candidates: Sequence[str]) -> Read[str]:
    """Reads ``NAME: reason`` with the name of a candidate."""

    def read(reply: Reply, last: bool) -> str:
        del last
        for line in reply.text.splitlines():
            name, colon, reason = line.strip(" *-#>`_").partition(":")
            if colon and name.strip(" *`_") in candidates:
                return excerpt(f"{name.strip(' *`_')}: {reason.strip(' *`_')}", MOST_MESSAGE_CHARS, "first")
        problem = f"it has no line with one of the names {', '.join(candidates)}, a colon and a reason"
        raise UnusableAnswerError(problem, form=f"Answer with one such line: {candidates[0]}: …, or another name.")

    return read
