"""Context of the nodes of the lab's graph, and digests of earlier work for agents' prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage

from labmates.agents.findings import FindingsForm
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import FlowPhase, Seat, Team
from labmates.agents.sections import excerpt, excerpts
from labmates.agents.steps import find_step, kinds_by_label, label_of
from labmates.agents.tools import ARGUMENTS, own_schema, tool_schemas
from labmates.agents.transcript import kept_data, kept_message
from labmates.budgets.ledger import Ledger
from labmates.budgets.purse import Purse
from labmates.budgets.tokens import FixedSchema
from labmates.models.names import SEAT
from labmates.records.events import PhaseEvent, ToolCallEvent, WarningEvent
from labmates.records.recorder import Recorder
from labmates.sandboxes.pool import RunSandboxes
from labmates.tasks.base import Dataset, Task
from labmates.workflows.calls.call import Speaker
from labmates.workflows.calls.caller import Caller
from labmates.workflows.people.approval import Approvals
from labmates.workflows.protocol.services import Services
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.evidence import seat_description
from labmates.workflows.science.lab.outside import SeatAgents
from labmates.workflows.science.lab.reserve import likely_cost, set_aside
from labmates.workflows.science.lab.state import LabState, Phase, first_state
from labmates.workflows.science.lab.tool_servers import ToolServers

if TYPE_CHECKING:
    from labmates.tasks.evidence import Part

OUTPUT_CHARS = 3_000
"""Characters of a member's code output shown to the writing lead (cooperative-profiles paper, appendix C.6)."""
CALLS_CHARS = 1_500
HANDED_CHARS = 6_000
"""Characters of an earlier team's artifact shown to a working member."""
MOST_FILE_BYTES = 2_000_000
"""Larger files of earlier teams are not handed on; the cleaned data of every task are smaller."""

_ABOUT = ("name", "description", "to_team", "target_team")
"""Arguments that identify the subject of a tool call."""


@dataclass(frozen=True)
class LabContext:
    """The context of one run of the lab. `findings_text` says what the paper has to state, `form` how it is stated,
    `libraries` which versions the sandboxes hold.

    `kept` holds what a node keeps while a person answers its interrupt, `system_messages` the system prompts so far, by
    seat.
    """

    condition: ScienceCondition
    task: Task[Any, Any]
    findings_text: str
    form: FindingsForm
    dataset: Dataset[Any]
    parts: tuple[Part, ...]
    ledger: Ledger
    caller: Caller
    recorder: Recorder
    sandboxes: RunSandboxes
    services: Services
    mcp: ToolServers
    approvals: Approvals
    agents: SeatAgents
    libraries: Mapping[str, str]
    kept: dict[str, Any] = field(default_factory=dict)
    system_messages: dict[str, BaseMessage] = field(default_factory=dict)

    @property
    def organisation(self) -> Organisation:
        """The organisation of this run."""
        return self.condition.crew

    @property
    def data(self) -> str:
        """What an agent's Python session holds."""
        return "the records of one instrument" if len(self.parts) > 1 else "the data set"

    def team(self, lab: LabState) -> Team:
        """The team of the current phase."""
        return self.organisation.teams[lab["agenda"][0]["team"]]

    def description(self, seat: str) -> str:
        """The instruments that there are, and the data dictionary of a seat's part."""
        return seat_description(self.task, self.parts, self.condition.holdings.get(seat))

    @cached_property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The descriptions of the tools, identical for all calls of the run: another list would break prompt caches."""
        names = self.mcp.names(self.organisation.tools)
        served = {name: tool.schema for name in names if (tool := self.mcp.get(name))}
        others = [served.get(name) or own_schema(name) for name in names if name not in ARGUMENTS]
        usual = tool_schemas([name for name in names if name in ARGUMENTS], self.form)
        return tuple(map(FixedSchema, [*usual, *others]))

    def held(self, team: Team, *, states: bool) -> list[str]:
        """Names of a working member's tools for models."""
        return self.mcp.names(team.tools(states=states))

    def speaker(self, team: Team, seat: Seat) -> Speaker:
        """The agent on a seat as a caller."""
        model = f"{SEAT}:{seat.id}" if seat.outside else self.condition.model_of(seat.id)
        return Speaker(team.name, seat.id, model)

    def purse(self, lab: LabState, team: str, sharers: int = 1) -> Purse:
        """The purse of a step of `team` from this state of the lab, bounded by the agents' shares."""
        aside = set_aside(self.condition, lab["agenda"], lab["likely"])
        return Purse(self.ledger, team, lab["spent"], sharers, aside=aside, shares=self.shares_left(lab))

    def shares_left(self, lab: LabState) -> dict[str, int]:
        """What is left of each seat's limit, in micro-dollars; empty for a common pool."""
        return {seat: share - lab["spent_by"].get(seat, 0) for seat, share in self.shares.items()}

    @cached_property
    def shares(self) -> dict[str, int]:
        """Each seat's limit for plans, work and talk, in micro-dollars; empty for a common pool."""
        if not (shares := self.organisation.share_of_seats()):
            return {}
        pool = max(0, self.ledger.total - set_aside(self.condition, first_state(self.organisation)["agenda"]))
        return {seat: int(share * pool) for seat, share in shares.items()}

    def purse_to_write(self, lab: LabState, team: Team, sharers: int = 1) -> Purse:
        """The purse of the step in which `team` writes its artifact, which may use the reserve."""
        aside = set_aside(self.condition, lab["agenda"][1:], lab["likely"])
        likely = lab["likely"].get(team.name, likely_cost(self.condition, team)) if self.sets_aside else 0
        return Purse(self.ledger, team.name, lab["spent"], sharers, aside=aside, likely=likely)

    @property
    def sets_aside(self) -> bool:
        """Whether a reserve is set aside; without one, the run ends at the first call that can't be paid."""
        return self.condition.reserve != 0

    def text(self, number: int) -> str:
        """Text of a body."""
        return self.recorder.bodies.text(number)

    def newest(self, lab: LabState, reader: Seat | None = None) -> dict[str, str]:
        """The newest content of every artifact by name; for a `reader`, only of readable ones."""
        may, shown = self.organisation.may, dict[str, str]()
        for name, versions in lab["artifacts"].items():
            readable = [each for each in versions if reader is None or may("read", reader.id, each["author"])]
            if readable:
                shown[name] = self.text(readable[-1]["content"])
        return shown

    def flow(self, lab: LabState) -> FlowPhase:
        """The current phase of the flow."""
        return self.organisation.flow[lab["agenda"][0]["place"]]

    def rounds(self, lab: LabState) -> int:
        """The rounds of the current step."""
        step = lab["agenda"][0]["steps"][0]
        return self.flow(lab).step(step).rounds or self.condition.deliberation_rounds

    def workers(self, lab: LabState) -> tuple[Seat, ...]:
        """The working seats of the current phase; one of them answers a request."""
        workers = self.organisation.workers(self.flow(lab))
        return workers[:1] if lab["agenda"][0]["asked"] else workers

    def remembered(self, lab: LabState, team: Team, seat: Seat, *, writes: bool = False) -> list[BaseMessage]:
        """The conversation that an agent continues, to write an artifact if `writes`; empty without memory."""
        remembers = team.memory == "conversation" or (team.memory == "phase" and writes)
        numbers = lab["conversations"].get(seat.id, []) if remembers else []
        messages = [kept_message(self.recorder.bodies[number]) for number in numbers]
        if messages and isinstance(messages[-1], HumanMessage):
            # Its last order is outdated, and servers reject two consecutive user messages.
            messages.pop()
        return messages

    def memory(self, team: Team, seat: Seat, messages: Sequence[BaseMessage]) -> dict[str, list[int]]:
        """The conversation of an agent, if its team remembers all of it."""
        if team.memory != "conversation":
            return {}
        return {seat.id: [self.recorder.bodies.keep(kept_data(message)) for message in messages]}

    def partial(self, lab: LabState) -> list[str]:
        """Names of the artifacts whose newest version is truncated."""
        return [name for name, versions in lab["artifacts"].items() if versions[-1]["partial"]]

    def heard(self, listener: Seat, said: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Contributions to a talk that a seat may hear."""
        return [(who, text) for who, text in said if self.organisation.may("tell", who, listener.id)]

    def stated(self, lab: LabState, reader: Seat) -> dict[str, dict[str, Any]]:
        """Current findings that a seat may read, by team in the order of the teams."""
        newest = {team: versions[-1] for team, versions in lab.get("findings", {}).items() if versions}
        teams = (team for team in self.organisation.teams.values() if team.name in newest)
        return {
            team.name: self.recorder.bodies[newest[team.name]]
            for team in teams
            if self.organisation.may("read", reader.id, team.lead.id)
        }


def warm_up(sandboxes: RunSandboxes, condition: ScienceCondition, team: Team) -> None:
    """Start the sandboxes of a team's members ahead of time: a start takes as long as several calls."""
    if team.has_code:
        for seat in team.seats:
            sandboxes.warm_up([seat], condition.model_of(seat))


def lacking(ctx: LabContext, step: str, speaker: Speaker, why: str) -> None:
    """Record that a reply was not bought."""
    text = f"{step}: no reply was bought: {why}"
    ctx.recorder.once(WarningEvent(step=f"{step}/unpaid", team=speaker.team, agent=speaker.agent, text=text))


def shown_artifacts(ctx: LabContext, lab: LabState, reader: Seat, most: int) -> dict[str, str]:
    """The newest artifacts that a seat may read, at most `most` characters of each, by name.

    Without the team's own, unless its phase goes back to that.
    """
    partial = ctx.partial(lab)
    reopened = any(find_step(name).reopens for name in ctx.flow(lab).names)
    return {
        name: excerpt(text, most) + ("\n[this artifact was cut off here]" if name in partial else "")
        for name, text in ctx.newest(lab, reader).items()
        if reopened or name != ctx.team(lab).artifact
    }


def handed_over(ctx: LabContext, lab: LabState, reader: Seat, most: int = HANDED_CHARS) -> dict[str, str]:
    """The artifacts of other teams that a seat may read, with at most `most` characters of each."""
    mine = ctx.team(lab).seats
    others = {name for name, versions in lab["artifacts"].items() if versions[-1]["author"] not in mine}
    shown = shown_artifacts(ctx, lab, reader, most)
    return {name: text for name, text in shown.items() if name in others}


def artifacts_text(shown: Mapping[str, str]) -> str:
    """Artifacts as one text."""
    return "\n\n".join(delimited(name, text) for name, text in shown.items())


def delimited(name: str, text: str) -> str:
    """A text between lines with its name, to separate its headings from those of the prompt."""
    return f"=== {name} ===\n{text}\n=== end of {name} ==="


def earlier_files(ctx: LabContext, lab: LabState, reader: Seat) -> dict[str, bytes]:
    """What a seat may read of earlier teams, by name: artifacts, findings, and the newest files of their code."""
    here, may = lab["agenda"][0], ctx.organisation.may
    files = {f"{name}.md": text.encode() for name, text in handed_over(ctx, lab, reader, MOST_FILE_BYTES).items()}
    for event in ctx.recorder.events:
        if isinstance(event, PhaseEvent) and (event.team, event.number) == (here["team"], here["number"]):
            break
        if isinstance(event, ToolCallEvent) and event.team != here["team"] and may("read", reader.id, event.agent):
            files |= {name: ctx.recorder.bodies[number] for name, number in event.files.items()}
    others = ((team, values) for team, values in ctx.stated(lab, reader).items() if team != here["team"])
    files |= {f"findings_of_{team}.json": json.dumps(values).encode() for team, values in others}
    return {name: content for name, content in files.items() if len(content) <= MOST_FILE_BYTES}


def mail_text(ctx: LabContext, lab: LabState, reader: Seat) -> str:
    """Messages to a seat's team that may reach the seat."""
    here, may = ctx.team(lab).name, ctx.organisation.may
    mail = [item for item in lab["mail"] if item["to"] == here and may("tell", item["agent"], reader.id)]
    lines = [f"- from the {item['sender']} team: {item['text']}" for item in mail]
    return "\n".join(lines)


def said_text(said: Sequence[tuple[str, str]]) -> str:
    """Contributions to a deliberation."""
    return "\n".join(f"[{agent}]: {text}" for agent, text in said)


def outputs_text(ctx: LabContext, outputs: Sequence[int], most: int = OUTPUT_CHARS) -> str:
    """Printed output from bodies, cut by the condition's rule for long outputs."""
    printed = [ctx.text(number).rstrip() for number in outputs]
    if ctx.condition.output_excerpt == "first":
        return excerpt("\n".join(printed), most, "first")
    return excerpts(printed, most)


def calls_text(ctx: LabContext, phase: Phase, seat: Seat) -> str:
    """Tool calls of a member in this phase, in order, each in a few words."""
    here, labels = f"{phase['team']}/{phase['number']}/{seat.id}/", kinds_by_label()
    calls = [
        event
        for event in ctx.recorder.events
        if isinstance(event, ToolCallEvent)
        and event.step.startswith(here)
        and (kind := labels.get(label_of(event.step)))
        and kind.does == "work"
    ]
    return excerpt("; ".join(_call(ctx, e) for e in calls if e.tool != "mark_complete"), CALLS_CHARS)


def _call(ctx: LabContext, event: ToolCallEvent) -> str:
    arguments = ctx.recorder.bodies[event.arguments]
    about = next((str(arguments[key]) for key in _ABOUT if arguments.get(key)), "")
    return f"{event.tool}{f' ({about[:80]})' if about else ''}{'' if event.ok else ': failed'}"
