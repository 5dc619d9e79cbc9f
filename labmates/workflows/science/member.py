"""One agent at work: it calls its tools until its task is complete, or turns, usable replies or credits run out.

The loop can be taken up anywhere: what the record holds of it is told again, not executed and paid again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.runtime import Runtime

from labmates.agents.organisation import Seat, Team
from labmates.agents.prompts import render
from labmates.agents.tools import RunCode, ToolError, check_arguments
from labmates.agents.transcript import append_line, kept_data, kept_message
from labmates.agents.workspace import Workspace, use_workspace
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.errors import ContextOverflowError
from labmates.models.objects import UnusableAnswerError
from labmates.models.prefix import mark_continued
from labmates.models.reply import Reply, ToolCall
from labmates.records.events import ChargeEvent, Event, PhaseEvent, ToolCallEvent
from labmates.sandboxes.base import CodeResult, OutputFile
from labmates.workflows.asking import conversation, fault_text, kept_text
from labmates.workflows.calls import Speaker
from labmates.workflows.sandbox_pool import Session
from labmates.workflows.science.briefs import answered_text, status_text, system_message, work_prompt
from labmates.workflows.science.context import LabContext, warm_up
from labmates.workflows.science.findings import statement
from labmates.workflows.science.state import Draft, LabState, Member, MemberResult, Phase, Waiting, WorkOrder, readers


async def work(state: WorkOrder, runtime: Runtime[LabContext]) -> dict[str, object]:
    """Let one member work; a node of the team's graph."""
    ctx, lab = runtime.context, state["lab"]
    team, phase = ctx.team(lab), lab["agenda"][0]
    seat = team.seats[state["agent"]]
    purse = ctx.purse(lab, team.name, state["sharers"])
    model = ctx.condition.model_of(team.name)
    async with ctx.sandboxes.session(
        seat.id, model, _earlier_code(ctx, phase, seat), ctx.condition.code_timeout
    ) as code:
        worker = _Worker(ctx, lab, team, seat, purse, code)
        await worker.work()
    return {"results": {seat.id: worker.result()}, "spent": {team.name: purse.spent}}


class _Worker:
    def __init__(self, ctx: LabContext, lab: LabState, team: Team, seat: Seat, purse: Purse, code: Session) -> None:
        self.ctx = ctx
        self.phase = lab["agenda"][0]
        self.next_team = ctx.organisation.teams[lab["agenda"][1]["team"]] if lab["agenda"][1:] else None
        self.speaker: Speaker = ctx.speaker(team, seat)
        self.purse = purse
        self.code = code
        self.held = team.tools(leads=seat == team.lead)
        self.most_turns = ctx.condition.turns_of(team)
        self.member: Member = {**self.phase["members"][seat.id], "waiting": []}
        most = ctx.condition.max_requests
        left = {t: most - lab["asked"].get(f"{team.name}>{t}", 0) for t in ctx.organisation.teams}
        form = ctx.form if seat == team.lead else None
        artifacts, cut = ctx.newest(lab, seat), ctx.partial(lab)
        self.workspace = Workspace(ctx.organisation, team.name, artifacts, left, readers(lab["agenda"]), cut, form)
        self.adds = not team.private  # to versions that teammates may write meanwhile
        self.outputs: list[int] = list(self.member["outputs"])
        self.waiting: list[Waiting] = []
        self.talk = conversation(
            ctx.caller,
            f"{self.phase['team']}/{self.phase['number']}/{seat.id}/work",
            self.speaker,
            self._opening(lab, team, seat),
            purse,
            name=f"{seat.id}, phase {self.phase['number'] + 1}: work {{}}",
            first=self.member["turns"],
            tools=ctx.tools,
        )

    async def work(self) -> None:
        """Take turns until the task is closed, a request has to be waited for, or nothing is left to go on with."""
        while not self.workspace.requests and self.workspace.summary is None and self.member["turns"] < self.most_turns:
            if self.member["failures"] > self.ctx.condition.repair_turns:
                return
            try:
                await self._turn()
            except (InsufficientFundsError, ContextOverflowError):
                return

    def result(self) -> MemberResult:
        """Return what this step of work leaves behind."""
        keep = self.ctx.recorder.bodies.keep
        waits = bool(self.workspace.requests) and self.workspace.summary is None
        member: Member = {
            **self.member,
            "status": "waiting" if waits else "done",
            "transcript": [keep(kept_data(message)) for message in self.talk.messages],
            "summary": self.workspace.summary or self.member["summary"],
            "outputs": self.outputs,
            "waiting": self.waiting,
        }
        return MemberResult(
            member=member,
            written=[
                Draft(
                    name=item.name,
                    content=keep(item.added if item.added is not None and self.adds else item.content),
                    description=item.description,
                    adds=item.added is not None and self.adds,
                    partial=item.partial,
                )
                for item in self.workspace.written
            ],
            stated=[statement(self.ctx.recorder.bodies, one) for one in self.workspace.stated],
            sent=[(item.team, item.content) for item in self.workspace.sent],
            requests=[(item.team, item.kind, item.request, item.justification) for item in self.workspace.requests],
        )

    def _opening(self, lab: LabState, team: Team, seat: Seat) -> list[BaseMessage]:
        bodies = self.ctx.recorder.bodies
        messages = [kept_message(bodies[number]) for number in self.member["transcript"]]
        if not messages:
            order = mark_continued(work_prompt(self.ctx, lab, seat, self.purse).human())
            return [*(self.ctx.remembered(lab, team, seat) or [system_message(self.ctx, team, seat)]), order]
        waited = {item["call"]: item for item in self.phase["members"][seat.id]["waiting"]}
        for i, message in enumerate(messages):
            if isinstance(message, ToolMessage) and message.tool_call_id in waited:
                text = answered_text(self.ctx, lab, waited[message.tool_call_id])
                messages[i] = ToolMessage(text, tool_call_id=message.tool_call_id)
        return messages

    async def _turn(self) -> None:
        reply = await self.talk.turn()
        self.member["turns"] = self.talk.number
        if reply.tool_calls:
            self.member["failures"] = 0
            self.talk.messages = [*self.talk.messages, reply.message, *await self._answers(reply)]
            return
        kept = self._kept(reply)
        remark = kept or fault_text(reply) or render("nudge_no_tool", tools=", ".join(self.held))
        self.member["failures"] = 0 if kept else self.member["failures"] + 1
        remark = f"{remark}\n\n{self._last_reply()}".rstrip()
        self.talk.reject(reply, UnusableAnswerError("no tool call", remark=remark))

    def _last_reply(self) -> str:
        """Tell the agent that its next reply is the last that it has; empty before."""
        last = self.most_turns - self.member["turns"] == 1 and self.workspace.summary is None
        return render("last_reply") if last else ""

    def _kept(self, reply: Reply) -> str | None:
        """Keep what arrived of a cut call that writes; return what the agent has to know of it."""
        kept = self.workspace.keep_cut(reply.cut_call) if reply.cut_call else None
        return kept and kept_text(reply, kept, self.workspace.text(kept))

    async def _answers(self, reply: Reply) -> list[BaseMessage]:
        """Use the tools that a reply calls, and answer each call."""
        answers: list[BaseMessage] = []
        step = f"{self.phase['team']}/{self.phase['number']}/{self.speaker.agent}/work/{self.talk.number - 1}"
        for n, call in enumerate(reply.tool_calls):
            asked = len(self.workspace.requests)
            text = await self._use(f"{step}/{n}", call)
            answers.append(ToolMessage(text, tool_call_id=call.id))
            if len(self.workspace.requests) > asked:
                self.waiting.append(Waiting(call=call.id, team=self.workspace.requests[-1].team, refused=False))
        if remark := self._kept(reply) or fault_text(reply):
            answers[-1] = append_line(answers[-1], remark)
        answers[-1] = append_line(answers[-1], status_text(self.ctx, self.purse))
        answers[-1] = append_line(answers[-1], self._last_reply())
        return answers

    async def _use(self, step: str, call: ToolCall) -> str:
        told = cast(ToolCallEvent | None, self.ctx.recorder.done("tool_call", step))
        if told is not None:
            return self._tell(step, call, told)
        price = self.ctx.condition.prices.tool_call
        async with self.ctx.caller.steps.step():
            reservation = self.purse.reserve(price, step)
            try:
                used = await self._carry_out(call)
            except BaseException:
                self.purse.release(reservation)
                raise
            entry = self.purse.settle(reservation, price)
            self._record(step, call, used, -entry.amount)
            if used.code is not None:
                # What else tools do costs nothing to do again.
                await self.ctx.recorder.flush()
        return used.text

    async def _carry_out(self, call: ToolCall) -> _Used:
        try:
            arguments = check_arguments(call.name, call.arguments, self.held)
            if isinstance(arguments, RunCode):
                return await self._run(arguments.code)
            return _Used(use_workspace(self.workspace, arguments))
        except ToolError as error:
            return _Used(f"Error: {error}", ok=False)

    async def _run(self, code: str) -> _Used:
        async def run_code(code: str) -> CodeResult:
            return await self.code.run(code)

        result = await RunnableLambda(run_code, name=f"{self.speaker.agent}: run_code").ainvoke(code)
        if self.next_team is not None:
            warm_up(self.ctx.sandboxes, self.ctx.condition, self.next_team)
        text = "\n".join(part for part in (result.text, _kept(result.files), result.note) if part) or "[no output]"
        self.outputs.append(self.ctx.recorder.bodies.keep(text))
        return _Used(text, result.status == "ok", result)

    def _tell(self, step: str, call: ToolCall, told: ToolCallEvent) -> str:
        charge = cast(ChargeEvent | None, self.ctx.recorder.done("charge", step))
        self.purse.note(charge.amount if charge else 0)
        if told.status:
            self.outputs.append(told.result)
        elif told.ok:
            use_workspace(self.workspace, check_arguments(call.name, call.arguments, self.held))
        return self.ctx.text(told.result)

    def _record(self, step: str, call: ToolCall, used: _Used, paid: int) -> None:
        keep = self.ctx.recorder.bodies.keep
        where = {"step": step, "team": self.speaker.team, "agent": self.speaker.agent}
        code = used.code
        event = ToolCallEvent(
            **where,
            tool=call.name,
            arguments=keep(call.arguments),
            result=keep(used.text),
            ok=used.ok,
            status=code.status if code else "",
            state_lost=code.state_lost if code else False,
            images=[keep(image) for image in code.images] if code else [],
            files={file.name: keep(file.content) for file in code.files} if code else {},
            seconds=round(code.seconds, 4) if code else 0.0,
        )
        self.ctx.recorder.emit(event, *([ChargeEvent(**where, amount=paid)] if paid else []))


@dataclass(frozen=True)
class _Used:
    """What came of a tool call: the text for the agent, and the code's result if it ran any."""

    text: str
    ok: bool = True
    code: CodeResult | None = None


def _kept(files: Sequence[OutputFile]) -> str:
    """Tell the agent which files were taken over."""
    names = ", ".join(f"out/{file.name} ({len(file.content):,} bytes)" for file in files)
    return f"Files kept: {names}" if names else ""


def _earlier_code(ctx: LabContext, phase: Phase, seat: Seat) -> list[str]:
    """Return the code that the agent ran so far and whose variables it still counts on."""
    first = max((e.number for e in ctx.recorder.events if _starts_anew(e, phase["team"])), default=0)
    cells: list[str] = []
    for event in ctx.recorder.events:
        if not (isinstance(event, ToolCallEvent) and event.agent == seat.id and event.status):
            continue
        if event.state_lost:
            cells.clear()
        elif event.status in ("ok", "error") and int(event.step.split("/")[1]) >= first:
            cells.append(ctx.recorder.bodies[event.arguments]["code"])
    return cells


def _starts_anew(event: Event, team: str) -> TypeGuard[PhaseEvent]:
    return isinstance(event, PhaseEvent) and event.team == team and event.reason == "redo"
