"""Typed events: the complete, append-only log of a run, in order.

An event refers to long texts and pictures by the numbers of the run's bodies (`records.bodies`), each stored once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

if TYPE_CHECKING:
    from labmates.records.bodies import Bodies


class EventBase(BaseModel):
    """The fields of every event: the time, and the place in the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: float = Field(default_factory=time.time)  # Unix time in seconds
    step: str = ""  # stable name of its step, for instance data/0/data_lead/work/3; the same in a resumed run
    team: str = ""  # team in which it happened; empty outside teams
    agent: str = ""  # agent that acted; empty if none did


class PhaseEvent(EventBase):
    """A team's phase started, was suspended for a request, ended, or was skipped for lack of credits."""

    type: Literal["phase"] = "phase"
    status: Literal["started", "suspended", "ended", "skipped"]  # change of the phase
    number: int  # number of the team's phase, from 0
    reason: Literal["planned", "additional", "redo"] = "planned"  # in the plan, or another team's request


class LLMCallEvent(EventBase):
    """A model call with a reply, by an agent (`llm_call`) or a judge (`judge_call`).

    A judge's call is not part of the teams' usage and has no charge; its cost is in the call itself.
    """

    type: Literal["llm_call", "judge_call"] = "llm_call"
    judge: str = ""  # the judge that called; empty for an agent
    version: str = ""  # version of the judge
    model: str  # the model, as provider:name; seat:, human: or recorded: for an outside agent, a person or a run
    messages: list[int]  # bodies of the prompt's messages, in order
    reply: int  # body of the reply: text and tool calls
    finish: str  # why the reply ended: stop, length, tool_calls, content_filter or unknown
    faults: list[str] = []  # faults of its form: empty, cut, cut_tool_call or bad_tool_call
    input_tokens: int  # tokens of the prompt
    output_tokens: int  # tokens of the reply, reasoning included
    reasoning_tokens: int = 0  # tokens of the reply that are reasoning
    estimated: bool = False  # whether token counts are estimates, since the server gave none
    attempts: int = 1  # requests sent until the reply came
    seconds: float = 0.0  # duration in seconds
    seed: int  # seed of the request
    reasoning: int | None = None  # body of the reasoning; None without any
    cached: bool = False  # whether the reply is the stored one of an identical request
    output_limit: int | None = None  # limit of the reply in tokens; None in old records
    raw: int | None = None  # body of the text as sent, if a tool call was part of it
    cut_call: int | None = None  # body of a tool call cut by the limit: its name and the received arguments
    settings: int | None = None  # body of the settings and tools of a request to the gateway
    cached_tokens: int = 0  # prompt tokens read from the provider's prompt cache
    cache_write_tokens: int = 0  # prompt tokens written to the provider's prompt cache
    uncertain_attempts: int = 0  # abandoned attempts that may be billed; each has an uncertain charge
    notes: list[str] = []  # violations of the protocol by the server: a reply beyond its limit, impossible counts
    cost: int = 0  # of a judge, micro-dollars: the bill, else by the run's price list; 0 for a cached reply
    uncertain: int = 0  # of a judge, micro-dollars: part of the cost for attempts without a reply
    excess: int = 0  # of a judge, micro-dollars: the provider's charge beyond the cost, above the run's bound

    @property
    def by(self) -> Literal["agent", "judge"]:
        """The caller."""
        return "agent" if self.type == "llm_call" else "judge"

    @property
    def is_outside(self) -> bool:
        """Whether a person or an outside agent replied instead of a model."""
        return self.model.startswith(("human:", "seat:", "recorded:"))


class FailedReplyEvent(EventBase):
    """An invalid reply, and the reason."""

    type: Literal["failed_reply"] = "failed_reply"
    reason: str  # why the reply is invalid, as its author was told


class ToolCallEvent(EventBase):
    """A tool call."""

    type: Literal["tool_call"] = "tool_call"
    tool: str  # name of the tool
    arguments: int  # body of the arguments
    result: int  # body of the result, as the agent saw it
    ok: bool  # whether the tool succeeded
    status: str = ""  # how executed code ended: ok, error, timeout or died; empty for other tools
    state_lost: bool = False  # whether the variables of earlier code were lost
    images: list[int] = []  # bodies of the figures, PNG
    files: dict[str, int] = {}  # bodies of files that code wrote to out/, by their path below it
    seconds: float = 0.0  # duration in seconds


RESULTS: Final = ("status", "state_lost", "ok", "result", "images", "files")
"""The fields of a tool call that its execution decides."""


class ChargeEvent(EventBase):
    """The charge to the pool for one call.

    An uncertain charge is for an attempt without a reply. It assumes that a reply of full length is billed, unless the
    server reported the usage of the attempt: then its counts are no estimates.
    """

    type: Literal["charge"] = "charge"
    amount: int  # credits charged to the pool, micro-dollars
    uncovered: int = 0  # part of the price beyond the pool's balance, micro-dollars
    input_tokens: int = 0  # charged tokens of the prompt
    output_tokens: int = 0  # charged tokens of the reply
    input_price: int = 0  # price of the prompt, micro-dollars per million tokens
    output_price: int = 0  # price of the reply, micro-dollars per million tokens
    estimated: bool = False  # whether token counts are estimates, since the server gave none
    cached: bool = False  # whether the reply came from the cache of calls; it is charged to the pool only
    bill: int | None = None  # the provider's charge, micro-dollars; None if unknown
    bill_from: Literal["", "server", "table"] = ""  # source of the bill: the server's report, or the price table
    excess: int = 0  # part of the bill beyond the bound of the run, micro-dollars
    uncertain: bool = False  # whether the attempt had no reply
    reason: str = ""  # why an uncertain attempt had no reply

    @property
    def real_cost(self) -> int:
        """The amount counted against a study's cap, in micro-dollars: the bill, or the credits if it is unknown.

        A bill that the server reported counts in full. One by the price table, which can only exceed the bound because
        the server ignored the output limit, counts as far as the bound pays it.
        """
        if self.cached:
            return 0
        if self.bill is None:
            return self.amount
        return self.bill if self.bill_from == "server" else self.bill - self.excess


class DecisionEvent(EventBase):
    """A player's decision."""

    type: Literal["decision"] = "decision"
    stage: str  # the decision's stage, for instance ``decide`` or ``sanction``
    round: int = 0  # from 1; 0 without rounds
    match: str = ""  # the game among several games of the run; empty for a single one
    decision: dict[str, Any]  # the action, by field of the decision's form, and the random draws from it
    failed: bool = False  # whether no reply was usable, so that `decision` is the rules' fallback


class PayoffEvent(EventBase):
    """The outcome of a round or of a whole game: payoffs by player, and further details."""

    type: Literal["payoff"] = "payoff"
    round: int = 0  # from 1; 0 for a whole game
    match: str = ""  # the game among several games of the run; empty for a single one
    payoffs: dict[str, float]  # payoff of each player, in the game's unit
    details: dict[str, Any] = {}  # further parts of the outcome, by name; lists are in the order of players


class MessageEvent(EventBase):
    """A message in deliberation or to another team."""

    type: Literal["message"] = "message"
    to: str  # recipients: the sender's own team in deliberation, else another team
    text: int  # body of the text


class RequestEvent(EventBase):
    """A team asked an earlier team for work."""

    type: Literal["request"] = "request"
    to: str  # the team that is asked
    kind: Literal["additional", "redo"]  # new work, or the same work again
    request: str  # the work asked for
    justification: str = ""  # why the work is needed


class ApprovalEvent(EventBase):
    """The approval or refusal of an agent's plan, request or text, or the answer to an interrupt of a graph."""

    type: Literal["approval"] = "approval"
    what: Literal["plan", "request", "write", "review", "interrupt"]  # what a person was asked about
    approved: bool  # whether the person agreed
    reason: str = ""  # the reason for a refusal
    automatic: bool = False  # whether no person was asked
    question: str = ""  # the displayed question of an interrupt or a review
    answer: Any = None  # the answer to an interrupt, any JSON value


class ArtifactEvent(EventBase):
    """A new version of an artifact."""

    type: Literal["artifact"] = "artifact"
    name: str  # name of the artifact, for instance report
    version: int  # from 1, per artifact
    content: int  # body of the content
    description: str = ""  # one line for readers in other teams
    partial: bool = False  # whether its reply was cut at the length limit


class FindingsEvent(EventBase):
    """The findings of a team; the newest version counts."""

    type: Literal["findings"] = "findings"
    findings: int  # number of the body with the fields of the task's findings
    version: int  # from 1, per team
    repaired: list[dict[str, str]] = []  # the mended faults of form: what and where


HUMAN: Final = "human:"
"""The prefix of human judges' names."""


class ScoreEvent(EventBase):
    """One judge's score of the run."""

    type: Literal["score"] = "score"
    judge: str  # a registered judge or a model
    version: str  # version of the judge
    metric: str  # the scored metric
    value: float | None  # from 0 to 1, a poor report's too; None for unscored
    reason: str  # the reason, one line
    details: dict[str, Any] = {}  # the parts of the score
    failed: bool = False  # whether the judge failed, not the report, so that it may be asked again

    @property
    def readable(self) -> bool | None:
        """Whether the report's findings were readable; None if unknown."""
        if (self.judge, self.metric) != ("verified", "accuracy") or self.failed:
            return None
        readable = self.details.get("readable")
        return None if readable is None else bool(readable)


class LabelEvent(EventBase):
    """A judge's labels of a step's text, for instance of the reasons for a decision."""

    type: Literal["label"] = "label"
    judge: str  # a model
    version: str  # version of the judge
    labels: list[str] | None  # the labels; None if the judge gave none
    confidence: float | None = None  # the judge's estimate that the labels are right, from 0 to 1; None if missing
    reason: str = ""  # the judge's reason, or why it failed
    failed: bool = False  # whether the judge failed, so that it may be asked again


class EnvironmentEvent(EventBase):
    """What the sandboxes of the run hold, as its agents are told."""

    type: Literal["environment"] = "environment"
    versions: dict[str, str]  # versions of Python and of the libraries, by name


class WarningEvent(EventBase):
    """A warning to readers of the results."""

    type: Literal["warning"] = "warning"
    text: str  # the warning, one paragraph


class ErrorEvent(EventBase):
    """The error of a failed run."""

    type: Literal["error"] = "error"
    text: str  # the error and its cause


Event = Annotated[
    PhaseEvent
    | LLMCallEvent
    | FailedReplyEvent
    | ToolCallEvent
    | ChargeEvent
    | DecisionEvent
    | PayoffEvent
    | MessageEvent
    | RequestEvent
    | ApprovalEvent
    | ArtifactEvent
    | FindingsEvent
    | ScoreEvent
    | LabelEvent
    | EnvironmentEvent
    | WarningEvent
    | ErrorEvent,
    Field(discriminator="type"),
]
"""Any event."""

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)
_EVERY_EVENT_HAS = {"type", "at", "step", "team", "agent"}
_OF_CALLS = ("messages", "reply", "reasoning", "raw", "cut_call", "settings")
_BODIES: dict[str, tuple[str, ...]] = {
    "llm_call": _OF_CALLS,
    "judge_call": _OF_CALLS,
    "tool_call": ("arguments", "result", "images", "files"),
    "message": ("text",),
    "artifact": ("content",),
    "findings": ("findings",),
}
"""Fields with numbers of bodies, by type."""


def event_data(event: Event) -> dict[str, Any]:
    """The fields of `event` beyond those of every event; defaults are left out."""
    return event.model_dump(mode="json", exclude=_EVERY_EVENT_HAS, exclude_defaults=True)


def make_event(kind: str, at: float, step: str, team: str, agent: str, data: dict[str, Any]) -> Event:
    """The event stored in these columns."""
    return _ADAPTER.validate_python({"type": kind, "at": at, "step": step, "team": team, "agent": agent, **data})


def body_numbers(event: Event) -> Iterator[int]:
    """The numbers of all bodies of an event."""
    for name in _BODIES.get(event.type, ()):
        match getattr(event, name):
            case int() as number:
                yield number
            case list() as numbers:
                yield from numbers
            case dict() as files:
                yield from files.values()


def fields_with_bodies(event: Event, bodies: Bodies) -> dict[str, Any]:
    """The fields of `event`, except its time, with bodies in place of their numbers."""
    data = {"team": event.team, "agent": event.agent, **event_data(event)}
    for name in _BODIES.get(event.type, ()):
        match data.get(name):
            case int() as number:
                data[name] = bodies[number]
            case list() as numbers:
                data[name] = [bodies[number] for number in numbers]
            case dict() as files:
                data[name] = {file: bodies[number] for file, number in files.items()}
    return data
