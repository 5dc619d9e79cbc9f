"""Write: the lead states the findings and writes the team's artifact."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_core.messages import BaseMessage

from labmates.agents.organisation_parts import REPORT, Seat, Team
from labmates.agents.sections import LEFT_OUT, excerpt
from labmates.agents.tools import TO_CLOSE
from labmates.agents.transcript import append_line, shorten
from labmates.agents.workspace import MOST_ARTIFACT_CHARS
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.orders import Order
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.diligent import write_draft
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.context import (
    OUTPUT_CHARS,
    LabContext,
    artifacts_text,
    said_text,
    shown_artifacts,
)
from labmates.workflows.science.lab.reserve import likely_cost, likely_output
from labmates.workflows.science.lab.state import LabState
from labmates.workflows.science.lab.writing import Author
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, opening

PAPER_ARTIFACT_CHARS = 12_000
DISCUSSION_CHARS = 40_000
MOST_HALVED = 5
"""The material of an artifact is halved up to this many times, until the pool can pay for writing it."""

_READ_ON = "Where characters are left out, read_artifact shows them."


class Write(LabStep):
    """The lead writes the artifact."""

    name = "write"
    does = "write"

    async def take(self, run: StepRun) -> Update:
        """Let the lead write the team's artifact."""
        team, lead = run.team, run.team.lead
        purse = run.ctx.purse_to_write(run.lab, team)
        author = Author(run.ctx, run.lab, purse, lead, team.artifact)
        try:
            await author.write(author.affordable(transcripts(run.ctx, run.lab, purse, lead, team.artifact)))
        except InsufficientFundsError:
            if not author.versions:
                return {**run.unpaid(purse), "findings": {team.name: author.findings}}
        artifacts = {author.artifact: author.versions} if author.versions else {}
        return run.next(spent={team.name: purse.spent}, findings={team.name: author.findings}, artifacts=artifacts)

    def answer(self, order: Step, heard: Heard) -> Draft:
        """The findings and all sections."""
        return write_draft(order, heard)


WRITE = Write()


def transcripts(
    ctx: LabContext, lab: LabState, purse: Purse, author: Seat, artifact: str
) -> Iterator[list[BaseMessage]]:
    """Transcripts that end with the order to write, ever shorter for a pool that can't pay."""
    if ctx.team(lab).memory != "step":
        order = write_order(ctx, lab, purse, author, artifact)
        messages: list[BaseMessage] | None = opening(ctx, lab, author, order, writes=True)
        while messages is not None:
            yield messages
            messages = shorten(messages)
        return
    for halved in range(MOST_HALVED + 1 if ctx.sets_aside else 1):
        yield opening(ctx, lab, author, write_order(ctx, lab, purse, author, artifact, material=0.5**halved))


def cost_to_write(ctx: LabContext, lab: LabState, team: Team, *, reports: int = 0) -> int:
    """What the team's artifact is likely to cost by its material, in micro-dollars; after so many more `reports`."""
    if team.lead.outside:  # pays for its own calls
        return likely_cost(ctx.condition, team)
    *before, order = next(transcripts(ctx, lab, ctx.purse_to_write(lab, team), team.lead, team.artifact))
    messages = [*before, append_line(order, "word " * (reports * OUTPUT_CHARS // len("word ")))]
    output = likely_output(team, messages, ctx.tools)
    return ctx.caller.reservation(ctx.speaker(team, team.lead), messages, ctx.tools, output)


def write_order(
    ctx: LabContext, lab: LabState, purse: Purse, author: Seat, artifact: str, material: float = 1.0
) -> Order:
    """The order to write an artifact, with a share `material` of the usual material, from 0 to 1."""
    team, phase = ctx.team(lab), lab["agenda"][0]
    printed = int(material * OUTPUT_CHARS)
    most = PAPER_ARTIFACT_CHARS if team.artifact == REPORT else briefs.PLAN_ARTIFACT_CHARS
    shown = shown_artifacts(ctx, lab, author, int(material * most))
    artifacts = artifacts_text(shown)
    if material == 1 and LEFT_OUT in artifacts:
        artifacts += f"\n\n{_READ_ON}"
    said = excerpt(said_text(ctx.heard(author, phase["said"])), int(material * DISCUSSION_CHARS))
    values = {
        "artifact": briefs.Shown(artifact, {"artifact": artifact}),
        "tools": briefs.Shown(", ".join(TO_CLOSE), {"tools": [*TO_CLOSE]}),
        "reports": "what the members reported" + " and what their code printed" * team.has_code,
        "request": briefs.request_value(ctx, lab, most=int(material * MOST_ARTIFACT_CHARS)),
        "sections": briefs.sections_value(ctx, lab, author),
        "outputs": briefs.reports_value(ctx, lab, author, printed),
        "said": "\n\n".join(filter(None, [said, *phase["notes"]])),
        "artifacts": briefs.Shown(artifacts, {"material": shown}),
        "stated": briefs.stated_value(ctx, lab, author, material),
        "budget": briefs.status_text(ctx, purse),
    }
    return briefs.step_order(ctx, lab, author, WRITE.order, WRITE.order, values)
