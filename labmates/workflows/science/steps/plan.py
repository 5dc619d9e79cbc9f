"""Plan: the lead plans the phase and gives each member its task."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.organisation_parts import REPORT, Seat
from labmates.agents.prompts import render
from labmates.agents.sections import excerpt
from labmates.agents.steps import find_step
from labmates.agents.workspace import MOST_PLAN_CHARS
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.objects import RefusedError, UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.calls.remarks import fault_text
from labmates.workflows.science.baselines.diligent import fit_text, plan_text
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.context import artifacts_text, mail_text, shown_artifacts
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, phase_members, spending


class Plan(LabStep):
    """The lead plans the phase."""

    name = "plan"
    does = "talk"
    assigns = True
    approval = "plan"

    async def take(self, run: StepRun) -> Update:
        """Let the lead plan the phase and give each member its task."""
        ctx, team, workers = run.ctx, run.team, run.workers
        purse = run.purse().spend_as(team.lead.id)
        messages = run.opening(team.lead, plan_order(run, purse))
        lines = "\n".join(f"{seat.id}: …" for seat in workers)
        form = render("plan_form", lines=lines) if len(team.members) > 1 else ""
        text, tasks, calls = "", dict[str, str](), list[BaseMessage]()
        writes = [name for name in run.phase["steps"] if find_step(name).does == "write"]
        exhausted = idle = False

        def read(reply: Reply, last: bool) -> tuple[str, dict[str, str]]:
            if problem := fault_text(reply):
                raise UnusableAnswerError(problem, remark=f"{problem}\n{form}".rstrip())
            tasks = read_tasks(reply.text, workers)
            missing = [seat.id for seat in workers if seat.id not in tasks]
            if missing and not last and len(team.members) > 1:
                raise UnusableAnswerError(f"it has no line with a task for {', '.join(missing)}", form=form)
            return excerpt(reply.text, MOST_PLAN_CHARS, "first"), tasks

        async def accept(answer: tuple[str, dict[str, str]], number: int) -> None:
            step, speaker = f"{run.place(team.lead)}/{number}", ctx.speaker(team, team.lead)
            if refusal := ctx.approvals.refusal("plan", step, speaker, team.name, answer[0]):
                is_final = ctx.approvals.is_closed("plan", step, team.lead.id)
                raise RefusedError(refusal, is_final=is_final)

        try:
            purse.keep(run.money_for_work(team.lead, messages, 0, workers))
            if answer := await run.ask(team.lead, messages, purse, read, accept=accept):
                (text, tasks), calls = answer
        except InsufficientFundsError:
            exhausted = not purse.is_bound_by_share
            # Members without a plan do their parts.
            idle = exhausted and not run.paid_to_work(workers, run.purse().left - purse.spent)
            # The paper is always written, from whatever material exists.
            is_paper = team.artifact == REPORT and writes
            if exhausted and not (ctx.sets_aside and (is_paper or not idle)):
                return run.unpaid(purse)
        planned = {"plan": text, "members": phase_members(ctx, run.lab, tasks, done=idle)}
        steps = {"steps": writes} if idle else {}
        return run.next(
            {**planned, **steps},
            **spending(purse),
            exhausted=exhausted,
            conversations=run.remember(team.lead, [*messages, *(calls or [AIMessage(text or "(no plan)")])]),
        )

    def answer(self, order: Step, heard: Heard) -> Draft:
        """A few points and a task for each member."""
        return Draft(fit_text(lambda most: plan_text(order, most), order.hurry, heard.max_tokens))


PLAN = Plan()


def plan_order(run: StepRun, purse: Purse) -> Order:
    """The lead's order to plan a phase."""
    ctx, lab, team = run.ctx, run.lab, run.team
    members = {seat.id: f"you, the {seat.title}" if seat == team.lead else seat.title for seat in run.workers}
    return run.order(
        team.lead,
        purse,
        {
            **briefs.so_far(ctx, lab, team.lead),
            "team": team.name,
            "artifacts": artifacts_text(shown_artifacts(ctx, lab, team.lead, briefs.PLAN_ARTIFACT_CHARS)),
            "stated": str(briefs.stated_value(ctx, lab, team.lead)),
            "mail": mail_text(ctx, lab, team.lead),
            "turns": ctx.condition.turns_of(team),
            "artifact": team.artifact,
            "member_lines": briefs.Shown(briefs.listed(members), {"members": members}),
        },
    )


def read_tasks(text: str, members: Sequence[Seat]) -> dict[str, str]:
    """The task of each member with a line ``name: task`` in the text."""
    tasks = {}
    for seat in members:
        lines = re.findall(rf"^[\s*\-#>`_]*{seat.id}[`*_]*\s*:[*_]*\s*(\S.*)$", text, flags=re.MULTILINE)
        if lines:
            tasks[seat.id] = lines[-1].strip()
    return tasks
