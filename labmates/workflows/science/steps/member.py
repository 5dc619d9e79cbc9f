"""One agent at work: it calls tools until its task is complete, or turns, usable replies or credits run out.

The loop can resume anywhere: recorded calls are replayed, not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.runtime import Runtime

from labmates.agents.organisation_parts import Seat, Team
from labmates.agents.prompts import render
from labmates.agents.transcript import append_line, kept_data, kept_message, replace_line
from labmates.agents.workspace import RequestKind, Workspace, Written
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.errors import ContextOverflowError
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.prefix import mark_continued
from labmates.models.reply import Reply
from labmates.sandboxes.pool import Session
from labmates.workflows.calls.call import Speaker
from labmates.workflows.calls.remarks import fault_text, kept_text
from labmates.workflows.science.lab import briefs
from labmates.workflows.science.lab.context import (
    LabContext,
    artifacts_text,
    earlier_files,
    handed_over,
    lacking,
    mail_text,
    warm_up,
)
from labmates.workflows.science.lab.facts import seat_facts
from labmates.workflows.science.lab.findings import statement
from labmates.workflows.science.lab.reserve import set_aside
from labmates.workflows.science.lab.state import (
    Asked,
    Draft,
    LabState,
    Member,
    MemberResult,
    Waiting,
    WorkOrder,
    new_member,
    new_phase,
    readers,
)
from labmates.workflows.science.lab.tool_use import ToolUse, earlier_code, handing_over
from labmates.workflows.science.lab.writing import version_of

STAYS_OPEN = "another call of this reply failed, so the task stays open: mend it, then call mark_complete again"


async def work(state: WorkOrder, runtime: Runtime[LabContext]) -> dict[str, object]:
    """Let one member work; a node of the team's graph."""
    ctx, lab = runtime.context, state["lab"]
    team, phase = ctx.team(lab), lab["agenda"][0]
    seat = team.seats[state["agent"]]
    purse = ctx.purse(lab, team.name, state["sharers"]).spend_as(seat.id)
    model = ctx.condition.model_of(seat.id)
    earlier = earlier_code(ctx, phase["team"], seat.id)
    if team.has_code and (files := earlier_files(ctx, lab, seat)):
        earlier = [handing_over(files), *earlier]
    async with ctx.sandboxes.session(seat.id, model, earlier, ctx.condition.code_timeout) as code:
        worker = _Worker(ctx, lab, team, seat, purse, code)
        async with ctx.agents.step(seat.id):
            await worker.work()
    return {"results": {seat.id: worker.result()}, "spent": {team.name: purse.spent}, "spent_by": purse.spent_by}


def reminder(held: Sequence[str]) -> str:
    """The message to an agent with these tools whose reply called none."""
    example = {"name": "run_code", "arguments": {"code": "print(df.describe())"}}
    if "run_code" not in held:
        example = {"name": "list_artifacts", "arguments": {}}
    return render("nudge_no_tool", tools=", ".join(held), example=json.dumps(example))


class _Worker:
    def __init__(self, ctx: LabContext, lab: LabState, team: Team, seat: Seat, purse: Purse, code: Session) -> None:
        self.ctx = ctx
        self.phase = lab["agenda"][0]
        self.next_team = ctx.organisation.teams[lab["agenda"][1]["team"]] if lab["agenda"][1:] else None
        self.speaker: Speaker = ctx.speaker(team, seat)
        self.purse = purse
        self.most_turns = ctx.condition.turns_of(team)
        self.member: Member = {**self.phase["members"][seat.id], "waiting": []}
        most = ctx.condition.max_requests
        left = {t: most - lab["asked"].get(f"{team.name}>{t}", 0) for t in ctx.organisation.teams}
        states = ctx.organisation.states(seat)
        form = ctx.form if states else None
        artifacts, cut = ctx.newest(lab, seat), ctx.partial(lab)
        self.workspace = Workspace(
            ctx.organisation, team.name, artifacts, left, readers(lab["agenda"]), cut, form, seat.id
        )
        self.workspace.pays = partial(self._pays, lab)
        self.tools = ToolUse(ctx, self.speaker, purse, code, self.workspace, ctx.held(team, states=states))
        self.tools.outputs += self.member["outputs"]
        if self.next_team is not None:
            self.tools.after_code = partial(warm_up, ctx.sandboxes, ctx.condition, self.next_team)
        # Appends to an artifact are merged after parallel teammates' appends, if it may read those.
        self.adds = all(ctx.organisation.may("read", seat.id, other) for other in team.seats)
        self.waiting: list[Waiting] = []
        self.short, self.told = False, ""
        messages = opening_to_work(ctx, lab, seat, purse)
        if self.member["turns"]:
            messages[-1] = append_line(messages[-1], self._after())
        self.talk = ctx.caller.conversation(
            f"{self.phase['team']}/{self.phase['number']}/{seat.id}/work",
            self.speaker,
            messages,
            purse,
            name=f"{seat.id}, phase {self.phase['number'] + 1}: work {{}}",
            # A reply that was refused keeps its number: a rerun must not find that of a later round in its place.
            first=self.member["turns"] + self.member["refused"],
            status=self._after,
            tools=ctx.tools,
            usable=self.tools.held,
        )

    async def work(self) -> None:
        """Take turns until the task is closed, a request is pending, or a limit is reached."""
        step = f"{self.phase['team']}/{self.phase['number']}/{self.speaker.agent}/work"
        while not self.workspace.requests and self.workspace.summary is None and self.member["turns"] < self.most_turns:
            if self.member["failures"] > self.ctx.condition.repair_turns:
                return
            try:
                await self._turn()
            except ContextOverflowError:
                return
            except InsufficientFundsError:
                self.short = True
                return
        if not self.workspace.requests and self.workspace.summary is None:
            lacking(self.ctx, step, self.speaker, f"its {self.most_turns} replies ended without a report")

    def result(self) -> MemberResult:
        """Result of this step of work."""
        keep = self.ctx.recorder.bodies.keep
        waits = bool(self.workspace.requests) and self.workspace.summary is None
        *before, last = self.talk.messages
        messages = [*before, replace_line(last, self.told, "") if self.short else last]
        member: Member = {
            **self.member,
            "status": "waiting" if waits else "short" if self.short else "done",
            "refused": self.member["refused"] + self.short,
            "transcript": [keep(kept_data(message)) for message in messages],
            "summary": self.workspace.summary or self.member["summary"],
            "outputs": self.tools.outputs,
            "waiting": self.waiting,
        }
        return MemberResult(
            member=member,
            written=[
                Draft(name=item.name, version=version_of(self.ctx, self.speaker.agent, item), adds=adds)
                for item, adds in map(self._as_added, self.workspace.written)
            ],
            stated=[statement(self.ctx.recorder.bodies, findings) for findings in self.workspace.stated],
            sent=[(item.team, item.content) for item in self.workspace.sent],
            requests=[(item.team, item.kind, item.request, item.justification) for item in self.workspace.requests],
        )

    def _as_added(self, item: Written) -> tuple[Written, bool]:
        """What was written, or of an append that is merged later the appended text alone; and which of both."""
        adds = item.added is not None and self.adds
        return replace(item, content=item.added or "") if adds else item, adds

    def _pays(self, lab: LabState, name: str, kind: RequestKind) -> bool:
        """Whether the first member of a team could be paid for work on a request, from what this member has left."""
        ctx, asked = self.ctx, Asked(by=self.phase["team"], kind=kind, request="", justification="")
        phase = new_phase(ctx.organisation, ctx.organisation.place(name), lab["phases"][name], asked)
        then: LabState = {**lab, "agenda": [phase, *lab["agenda"]]}
        [seat] = ctx.workers(then)
        phase["members"] = {seat.id: new_member(seat.part)}
        order = opening_to_work(ctx, then, seat, self.purse)
        aside = set_aside(ctx.condition, [phase], lab["likely"])
        return self.purse.left - aside >= ctx.caller.reservation(ctx.speaker(ctx.team(then), seat), order, ctx.tools)

    async def _turn(self) -> None:
        reply = await self.talk.turn()
        self.member["turns"] += 1
        if reply.tool_calls:
            self.member["failures"] = 0
            self.talk.messages = [*self.talk.messages, reply.message, *await self._answers(reply)]
            return
        arrived = self._kept(reply)
        remark = arrived or self._remark(reply)
        self.member["failures"] = 0 if arrived else self.member["failures"] + 1
        self.talk.reject(reply, UnusableAnswerError("no tool call", remark=remark))

    def _remark(self, reply: Reply) -> str:
        """The message to the agent about a reply without a usable tool call."""
        fault = fault_text(reply)
        if fault and {"bad_tool_call", "cut_tool_call"} & {*reply.faults}:
            return fault
        return "\n".join(filter(None, [fault, reminder(self.tools.held)]))

    def _after(self) -> str:
        """The line about the budget after a reply, and the notice before the agent's last one."""
        last = self.most_turns - self.member["turns"] == 1 and self.workspace.summary is None
        notice = render("last_reply") if last else ""
        self.told = "\n\n".join(filter(None, [briefs.status_text(self.ctx, self.purse), notice]))
        return self.told

    def _kept(self, reply: Reply) -> str | None:
        """Write the received part of a cut call; returns the message to the agent about it."""
        arrived = self.workspace.keep_cut(reply.cut_call) if reply.cut_call else None
        return arrived and kept_text(reply, arrived, self.workspace.text(arrived))

    async def _answers(self, reply: Reply) -> list[BaseMessage]:
        """The answers to the tool calls of a reply."""
        answers: list[BaseMessage] = []
        step = f"{self.phase['team']}/{self.phase['number']}/{self.speaker.agent}/work/{self.talk.number - 1}"
        failures, is_last = self.tools.failures, self.member["turns"] == self.most_turns
        for n, call in enumerate(reply.tool_calls):
            asked = len(self.workspace.requests)
            is_early = call.name == "mark_complete" and self.tools.failures > failures and not is_last
            text = await self.tools.use(f"{step}/{n}", call, STAYS_OPEN if is_early else "")
            answers.append(ToolMessage(text, tool_call_id=call.id))
            if len(self.workspace.requests) > asked:
                self.waiting.append(Waiting(call=call.id, team=self.workspace.requests[-1].team, answer=""))
        if remark := self._kept(reply) or fault_text(reply):
            answers[-1] = append_line(answers[-1], remark)
        if self.workspace.summary is None:
            answers[-1] = append_line(answers[-1], self._after())
        return answers


def opening_to_work(ctx: LabContext, lab: LabState, seat: Seat, purse: Purse) -> list[BaseMessage]:
    """The transcript with which a member's work begins or, without a line about the budget, goes on."""
    team, member, bodies = ctx.team(lab), lab["agenda"][0]["members"][seat.id], ctx.recorder.bodies
    if not member["turns"]:
        order = mark_continued(work_order(ctx, lab, seat, purse).human())
        return [*(ctx.remembered(lab, team, seat) or [briefs.system_message(ctx, team, seat)]), order]
    messages = [kept_message(bodies[number]) for number in member["transcript"]]
    waited = {item["call"]: item["answer"] for item in member["waiting"]}
    for i, message in enumerate(messages):
        if isinstance(message, ToolMessage) and message.tool_call_id in waited:
            messages[i] = ToolMessage(waited[message.tool_call_id], tool_call_id=message.tool_call_id)
    return messages


def work_order(ctx: LabContext, lab: LabState, seat: Seat, purse: Purse) -> Order:
    """A member's order to work."""
    team, phase = ctx.team(lab), lab["agenda"][0]
    turns, task = ctx.condition.turns_of(team), phase["members"][seat.id]["task"]
    held = ctx.held(team, states=ctx.organisation.states(seat))
    lacking = [name for name in ctx.mcp.names(ctx.organisation.tools) if name not in held]
    reading = [name for name in readers(lab["agenda"]) if ctx.organisation.may("tell", seat.id, name)]
    given = handed_over(ctx, lab, seat)
    has_worked = any(past["members"][seat.id]["turns"] for past in lab["earlier"].get(team.name, []))
    artifact = ctx.organisation.artifact_of(seat)
    also = {name: [*sections] for name, sections in team.also.items() if sections}
    values = {
        **briefs.so_far(ctx, lab, seat),
        "task": briefs.Shown(task, {"task": task}),
        "plan": phase["plan"],
        "request": briefs.request_value(ctx, lab),
        "artifact_names": briefs.readable_value(ctx, lab, seat),
        "readers": briefs.Shown(", ".join(reading), {"readers": reading}),
        "mail": mail_text(ctx, lab, seat),
        "turns": briefs.Shown(str(turns), {"turns": turns}),
        "tools": briefs.Shown(f"all but {', '.join(lacking)}" if lacking else "all", {"lacking": lacking}),
        "output": str(ctx.caller.whole_output(ctx.speaker(team, seat))),
        "code_hint": briefs.code_hint(ctx, lab, seat),
        "artifacts": briefs.Shown(artifacts_text(given), {"material": given}),
        "writes": "You write" if seat == team.lead else f"{briefs.name_of(team.lead, team).capitalize()} writes",
        "artifact": briefs.Shown(artifact, {"artifact": artifact}),
        "artifact_sections": briefs.Shown(
            "\n\n".join(f"`{name}`\n{briefs.bullets(lines)}" for name, lines in also.items()), {"also": also}
        ),
        "material": briefs.material_text(ctx, team),
        "theory_of_mind": briefs.theory_of_mind(ctx, seat),
        "budget": briefs.status_text(ctx, purse),
        # Small models do what they read last.
        "begin": "" if has_worked else ctx.organisation.render("begin", seat_facts(ctx.condition, seat)),
    }
    return briefs.step_order(ctx, lab, seat, "work", "work", values)
