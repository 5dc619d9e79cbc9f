"""Work: members work on their tasks at the same time, with tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langgraph.runtime import Runtime

from labmates.agents.sections import continued
from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import MessageEvent, PhaseEvent, RequestEvent
from labmates.workflows.science.baselines.diligent import work_draft
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.findings import keep_findings
from labmates.workflows.science.lab.state import Asked, LabState, Mail, Member, Phase, Version, WorkOrder, new_phase
from labmates.workflows.science.lab.writing import keep_version
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.member import opening_to_work, work
from labmates.workflows.science.steps.running import StepRun, here, payable
from labmates.workflows.science.steps.write import cost_to_write


class Work(LabStep):
    """Members work, each with its share of the money."""

    name = "work"
    does = "work"
    by_each = True
    join_node = "gather"

    def takers(self, phase: Phase) -> Sequence[str]:
        """The members whose task is still open; others may have worked before a request was answered."""
        return [agent for agent, member in phase["members"].items() if member["status"] in ("ready", "waiting")]

    async def of_member(self, order: WorkOrder, runtime: Runtime[LabContext]) -> Update:
        """Let one member work until its task is closed."""
        return await work(order, runtime)

    async def take(self, run: StepRun) -> Update:
        """Merge the results of the members' work, in the order of the members.

        Members request against the cap at the start of the step; requests beyond the cap are refused here.
        """
        ctx, state, phase = run.ctx, run.state, run.phase
        artifacts: dict[str, list[Version]] = {}
        findings: list[int] = []
        mail: list[Mail] = []
        phases: list[Phase] = []
        counts: dict[str, int] = {}
        members = dict(phase["members"])
        results = {agent: state["results"][agent] for agent in self.takers(phase)}
        for agent, result in results.items():
            for draft in result["written"]:
                name, version = draft["name"], draft["version"]
                before = [*state["artifacts"].get(name, []), *artifacts.get(name, [])]
                if draft["adds"]:
                    # A teammate may have written in parallel: append after that.
                    old, added = ctx.text(before[-1]["content"]), ctx.text(version["content"])
                    whole = continued(old, added, cut=before[-1]["partial"])
                    version = {**version, "content": ctx.recorder.bodies.keep(whole)}
                artifacts.setdefault(name, []).append(version)
                keep_version(ctx, phase, name, len(before) + 1, version)
            had = len(state.get("findings", {}).get(phase["team"], []))
            findings += keep_findings(ctx, phase, agent, had + len(findings), result["stated"])
            for to, text in result["sent"]:
                step = f"mail/{len(state['mail']) + len(mail)}"
                mail.append(Mail(sender=phase["team"], agent=agent, to=to, text=text))
                body = ctx.recorder.bodies.keep(text)
                ctx.recorder.once(MessageEvent(**here(phase, step, agent), to=to, text=body))
            waiting = list(result["member"]["waiting"])
            for n, (to, kind, request, justification) in enumerate(result["requests"]):
                made = state["asked"].get(f"{phase['team']}>{to}", 0) + counts.get(to, 0)
                if made >= ctx.condition.max_requests:
                    waiting[n] = {**waiting[n], "answer": ctx.organisation.render("request_refused", team=to)}
                    continue
                asked = Asked(by=phase["team"], kind=kind, request=request, justification=justification)
                where = here(phase, f"request/{sum(state['asked'].values()) + len(phases)}", agent)
                ctx.recorder.once(RequestEvent(**where, to=to, kind=kind, request=request, justification=justification))
                number = state["phases"].get(to, 0) + counts.get(to, 0)
                phases.append(new_phase(ctx.organisation, ctx.organisation.place(to), number, asked))
                counts[to] = counts.get(to, 0) + 1
            members[agent] = {**result["member"], "waiting": waiting}
        if phases:
            where = here(phase, f"suspended/{sum(state['asked'].values())}")
            ctx.recorder.once(PhaseEvent(**where, status="suspended", number=phase["number"], reason=phase["reason"]))
        waits = any(member["status"] == "waiting" for member in members.values())
        conversations = {agent: result["member"]["transcript"] for agent, result in results.items()}
        now: Phase = {**phase, "members": members}
        lab = cast(
            LabState,
            {**run.lab, "agenda": [now, *state["agenda"][1:]], "conversations": state["conversations"] | conversations},
        )
        likely = {phase["team"]: cost_to_write(ctx, lab, run.team)}
        if not any(member["turns"] > phase["members"][agent]["turns"] for agent, member in members.items()):
            # There is no more to write about: what was kept for the work is not the artifact's.
            likely = {name: min(cost, state["likely"].get(name, cost)) for name, cost in likely.items()}
        lab["likely"] = state["likely"] | likely
        able = not waits and self._resume(run, lab, members, len(results))
        steps = phase["steps"] if waits or able else phase["steps"][1:]
        return {
            "over": waits or bool(phases),
            "agenda": [*phases, {**now, "steps": steps}, *state["agenda"][1:]],
            "likely": likely,
            "artifacts": artifacts,
            "conversations": conversations,
            "findings": {phase["team"]: findings},
            "mail": mail,
            "asked": {f"{phase['team']}>{to}": n for to, n in counts.items()},
            "phases": counts,
        }

    def _resume(self, run: StepRun, lab: LabState, members: dict[str, Member], worked: int) -> bool:
        """Let members whose shares ran short continue with the money that the others left; whether any can.

        As many continue as that money pays, but fewer than have `worked` if none of these could pay a reply: the fewer
        they are, the larger are their shares. Where none can, their tasks are closed.
        """
        ctx, before = run.ctx, run.phase["members"]
        short = [seat for seat in run.workers if members[seat.id]["status"] == "short"]
        purse = ctx.purse(lab, run.phase["team"])
        costs = {seat.id: run.least_cost(seat, opening_to_work(ctx, lab, seat, purse)) for seat in short}
        if not any(member["turns"] > before[agent]["turns"] for agent, member in members.items()):
            costs = dict(list(costs.items())[: worked - 1])
        able = payable(costs, purse.left, ctx.shares_left(lab))
        members |= {agent: {**members[agent], "status": "ready"} for agent in able}
        if not able:
            for seat in short:
                run.lacking(seat, "the pool could not pay it")
                members[seat.id] = {**members[seat.id], "status": "done", "refused": 0}
        return bool(able)

    def answer(self, order: Step, heard: Heard) -> Draft:
        """The next cells of its task, or the calls that close it."""
        return work_draft(order, heard)


WORK = Work()
