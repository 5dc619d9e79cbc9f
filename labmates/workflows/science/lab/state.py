"""The state of the lab's graph: small plain data, with long texts in bodies referenced by number.

The `agenda` is a stack of phases; the first is the current one. A request to an earlier team pushes a phase on top of
the requesting team's, which continues after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import add, or_
from typing import Annotated, Literal, TypedDict, TypeVar

from labmates.agents.organisation import Organisation
from labmates.agents.steps import find_step
from labmates.agents.workspace import RequestKind
from labmates.workflows.science.lab.condition import ScienceCondition

T = TypeVar("T")


class Asked(TypedDict):
    """The request that caused a phase."""

    by: str
    kind: RequestKind
    request: str
    justification: str


class Waiting(TypedDict):
    """A tool call that waits for another team's phase, and its answer; empty until that phase has ended."""

    call: str
    team: str
    answer: str


class Member(TypedDict):
    """Progress of one agent in a phase.

    It is `short` if its share could not pay its next reply, and was `refused` so many replies in this step.
    """

    task: str
    status: Literal["ready", "waiting", "short", "done"]
    transcript: list[int]
    turns: int
    refused: int
    failures: int
    summary: str
    outputs: list[int]
    waiting: list[Waiting]


class Phase(TypedDict):
    """One phase of one team."""

    team: str
    place: int  # index in the organisation's flow
    number: int
    reason: Literal["planned", "additional", "redo"]
    asked: Asked | None
    steps: list[str]  # steps not yet completed
    started: bool
    plan: str
    chosen: list[str]  # seats that work after a bid
    members: dict[str, Member]
    said: list[tuple[str, str]]
    notes: list[str]  # what steps tell the author of the artifact, beside what members say


class Mail(TypedDict):
    """A message to another team, from an agent of the team `sender`."""

    sender: str
    agent: str
    to: str
    text: str


class Version(TypedDict):
    """A version of an artifact: the number of its body, its author (none of joined reports), whether it is cut off."""

    content: int
    author: str
    description: str
    partial: bool


class Draft(TypedDict):
    """A member's version of an artifact; its content is the appended text alone if it `adds`."""

    name: str
    version: Version
    adds: bool


class Statement(TypedDict):
    """Findings stated by a lead: the number of their body, and format repairs."""

    findings: int
    repaired: list[dict[str, str]]


class Report(TypedDict):
    """An agent's written artifact: its versions and statements, oldest first; these as numbers of bodies.

    `paid` is false if the pool could pay none of it.
    """

    artifact: str
    versions: list[Version]
    findings: list[int]
    paid: bool


class MemberResult(TypedDict):
    """Result of one agent's step of work; merged in the order of the members."""

    member: Member
    written: list[Draft]
    stated: list[Statement]
    sent: list[tuple[str, str]]
    requests: list[tuple[str, RequestKind, str, str]]


def add_counts(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Sums of counts by name."""
    return {name: old.get(name, 0) + new.get(name, 0) for name in {**old, **new}}


def add_versions(old: dict[str, list[T]], new: dict[str, list[T]]) -> dict[str, list[T]]:
    """Versions by name, with new ones appended."""
    return {name: [*old.get(name, []), *new.get(name, [])] for name in {**old, **new}}


class LabState(TypedDict):
    """State of the whole lab. Teams' graphs return all of it, so it needs no reducers."""

    agenda: list[Phase]  # phases to come, the current one first
    spent: dict[str, int]  # charges by team, in micro-dollars
    spent_by: dict[str, int]  # charges by seat, without the writing of artifacts
    # The cost of each team's artifact by the material that there is now, in micro-dollars; none before any work.
    likely: dict[str, int]
    artifacts: dict[str, list[Version]]  # versions of each artifact, oldest first
    findings: dict[str, list[int]]  # versions of each team's findings, oldest first, as numbers of bodies
    earlier: dict[str, list[Phase]]  # ended phases since the team wrote its artifact, by team
    conversations: dict[str, list[int]]  # remembered messages by agent, as numbers of bodies
    mail: list[Mail]
    asked: dict[str, int]  # number of requests, by ``asking>asked`` team
    phases: dict[str, int]  # number of phases so far, by team
    exhausted: bool  # whether the pool could not pay an indispensable call


class TeamState(TypedDict):
    """State of one team's graph: the lab's state with reducers, and its members' results.

    `over` ends the phase at once.
    """

    agenda: list[Phase]
    spent: Annotated[dict[str, int], add_counts]
    spent_by: Annotated[dict[str, int], add_counts]
    likely: Annotated[dict[str, int], or_]
    artifacts: Annotated[dict[str, list[Version]], add_versions]
    findings: Annotated[dict[str, list[int]], add_versions]
    earlier: Annotated[dict[str, list[Phase]], or_]
    conversations: Annotated[dict[str, list[int]], or_]
    mail: Annotated[list[Mail], add]
    asked: Annotated[dict[str, int], add_counts]
    phases: Annotated[dict[str, int], add_counts]
    exhausted: Annotated[bool, or_]
    results: Annotated[dict[str, MemberResult], or_]
    reports: Annotated[dict[str, Report], or_]
    over: Annotated[bool, or_]


class WorkOrder(TypedDict):
    """Order to one member to work, with the lab's state at the start of the step."""

    agent: str
    sharers: int
    lab: LabState


def start(condition: ScienceCondition, seed: int) -> LabState:
    """The first state of a run."""
    del seed
    return first_state(condition.crew)


def first_state(organisation: Organisation) -> LabState:
    """The first state of a lab, with the phases of the organisation's flow."""
    phases: Counter[str] = Counter()
    agenda = []
    for place, phase in enumerate(organisation.flow):
        agenda.append(new_phase(organisation, place, phases[phase.team]))
        phases[phase.team] += 1
    return LabState(
        agenda=agenda,
        spent={},
        spent_by={},
        likely={},
        artifacts={},
        findings={},
        earlier={},
        conversations={},
        mail=[],
        asked={},
        phases=dict(phases),
        exhausted=False,
    )


def new_phase(organisation: Organisation, place: int, number: int, asked: Asked | None = None) -> Phase:
    """A new phase with the steps at an index of the flow; one that answers a request has only those it needs."""
    return Phase(
        team=organisation.flow[place].team,
        place=place,
        number=number,
        reason=asked["kind"] if asked else "planned",
        asked=asked,
        steps=steps_of(organisation, place, asked),
        started=False,
        plan="",
        chosen=[],
        members={},
        said=[],
        notes=[],
    )


def steps_of(organisation: Organisation, place: int, asked: Asked | None) -> list[str]:
    """The steps of a phase: an answer is one member's work, after which a redone artifact is written."""
    names = organisation.flow[place].names
    needed = ("work", "write") if asked and asked["kind"] == "redo" else ("work",)
    return [name for name in names if asked is None or find_step(name).does in needed] or names


def readers(agenda: Sequence[Phase]) -> list[str]:
    """Teams that will read a message sent now: those with an unstarted phase, in order."""
    now = agenda[0]["team"]
    return list(dict.fromkeys(phase["team"] for phase in agenda[1:] if not phase["started"] and phase["team"] != now))


def new_member(task: str, *, done: bool = False) -> Member:
    """A member at the start of a phase; if it is `done`, it never works."""
    return Member(
        task=task,
        status="done" if done else "ready",
        transcript=[],
        turns=0,
        refused=0,
        failures=0,
        summary="",
        outputs=[],
        waiting=[],
    )
