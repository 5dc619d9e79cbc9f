"""The tool calls of an agent: paid, carried out and recorded; recorded calls are replayed."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard, cast

from labmates.agents.prompts import render
from labmates.agents.tools import ARGUMENTS, RunCode, ToolError, check_arguments, use_own_tool
from labmates.agents.workspace import Workspace, use_workspace
from labmates.budgets.purse import Purse
from labmates.models.reply import ToolCall
from labmates.models.tracing import tool_trace
from labmates.records.events import RESULTS, ChargeEvent, Event, PhaseEvent, ToolCallEvent
from labmates.sandboxes.base import CodeResult, OutputFile
from labmates.sandboxes.pool import Session
from labmates.workflows.calls.call import Speaker
from labmates.workflows.science.lab.context import LabContext


@dataclass
class ToolUse:
    """Context of an agent's tool calls."""

    ctx: LabContext
    speaker: Speaker
    purse: Purse
    code: Session
    workspace: Workspace
    held: list[str]  # names of its tools
    outputs: list[int] = field(default_factory=list)  # output of its code, as numbers of bodies
    after_code: Callable[[], object] = lambda: None  # called after each piece of code
    failures: int = 0  # number of calls that failed

    async def use(self, step: str, call: ToolCall, refusal: str = "") -> str:
        """The answer to a call, which may be a `refusal`; a recorded call is replayed.

        Raises `InsufficientFundsError` if the purse can't pay the call.
        """
        event = cast(ToolCallEvent | None, self.ctx.recorder.done("tool_call", step))
        if event is not None:
            return self._replayed(step, call, event)
        refusal = refusal or self._refusal(step, call)
        price = self.ctx.condition.prices.tool_call
        async with self.ctx.caller.steps.step():
            with self.purse.reserve(price, step) as hold:
                used = _Used(f"Error: {refusal}", ok=False) if refusal else await self._carry_out(step, call)
                paid = -hold.charge(price).amount
            event = self._event(step, call, used)
            is_free = used.code is None and call.name in ARGUMENTS  # it can be repeated at no cost
            if not is_free and (then := self._as_recorded(event)) is not event:
                event, used = then, replace(used, text=self.ctx.text(then.result))
            if event.status:
                self.outputs.append(event.result)
            self.failures += not event.ok
            charge = ChargeEvent(step=step, team=event.team, agent=event.agent, amount=paid)
            self.ctx.recorder.emit(event, *([charge] if paid else []))
            if not is_free:
                await self.ctx.recorder.flush()
        return used.text

    def _as_recorded(self, event: ToolCallEvent) -> ToolCallEvent:
        """In a replay, the event with the recorded results of its step, on which all that follows depends."""
        past, repeated = self.ctx.services.past, self.ctx.services.repeated
        if past is None or repeated is None or self.ctx.mcp.get(event.tool) is not None:
            return event
        then = cast(ToolCallEvent | None, past.done("tool_call", event.step))
        if then is None:
            return event
        repeated(then, event)
        return event.model_copy(update={name: getattr(then, name) for name in RESULTS})

    def _refusal(self, step: str, call: ToolCall) -> str:
        """The message to the agent if a person refuses the call; empty if it is approved."""
        approvals = self.ctx.approvals
        if call.name not in ARGUMENTS or not (approvals.cover("write") or approvals.cover("request")):
            return ""
        trial = self.workspace.copy()
        try:
            arguments = check_arguments(call.name, call.arguments, self.held)
            if not isinstance(arguments, RunCode):
                use_workspace(trial, arguments)
        except ToolError:
            return ""  # Its answer describes the error.
        for request in trial.requests[len(self.workspace.requests) :]:
            text = "\n".join(filter(None, (request.request, request.justification)))
            return approvals.refusal("request", step, self.speaker, request.team, text)
        for item in trial.written[len(self.workspace.written) :]:
            if not item.partial:
                return approvals.refusal("write", step, self.speaker, item.name, item.content)
        return ""

    async def _carry_out(self, step: str, call: ToolCall) -> _Used:
        try:
            if call.name in self.held and call.name not in ARGUMENTS:
                if self.ctx.mcp.get(call.name) is not None:
                    return _Used(await self.ctx.mcp.use(step, call.name, call.arguments))
                return _Used(await use_own_tool(call.name, call.arguments))
            async with tool_trace(f"{self.speaker.agent}: {call.name}", call.arguments) as output:
                arguments = check_arguments(call.name, call.arguments, self.held)
                if isinstance(arguments, RunCode):
                    used = await self._run(arguments.code)
                else:
                    used = _Used(use_workspace(self.workspace, arguments))
                output.append(used.text)
                return used
        except ToolError as error:
            return _Used(f"Error: {error}", ok=False)

    async def _run(self, code: str) -> _Used:
        result = await self.code.run(code)
        self.after_code()
        lost = render("no_such_file") if result.status == "error" and "\nFileNotFoundError: " in result.text else ""
        text = "\n".join(filter(None, (result.text, _kept(result.files), result.note, lost))) or "[no output]"
        return _Used(text, result.status == "ok", result, code)

    def _replayed(self, step: str, call: ToolCall, event: ToolCallEvent) -> str:
        charge = cast(ChargeEvent | None, self.ctx.recorder.done("charge", step))
        self.purse.note(charge.amount if charge else 0)
        self.failures += not event.ok
        if event.status:
            self.outputs.append(event.result)
        elif event.ok and call.name in ARGUMENTS:
            use_workspace(self.workspace, check_arguments(call.name, call.arguments, self.held))
        return self.ctx.text(event.result)

    def _event(self, step: str, call: ToolCall, used: _Used) -> ToolCallEvent:
        keep = self.ctx.recorder.bodies.keep
        code = used.code
        return ToolCallEvent(
            step=step,
            team=self.speaker.team,
            agent=self.speaker.agent,
            tool=call.name,
            arguments=keep({**call.arguments, "code": used.ran} if code else call.arguments),
            result=keep(used.text),
            ok=used.ok,
            status=code.status if code else "",
            state_lost=code.state_lost if code else False,
            images=[keep(image) for image in code.images] if code else [],
            files={file.name: keep(file.content) for file in code.files} if code else {},
            seconds=round(code.seconds, 4) if code else 0.0,
        )


@dataclass(frozen=True)
class _Used:
    """Outcome of a tool call: the text for the agent, and of code the result, and what was run."""

    text: str
    ok: bool = True
    code: CodeResult | None = None
    ran: str = ""


def _kept(files: Sequence[OutputFile]) -> str:
    names = ", ".join(f"out/{file.name} ({len(file.content):,} bytes)" for file in files)
    return f"Files kept: {names}" if names else ""


def earlier_code(ctx: LabContext, team: str, agent: str) -> list[str]:
    """The agent's earlier code that defines the variables of its session."""
    first = max((e.number for e in ctx.recorder.events if _starts_anew(e, team)), default=0)
    cells: list[str] = []
    for event in ctx.recorder.events:
        if not (isinstance(event, ToolCallEvent) and event.agent == agent and event.status):
            continue
        if event.state_lost:
            cells.clear()
        elif event.status in ("ok", "error") and int(event.step.split("/")[1]) >= first:
            cells.append(ctx.recorder.bodies[event.arguments]["code"])
    return cells


def handing_over(files: Mapping[str, bytes]) -> str:
    """Code that writes files of earlier teams into the folder ``in``."""
    packed = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return (
        "import base64 as _b, pathlib as _p\n"
        f"for _name, _text in {packed!r}.items():\n"
        "    _path = _p.Path('in', _name)\n"
        "    _path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    _path.write_bytes(_b.b64decode(_text))\n"
        "del _b, _p, _name, _text, _path"
    )


def _starts_anew(event: Event, team: str) -> TypeGuard[PhaseEvent]:
    return isinstance(event, PhaseEvent) and event.team == team and event.reason == "redo"
