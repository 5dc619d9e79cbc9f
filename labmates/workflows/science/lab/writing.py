"""The step in which an agent states the findings and writes an artifact, in one or several replies.

If the length limit cuts a reply, the next one continues the artifact. The agent must correct an invalid statement, and
once a paper whose findings were not stated with the tool and are unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace

from langchain_core.messages import BaseMessage, ToolMessage

from labmates.agents.organisation_parts import REPORT, Seat
from labmates.agents.prompts import render
from labmates.agents.sections import sections_of
from labmates.agents.tools import READ, STATE, TO_CLOSE, TO_WRITE, ToolError, WriteArtifact, check_arguments
from labmates.agents.transcript import append_line, replace_line
from labmates.agents.workspace import Workspace, Written, use_workspace
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS
from labmates.budgets.purse import Purse
from labmates.models.conversation import Conversation
from labmates.models.errors import ContextOverflowError
from labmates.models.objects import RefusedError, UnusableAnswerError
from labmates.models.reply import Reply
from labmates.records.events import ArtifactEvent
from labmates.workflows.calls.remarks import fault_text, kept_text, remark_on, sent_back
from labmates.workflows.science.lab.briefs import status_text
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.findings import findings_json, keep_findings, paper_faults, statement
from labmates.workflows.science.lab.reserve import likely_output
from labmates.workflows.science.lab.state import LabState, Phase, Version

MOST_READS = 6
"""Most replies that only read artifacts."""
MOST_PIECES = 12
"""An artifact is written in at most this many pieces plus one."""


@dataclass(eq=False)
class Author:
    """An agent that writes an artifact: the lead, or each member if all report."""

    ctx: LabContext
    lab: LabState
    purse: Purse
    seat: Seat
    artifact: str
    _: KW_ONLY
    first: int = 0  # the number of its first call
    # Both so far, oldest first; they are kept if the pool runs dry or replies become unusable.
    versions: list[Version] = field(default_factory=list, init=False)
    findings: list[int] = field(default_factory=list, init=False)
    _sent_back: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        ctx, lab = self.ctx, self.lab
        self.team, self._phase = ctx.team(lab), lab["agenda"][0]
        artifacts, cut = ctx.newest(lab, self.seat), ctx.partial(lab)
        self.workspace = Workspace(ctx.organisation, self.team.name, artifacts, {}, (), cut, ctx.form, self.seat.id)
        self._before = len(lab["artifacts"].get(self.artifact, []))
        stated = lab["findings"].get(self.team.name, []) if self.artifact == self.team.artifact else ()
        self._stated_before = len(stated)

    def affordable(self, orders: Iterable[list[BaseMessage]]) -> list[BaseMessage]:
        """The first of ever shorter transcripts that leaves money for a long enough reply; the last one if none does.

        The required length is that of the expected artifact, halved for each further transcript; without a reserve, any
        length is enough.
        """
        ctx, team = self.ctx, self.team
        wanted: int | None = None if ctx.sets_aside else 0
        messages: list[BaseMessage] = []
        speaker = ctx.speaker(team, self.seat)
        for messages in orders:
            wanted = likely_output(team, messages, ctx.tools) if wanted is None else wanted
            most = ctx.caller.most_output(speaker, messages, self.purse.left, self.ctx.tools)
            if most >= min(max(wanted, LEAST_OUTPUT_TOKENS), ctx.caller.whole_output(speaker)):
                break
            wanted //= 2
        return messages

    async def write(self, messages: list[BaseMessage]) -> None:
        """Ask until the artifact is complete and its findings are valid, with `repair_turns` repair turns in all.

        A reply that only reads artifacts is answered with their text. Raises `InsufficientFundsError` if the pool can't
        pay (another) reply, and `EndpointError` as `Caller.call` does.
        """
        async with self.ctx.agents.step(self.seat.id):
            await self._write(messages)

    async def _write(self, messages: list[BaseMessage]) -> None:
        order, told, reads, repairs, pieces = messages, self._status(), 0, 0, 0
        most = self.ctx.condition.repair_turns
        talk = self._conversation(messages)
        while True:
            asked = talk.messages
            try:
                reply = await talk.turn()
            except ContextOverflowError:
                return
            problem = self._state(reply)
            if reads < MOST_READS and _only_reads(reply):
                self._keep()
                *answers, last = self._answers(reply, problem)
                told = self._status()
                talk.messages = order = [*asked, reply.message, *answers, append_line(last, told)]
                reads += 1
                continue
            try:
                self._take(reply, last=repairs == most)
            except UnusableAnswerError as error:
                self._keep()
                error.remark = "\n\n".join(filter(None, [problem, self._standing(), remark_on(error)]))
                talk.reject(reply, error)
                repairs += 1
                if repairs > most:
                    return
                continue
            if refusal := self._refusal(talk.number - 1):
                self._keep()
                repairs += 1
                where = f"{self._phase['team']}/{self._phase['number']}/{self.seat.id}/write/"
                if repairs > most or self.ctx.approvals.is_closed("write", where, self.seat.id):
                    return
                remark = "\n\n".join(filter(None, [problem, refusal]))
                *rest, answer = sent_back(asked, reply, RefusedError(remark=remark))
                told = self._status()
                talk.messages = order = [*rest, append_line(answer, told)]
                continue
            has_progressed = self._keep()
            problem = problem or self._faults_of_the_paper()
            if problem:
                talk.fail(problem.partition("\n")[0])
            repairs, pieces = (repairs, pieces + 1) if has_progressed and not problem else (repairs + 1, pieces)
            if (self._is_complete and not problem) or pieces > MOST_PIECES or repairs > most:
                return
            # The remark lists the stated findings: the order stays short. Its line about the budget would be outdated.
            talk.messages = [*order[:-1], replace_line(order[-1], told, self._remark(reply, problem))]

    @property
    def _is_complete(self) -> bool:
        """Whether this step has completed the artifact."""
        return bool(self.versions) and not self.workspace.is_partial(self.artifact)

    def _state(self, reply: Reply) -> str:
        """Record a reply's findings in the workspace; returns their fault, if any."""
        problem = ""
        for call in reply.tool_calls:
            if call.name == STATE:
                try:
                    use_workspace(self.workspace, check_arguments(call.name, call.arguments, [STATE]))
                except ToolError as error:
                    problem = f"Error of state_findings: {error}"
        return problem

    def _answers(self, reply: Reply, problem: str) -> Iterator[ToolMessage]:
        """The answers to the calls of a reply that only reads, and perhaps states findings."""
        for call in reply.tool_calls:
            text = problem or self._standing()
            if call.name == READ:
                try:
                    text = use_workspace(self.workspace, check_arguments(call.name, call.arguments, [READ]))
                except ToolError as error:
                    text = f"Error: {error}"
            yield ToolMessage(text, tool_call_id=call.id)

    def _take(self, reply: Reply, *, last: bool) -> None:
        """Write the artifact of a reply; a reply that only adds findings to a finished artifact needs none."""
        name, text = self.artifact, reply.text
        only_states = bool(reply.tool_calls) and all(call.name == STATE for call in reply.tool_calls)
        if only_states and reply.cut_call is None and not sections_of(text):
            return
        is_finished = self._is_complete and not (set(TO_WRITE) & {call.name for call in reply.tool_calls})
        if not is_finished or _first_line(text) == _first_line(self.workspace.text(name)):
            take(self.workspace, reply, name, last=last)
        elif text.strip() and not paper_faults(text, self.ctx.task):
            with suppress(ToolError):
                self.workspace.append(name, text)

    def _refusal(self, number: int) -> str:
        """A person's objection to a completed artifact, which is then withdrawn; empty if approved.

        Partial versions need no approval: later replies complete them.
        """
        new = self.workspace.written[len(self.versions) :]
        if not new or new[-1].partial:
            return ""
        step = f"{self._phase['team']}/{self._phase['number']}/{self.seat.id}/write/{number}"
        speaker = self.ctx.speaker(self.team, self.seat)
        refusal = self.ctx.approvals.refusal("write", step, speaker, new[-1].name, new[-1].content)
        if refusal:
            del self.workspace.written[len(self.versions) :]
        return refusal

    def _faults_of_the_paper(self) -> str:
        """Faults of a paper's findings, reported once, if none were stated with the tool."""
        stated = self.findings or self._stated_before
        if self.team.artifact != REPORT or stated or self._sent_back or not self._is_complete:
            return ""
        faults = paper_faults(self.workspace.text(self.artifact), self.ctx.task)
        self._sent_back = bool(faults)
        return render("findings_missing", faults=faults) if faults else ""

    def _standing(self) -> str:
        if not self.workspace.stated:
            return ""
        newest = self.workspace.stated[-1]
        return f"{newest.answer} What stands:\n{findings_json(dict(newest.values))}"

    def _remark(self, reply: Reply, problem: str) -> str:
        """Feedback on a reply, and the remaining work."""
        name = self.artifact
        if self.versions and self.workspace.is_partial(name):
            left = kept_text(reply, name, self.workspace.text(name))
        elif self.versions:
            left = f"`{name}` is kept ({len(self.workspace.text(name))} characters): do not write it again."
        else:
            left = f"`{name}` is still to be written."
        return "\n\n".join(filter(None, [self._standing(), problem, left, self._status()]))

    def _status(self) -> str:
        return status_text(self.ctx, self.purse)

    def _conversation(self, messages: list[BaseMessage]) -> Conversation:
        team, phase, agent = self.team, self._phase, self.seat.id
        return self.ctx.caller.conversation(
            f"{phase['team']}/{phase['number']}/{agent}/write",
            self.ctx.speaker(team, self.seat),
            messages,
            self.purse,
            first=self.first,
            name=f"{agent}, phase {phase['number'] + 1}: write {self.artifact}",
            status=self._status,
            tools=self.ctx.tools,
            state_limit=True,
        )

    def _keep(self) -> bool:
        """Record the versions and findings of the last reply; returns whether it made progress."""
        agent = self.seat.id
        new = self.workspace.written[len(self.versions) :]
        for item in new:
            self.versions.append(version_of(self.ctx, agent, item))
            keep_version(self.ctx, self._phase, item.name, self._before + len(self.versions), self.versions[-1])
        had = len(self.findings)
        stated = [statement(self.ctx.recorder.bodies, findings) for findings in self.workspace.stated[had:]]
        place = "findings" if self.artifact == self.team.artifact else f"{agent}/findings"
        self.findings += keep_findings(self.ctx, self._phase, agent, self._stated_before + had, stated, place)
        return bool(new) or (bool(stated) and not had)


def _only_reads(reply: Reply) -> bool:
    names = {call.name for call in reply.tool_calls}
    return READ in names and names <= {READ, STATE} and reply.cut_call is None


def take(workspace: Workspace, reply: Reply, name: str, *, last: bool) -> None:
    """Write the artifact of a reply into the workspace: by its tool calls, or as plain text without calls.

    The received part of a cut call or text becomes a partial version. A text after a partial version continues it,
    unless it starts with the same line. Raises `UnusableAnswerError` if the reply has no artifact; the agent gets the
    text.

    Parameters
    ----------
    last
        Whether this is the last reply: then an artifact under another name is accepted.
    """
    wrong, misnamed, before = "", None, len(workspace.written)
    form = (
        f"Answer with one call of write_artifact: its name is `{name}`, and its content the whole text, each section "
        "under its heading."
    )
    for call in reply.tool_calls:
        if call.name in (READ, STATE):
            continue
        try:
            arguments = check_arguments(call.name, call.arguments, [*TO_CLOSE])
            target = getattr(arguments, "name", name)
            if target == name:
                use_workspace(workspace, arguments)
                continue
        except ToolError as error:
            wrong = str(error)
            continue
        wrong = f"the artifact must be called `{name}`, not `{target}`"
        if (
            isinstance(arguments, WriteArtifact)
            and arguments.content.strip()
            and workspace.organisation.owner(target) is None
        ):
            misnamed = arguments
    arrived = None
    if reply.cut_call is not None and reply.cut_call.arguments.get("name", name) == name:
        arrived = workspace.keep_cut(replace(reply.cut_call, arguments={**reply.cut_call.arguments, "name": name}))
    if arrived or len(workspace.written) > before:
        return
    if last and misnamed is not None:
        workspace.write(name, misnamed.content, misnamed.description)
        return
    if wrong:
        raise UnusableAnswerError(wrong, form=form)
    text, cut = reply.text, "cut" in reply.faults and "cut_tool_call" not in reply.faults
    if (problem := fault_text(reply)) and not (text.strip() and (last or cut)):
        raise UnusableAnswerError(problem, remark=f"{problem}\n{form}")
    if not text.strip():
        raise UnusableAnswerError("it holds no artifact", form=form)
    if not (last or cut or before or sections_of(text)):
        raise UnusableAnswerError("it is a text without sections", form=form)
    try:
        if before and workspace.is_partial(name) and _first_line(text) != _first_line(workspace.text(name)):
            workspace.append(name, text, partial=cut)
        else:
            workspace.write(name, text, partial=cut)
    except ToolError as error:
        raise UnusableAnswerError(str(error), form=form) from error


def version_of(ctx: LabContext, author: str, item: Written) -> Version:
    """What an agent has written as a version, with its text kept."""
    content = ctx.recorder.bodies.keep(item.content)
    return Version(content=content, author=author, description=item.description, partial=item.partial)


def keep_version(ctx: LabContext, phase: Phase, name: str, number: int, version: Version) -> None:
    """Record a version of an artifact, unless a resumed run's record holds it."""
    step, about = f"{phase['team']}/{phase['number']}/{name}/{number}", version["description"]
    where = {"step": step, "team": phase["team"], "agent": version["author"]}
    kept = {"content": version["content"], "description": about, "partial": version["partial"]}
    ctx.recorder.once(ArtifactEvent(**where, name=name, version=number, **kept))


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()
