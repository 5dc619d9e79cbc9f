"""Report: each member states its findings and writes a report of its own; a fixed rule merges them."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from labmates.agents.workspace import Written
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.findings import JOINED, joined_reports, keep_findings, merged_findings
from labmates.workflows.science.lab.state import Phase, WorkOrder
from labmates.workflows.science.lab.state import Report as Reported
from labmates.workflows.science.lab.writing import Author, keep_version, version_of
from labmates.workflows.science.steps.base import LabStep, Update
from labmates.workflows.science.steps.running import StepRun, payable
from labmates.workflows.science.steps.write import WRITE, transcripts


class Report(LabStep):
    """Each member writes a report, which its teammates don't see."""

    name = "report"
    does = "write"
    by_each = True
    member_node = "{}_reports"
    join_node = "merge"
    label = "write"
    order = "write"

    def takers(self, phase: Phase) -> Sequence[str]:
        """All members; after that, those that money is left for."""
        return [name for name, member in phase["members"].items() if member["status"] == "ready"] or [*phase["members"]]

    async def of_member(self, order: WorkOrder, runtime: Runtime[LabContext]) -> Update:
        """Let one member state its findings and write a separate report, hidden from its teammates."""
        ctx, lab = runtime.context, order["lab"]
        team = ctx.team(lab)
        seat = team.seats[order["agent"]]
        purse, paid = ctx.purse_to_write(lab, team, order["sharers"]), True
        refused = lab["agenda"][0]["members"][seat.id]["refused"]
        author = Author(ctx, lab, purse, seat, ctx.organisation.artifact_of(seat), first=refused)
        try:
            await author.write(author.affordable(transcripts(ctx, lab, purse, seat, author.artifact)))
        except InsufficientFundsError:
            paid = bool(author.versions)
        report = Reported(artifact=author.artifact, versions=author.versions, findings=author.findings, paid=paid)
        return {"reports": {seat.id: report}, "spent": {team.name: purse.spent}}

    async def take(self, run: StepRun) -> Update:
        """Merge the findings of all reports by the rule of `labmates.tasks.merging`, and join the reports.

        Before that, members whose shares ran short write with what the others left, as many as that can pay.
        """
        ctx, state, team = run.ctx, run.state, run.team
        reports = {seat: state["reports"][seat] for seat in team.seats}
        purse, members = ctx.purse_to_write(run.lab, team), dict(run.phase["members"])
        costs = {}
        for seat in [team.seats[name] for name, report in reports.items() if not report["paid"]]:
            *_, shortest = transcripts(ctx, run.lab, purse, seat, reports[seat.id]["artifact"])
            costs[seat.id] = run.least_cost(seat, shortest)
        taken = self.takers(run.phase)
        if not any(reports[name]["paid"] for name in taken):
            costs = dict(list(costs.items())[: len(taken) - 1])  # shares of fewer are larger
        able = payable(costs, purse.left, {})
        if able:
            for name, member in members.items():
                refused = member["refused"] + (name in taken and not reports[name]["paid"])
                members[name] = {**member, "status": "ready" if name in able else "done", "refused": refused}
            return {"agenda": [{**run.phase, "members": members}, *state["agenda"][1:]]}
        findings = merged_findings(ctx, reports.values())
        before = len(state["findings"].get(team.name, []))
        merged = keep_findings(ctx, run.phase, "", before, findings)
        written = {seat: report for seat, report in reports.items() if report["versions"]}
        if not written and not all(report["paid"] for report in reports.values()):
            return run.unpaid(Purse(ctx.ledger, team.name, state["spent"]))
        artifacts = {report["artifact"]: report["versions"] for report in written.values()}
        if written:
            texts = {seat: ctx.text(report["versions"][-1]["content"]) for seat, report in written.items()}
            paper = version_of(ctx, "", Written(team.artifact, joined_reports(texts), JOINED))
            keep_version(ctx, run.phase, team.artifact, len(state["artifacts"].get(team.artifact, [])) + 1, paper)
            artifacts[team.artifact] = [paper]
        return run.next(findings={team.name: merged}, artifacts=artifacts)

    def answer(self, order: Step, heard: Heard) -> Draft:
        """As for a paper."""
        return WRITE.answer(order, heard)


REPORT = Report()
