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
    team: str = ""
    agent: str = ""


class PhaseEvent(EventBase):
    """A team's phase started, was suspended for a request, ended, or was skipped for lack of credits."""

    type: Literal["phase"] = "phase"
    status: Literal["started", "suspended", "ended", "skipped"]
    number: int
    reason: Literal["planned", "additional", "redo"] = "planned"


class LLMCallEvent(EventBase):
    """A model call with a reply, by an agent or a judge; `messages`, `reply`, `reasoning` and `settings` are bodies.

    `cached` tells that the reply is the stored one of an identical request. `cached_tokens` and `cache_write_tokens`
    are input tokens read from, and written to, the provider's prompt cache. `output_limit` is the limit of the call in
    tokens; None in old records. `cut_call` is the body with the name and received arguments of a tool call cut by the
    limit. `uncertain_attempts` counts earlier attempts that were given up and may be billed: each has an uncertain
    charge. `notes` are the server's violations of the protocol: a reply beyond its limit, impossible token counts.
    `settings` are the settings and tools of a request to the gateway.

    A judge's call is not part of the teams' usage and has no charge. It has the `judge` and its `version`; `cost` in
    micro-dollars (the bill, or by the run's price list if the price is unknown; 0 for a cached reply); `uncertain`, the
    part of the cost for attempts without a reply that may be billed; and `excess`, the provider's charge beyond the
    cost, which the bound of the run could not pay.
    """

    type: Literal["llm_call", "judge_call"] = "llm_call"
    judge: str = ""
    version: str = ""
    model: str
    messages: list[int]
    reply: int
    finish: str
    faults: list[str] = []
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    estimated: bool = False
    attempts: int = 1
    seconds: float = 0.0
    seed: int
    reasoning: int | None = None
    cached: bool = False
    output_limit: int | None = None
    cut_call: int | None = None
    settings: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    uncertain_attempts: int = 0
    notes: list[str] = []
    cost: int = 0
    uncertain: int = 0
    excess: int = 0

    @property
    def by(self) -> Literal["agent", "judge"]:
        """The caller."""
        return "agent" if self.type == "llm_call" else "judge"

    @property
    def is_outside(self) -> bool:
        """Whether a person or an outside agent replied instead of a model."""
        return self.model.startswith(("human:", "seat:"))


class FailedReplyEvent(EventBase):
    """An invalid reply, and the reason."""

    type: Literal["failed_reply"] = "failed_reply"
    reason: str


class ToolCallEvent(EventBase):
    """A tool call; `arguments`, `result`, `images` (PNG) and `files` are bodies.

    `files` are those that code wrote to ``out/``, by their path below it.
    """

    type: Literal["tool_call"] = "tool_call"
    tool: str
    arguments: int
    result: int
    ok: bool
    status: str = ""
    state_lost: bool = False
    images: list[int] = []
    files: dict[str, int] = {}
    seconds: float = 0.0


class ChargeEvent(EventBase):
    """The charge to the pool for one call: `amount`, and `uncovered` beyond the pool's balance, in micro-dollars.

    `bill` is the provider's charge in micro-dollars; None if the price is unknown. `excess` is the part of the bill
    beyond the bound of the run, if the provider charges more than the request allows. A `cached` reply is charged to
    the pool only. An `uncertain` charge is for an attempt without a reply, for the `reason`, that may be billed: it
    assumes a reply of full length.
    """

    type: Literal["charge"] = "charge"
    amount: int
    uncovered: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_price: int = 0
    output_price: int = 0
    estimated: bool = False
    cached: bool = False
    bill: int | None = None
    excess: int = 0
    uncertain: bool = False
    reason: str = ""

    @property
    def real_cost(self) -> int:
        """The amount counted against a study's cap, in micro-dollars: the bill, or the credits if it is unknown."""
        return 0 if self.cached else self.amount if self.bill is None else self.bill - self.excess


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
    round: int = 0
    match: str = ""
    payoffs: dict[str, float]
    details: dict[str, Any] = {}


class MessageEvent(EventBase):
    """A message in deliberation (`to` is the sender's team) or to another team; `text` is a body."""

    type: Literal["message"] = "message"
    to: str
    text: int


class RequestEvent(EventBase):
    """A team asked an earlier team for work."""

    type: Literal["request"] = "request"
    to: str
    kind: Literal["additional", "redo"]
    request: str
    justification: str = ""


class ApprovalEvent(EventBase):
    """The approval or refusal of an agent's plan, request or text, by a person or `automatic`.

    For an interrupt of an organisation as code, it holds the displayed `question` and the `answer` for the graph.
    """

    type: Literal["approval"] = "approval"
    what: Literal["plan", "request", "write", "interrupt"]
    approved: bool
    reason: str = ""
    automatic: bool = False
    question: str = ""
    answer: Any = None


class ArtifactEvent(EventBase):
    """A new version of an artifact; `content` is a body. It is `partial` if its reply was cut at the length limit."""

    type: Literal["artifact"] = "artifact"
    name: str
    version: int
    content: int
    description: str = ""
    partial: bool = False


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
    value: float | None  # from 0 to 1; None for unscored
    reason: str  # the reason, one line
    details: dict[str, Any] = {}  # the parts of the score
    failed: bool = False  # whether the judge failed, not the report, so that it may be asked again

    @property
    def intended(self) -> float | None:
        """The value for analyses (intention to treat): None for a failed judge, never for a poor report.

        The first version of ``verified`` left reports without readable findings unscored; they count as 0.
        """
        return 0.0 if self.value is None and self._is_unread_by_the_first else self.value

    @property
    def readable(self) -> bool | None:
        """Whether the report's findings were readable; None if unknown."""
        if (self.judge, self.metric) != ("verified", "accuracy") or self.failed:
            return None
        readable = self.details.get("readable")
        if readable is None and self.version == "1":
            return "credits" in self.details
        return None if readable is None else bool(readable)

    @property
    def _is_unread_by_the_first(self) -> bool:
        return (self.judge, self.metric, self.version, self.failed) == ("verified", "accuracy", "1", False)


class LabelEvent(EventBase):
    """A judge's labels of a step's text, for instance of the reasons for a decision; None if it gave no labels.

    `failed` tells that the judge failed, so that it may be asked again. `confidence` is its estimate that the labels
    are right, from 0 to 1; None if missing.
    """

    type: Literal["label"] = "label"
    judge: str
    version: str
    labels: list[str] | None
    confidence: float | None = None
    reason: str = ""
    failed: bool = False


class WarningEvent(EventBase):
    """A warning to readers of the results."""

    type: Literal["warning"] = "warning"
    text: str


class ErrorEvent(EventBase):
    """The error of a failed run."""

    type: Literal["error"] = "error"
    text: str


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
    | WarningEvent
    | ErrorEvent,
    Field(discriminator="type"),
]
"""Any event."""

_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)
_EVERY_EVENT_HAS = {"type", "at", "step", "team", "agent"}
_OF_CALLS = ("messages", "reply", "reasoning", "cut_call", "settings")
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
