"""The state of the lab's graph. It is small and plain: bodies hold long texts, and the state their numbers.

The `agenda` is a stack of phases. The first is the one that goes on; a request to an earlier team puts a phase on top
of the asking team's, which goes on when that one has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict, TypeVar

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import StepName
from labmates.agents.workspace import RequestKind
from labmates.workflows.science.condition import ScienceCondition

T = TypeVar("T")


class Asked(TypedDict):
    """The request that made a phase necessary."""

    by: str
    kind: RequestKind
    request: str
    justification: str


class Waiting(TypedDict):
    """A tool call whose answer is another team's phase, whom it asked, and whether teammates had used up the cap."""

    call: str
    team: str
    refused: bool


class Member(TypedDict):
    """Progress of one agent in a phase."""

    task: str
    status: Literal["ready", "waiting", "done"]
    transcript: list[int]
    turns: int
    failures: int
    summary: str
    outputs: list[int]
    waiting: list[Waiting]


class Phase(TypedDict):
    """One phase of one team.

    Attributes
    ----------
    place
        Where it stands in the organisation's flow.
    steps
        Those that are not completed.
    chosen
        Who works after a bid.
    """

    team: str
    place: int
    number: int
    reason: Literal["planned", "additional", "redo"]
    asked: Asked | None
    steps: list[StepName]
    started: bool
    plan: str
    chosen: list[str]
    members: dict[str, Member]
    said: list[tuple[str, str]]


class Mail(TypedDict):
    """A message of an agent, whose team is the sender, to another team."""

    sender: str
    agent: str
    to: str
    text: str


class Draft(TypedDict):
    """A version of an artifact that a member wrote. `content` is the number of a body.

    Where the version adds to the one before, `content` is what was added.
    """

    name: str
    content: int
    description: str
    adds: bool
    partial: bool


class Statement(TypedDict):
    """Findings that a lead stated: the number of their body, and what was mended in their form."""

    findings: int
    repaired: list[dict[str, str]]


class Report(TypedDict):
    """Work of an agent that wrote an artifact: versions and statements, oldest first, as numbers of bodies.

    `paid` is false if the pool could pay for none of it.
    """

    artifact: str
    versions: list[int]
    findings: list[int]
    partial: bool
    paid: bool


class MemberResult(TypedDict):
    """Result of one agent's step of work; teams merge these in the order of the members."""

    member: Member
    written: list[Draft]
    stated: list[Statement]
    sent: list[tuple[str, str]]
    requests: list[tuple[str, RequestKind, str, str]]


def add_counts(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Add up counts by name."""
    return {name: old.get(name, 0) + new.get(name, 0) for name in {**old, **new}}


def add_versions(old: dict[str, list[T]], new: dict[str, list[T]]) -> dict[str, list[T]]:
    """Append new versions by name."""
    return {name: [*old.get(name, []), *new.get(name, [])] for name in {**old, **new}}


def add_mail(old: list[Mail], new: list[Mail]) -> list[Mail]:
    """Append messages."""
    return [*old, *new]


def newest(old: dict[str, T], new: dict[str, T]) -> dict[str, T]:
    """Let newer values replace older ones by name."""
    return {**old, **new}


def either(old: bool, new: bool) -> bool:
    """Once true, always true."""
    return old or new


class LabState(TypedDict):
    """State of the whole lab. Each team's graph hands back the whole of it, so nothing is added up here.

    Attributes
    ----------
    agenda
        Phases to come, the present one first.
    spent
        Charges by team, in micro-dollars.
    spent_by
        Charges by seat, but for the writing of artifacts.
    artifacts
        Versions of each artifact, oldest first, as numbers of bodies.
    partial
        Whether the newest version of an artifact breaks off, by name.
    authors
        Who wrote each version of an artifact, by name.
    findings
        Versions of the findings that each team stated, oldest first, as numbers of bodies.
    asked
        Number of requests made, by ``asking>asked`` team.
    phases
        Number of phases so far, by team.
    earlier
        By team, the phases that ended since it wrote its artifact.
    conversations
        What agents remember, as numbers of bodies.
    exhausted
        The pool could not pay a call that the lab can't do without.
    """

    agenda: list[Phase]
    spent: dict[str, int]
    spent_by: dict[str, int]
    artifacts: dict[str, list[int]]
    authors: dict[str, list[str]]
    partial: dict[str, bool]
    findings: dict[str, list[int]]
    earlier: dict[str, list[Phase]]
    conversations: dict[str, list[int]]
    mail: list[Mail]
    asked: dict[str, int]
    phases: dict[str, int]
    exhausted: bool


class TeamState(TypedDict):
    """State of one team's graph: the lab's, to which its steps add, and what its members bring back.

    `over` ends the passage at once, since the pool can't pay it.
    """

    agenda: list[Phase]
    spent: Annotated[dict[str, int], add_counts]
    spent_by: Annotated[dict[str, int], add_counts]
    artifacts: Annotated[dict[str, list[int]], add_versions]
    authors: Annotated[dict[str, list[str]], add_versions]
    partial: Annotated[dict[str, bool], newest]
    findings: Annotated[dict[str, list[int]], add_versions]
    earlier: Annotated[dict[str, list[Phase]], newest]
    conversations: Annotated[dict[str, list[int]], newest]
    mail: Annotated[list[Mail], add_mail]
    asked: Annotated[dict[str, int], add_counts]
    phases: Annotated[dict[str, int], add_counts]
    exhausted: Annotated[bool, either]
    results: Annotated[dict[str, MemberResult], newest]
    reports: Annotated[dict[str, Report], newest]
    over: Annotated[bool, either]


class WorkOrder(TypedDict):
    """Order to one member to work: the lab as it is when the step starts."""

    agent: str
    sharers: int
    lab: LabState


def start(condition: ScienceCondition, seed: int) -> LabState:
    """The state in which a run of the lab starts: the phases of the organisation's flow."""
    del seed
    return first_state(condition.crew)


def first_state(organisation: Organisation) -> LabState:
    """The state in which a lab of this organisation starts."""
    phases: Counter[str] = Counter()
    agenda = []
    for place, phase in enumerate(organisation.flow):
        agenda.append(new_phase(organisation, place, phases[phase.team]))
        phases[phase.team] += 1
    return LabState(
        agenda=agenda,
        spent={},
        spent_by={},
        artifacts={},
        authors={},
        partial={},
        findings={},
        earlier={},
        conversations={},
        mail=[],
        asked={},
        phases=dict(phases),
        exhausted=False,
    )


def new_phase(organisation: Organisation, place: int, number: int, asked: Asked | None = None) -> Phase:
    """A phase that has not started, like that at a place of the flow."""
    return Phase(
        team=organisation.flow[place].team,
        place=place,
        number=number,
        reason=asked["kind"] if asked else "planned",
        asked=asked,
        steps=organisation.flow[place].names,
        started=False,
        plan="",
        chosen=[],
        members={},
        said=[],
    )


def readers(agenda: Sequence[Phase]) -> list[str]:
    """Teams that will read a message sent now: those with a phase that has not started, in order."""
    now = agenda[0]["team"]
    return list(dict.fromkeys(phase["team"] for phase in agenda[1:] if not phase["started"] and phase["team"] != now))


def new_member(task: str, *, done: bool = False) -> Member:
    """A member at its start; if it is `done`, it never works."""
    return Member(
        task=task,
        status="done" if done else "ready",
        transcript=[],
        turns=0,
        failures=0,
        summary="",
        outputs=[],
        waiting=[],
    )
