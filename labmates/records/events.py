"""Typed events: the complete, append-only log of a run, in order.

Long texts and pictures do not stand in an event: it holds the numbers under which the run's bodies are kept
(`records.recorder`), so that each is stored once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

if TYPE_CHECKING:
    from labmates.records.bodies import Bodies


class EventBase(BaseModel):
    """The fields of every event: the time, and the place in the run.

    Attributes
    ----------
    at
        Unix time in seconds.
    step
        Stable name of the step that made it, for instance ``data/0/data_lead/work/3``; the same when a run is resumed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: float = Field(default_factory=time.time)
    step: str = ""
    team: str = ""
    agent: str = ""


class PhaseEvent(EventBase):
    """A team's phase started, was suspended for a request, or ended; or the pool could not pay it (skipped)."""

    type: Literal["phase"] = "phase"
    status: Literal["started", "suspended", "ended", "skipped"]
    number: int
    reason: Literal["planned", "additional", "redo"] = "planned"


class LLMCallEvent(EventBase):
    """One model call that gave a reply: of an agent, or of a judge. `messages` and `reply` are numbers of bodies.

    `cached` tells that nobody was asked: the reply is the one that the same request got at an earlier time.
    `cached_tokens` and `cache_write_tokens` are input tokens read from, and written to, the provider's prompt cache.
    `output_limit` is the limit that was sent with the call, in tokens; None in old records. `cut_call` is the number of
    the body with the name and the arrived arguments of a tool call that the limit cut. `uncertain_attempts` counts
    the attempts before it that were given up and may be billed: each has an uncertain charge. `notes` tell how the
    server broke the rules: a reply longer than its limit, token counts that can't be.

    `settings` is the number of the body with the settings and tools of a request that a program sent to the gateway.

    A judge's call is no part of what the teams used, and has no charge of its own. `judge` and `version` tell who made
    it, `cost` what it cost in micro-dollars (the bill; by the run's price list where no price is known; 0 for a
    `cached` reply), `uncertain` what of the cost is for attempts that brought no reply and may be billed, and `excess`
    what the provider charges beyond the cost: the bound of the run could not pay it.
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
        """Who made it."""
        return "agent" if self.type == "llm_call" else "judge"

    @property
    def is_outside(self) -> bool:
        """Whether a person or an agent from outside replied, in place of a model."""
        return self.model.startswith(("human:", "seat:"))


class FailedReplyEvent(EventBase):
    """An invalid reply, and the reason."""

    type: Literal["failed_reply"] = "failed_reply"
    reason: str


class ToolCallEvent(EventBase):
    """One tool call. `arguments` and `result` are numbers of bodies, `images` of PNG bodies.

    `files` are the files that code wrote to ``out/``: path below it, and number of the body with its bytes.
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
    """Credits taken from the pool for one call: `amount` in micro-dollars; `uncovered` is what the pool could not pay.

    `bill` is what the provider charges for the call, in micro-dollars; None where no price is known. `excess` is what
    of the bill the bound of the run could not pay: the provider charges more than the request allows. `cached` tells
    that the pool alone paid: the reply came from a cache of calls and cost nothing. `uncertain` tells that an attempt
    brought no reply, for the `reason`, and may be billed nevertheless: it is charged as if the reply had its full
    length.
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
        """The amount counted against a study's cap, in micro-dollars: the bill; the credits where none is known."""
        return 0 if self.cached else self.amount if self.bill is None else self.bill - self.excess


class DecisionEvent(EventBase):
    """A player's decision.

    Attributes
    ----------
    stage
        What was to be decided, for instance ``decide`` or ``sanction``.
    round
        From 1; 0 where there are no rounds.
    match
        Which of several games of the run it belongs to; empty where there is one.
    decision
        What is played, by the names of the decision's form, and what was drawn at random from it.
    failed
        No reply could be used: `decision` is the fallback that the rules name.
    """

    type: Literal["decision"] = "decision"
    stage: str
    round: int = 0
    match: str = ""
    decision: dict[str, Any]
    failed: bool = False


class PayoffEvent(EventBase):
    """The outcome of a round or of a whole game: payoffs by player, and further details."""

    type: Literal["payoff"] = "payoff"
    round: int = 0
    match: str = ""
    payoffs: dict[str, float]
    details: dict[str, Any] = {}


class MessageEvent(EventBase):
    """Something said in deliberation (`to` is the own team) or to another team; `text` is a body's number."""

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
    """A person's approval or refusal of an agent's plan, request or text; `automatic` if nobody was asked.

    Of an interrupt of an organisation as code it has the `question` that was shown, and the `answer` for the graph.
    """

    type: Literal["approval"] = "approval"
    what: Literal["plan", "request", "write", "interrupt"]
    approved: bool
    reason: str = ""
    automatic: bool = False
    question: str = ""
    answer: Any = None


class ArtifactEvent(EventBase):
    """A version of an artifact was written. `content` is the number of a body.

    `partial` tells that it breaks off: the reply that wrote it was cut at its length limit.
    """

    type: Literal["artifact"] = "artifact"
    name: str
    version: int
    content: int
    description: str = ""
    partial: bool = False


class FindingsEvent(EventBase):
    """A team stated its findings; the newest version counts.

    Attributes
    ----------
    findings
        Number of the body with the fields that are stated, as the task's findings hold them.
    version
        From 1, for each team.
    repaired
        What was mended in the form of what the agent stated: what and where.
    """

    type: Literal["findings"] = "findings"
    findings: int
    version: int
    repaired: list[dict[str, str]] = []


HUMAN: Final = "human:"
"""The beginning of the names of judges who are people."""


class ScoreEvent(EventBase):
    """One judge's score of the run.

    Attributes
    ----------
    judge, version
        Who says it: a registered judge or a model, and its version.
    metric
        What is scored.
    value
        From 0 to 1; None if it could not be scored.
    reason
        Why, in a line.
    details
        What the score is made of.
    failed
        That it could not be scored was the judge's fault and not the report's, so that it may be asked once more.
    """

    type: Literal["score"] = "score"
    judge: str
    version: str
    metric: str
    value: float | None
    reason: str
    details: dict[str, Any] = {}
    failed: bool = False

    @property
    def intended(self) -> float | None:
        """The value that analyses use (intention to treat): None is a judge that failed, never a poor report.

        The first version of ``verified`` left reports unscored in which it could read no findings; they are worth 0.
        """
        return 0.0 if self.value is None and self._is_unread_by_the_first else self.value

    @property
    def readable(self) -> bool | None:
        """Whether the findings of the report could be read; None if the score does not say."""
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
    """With which labels a judge has sorted what the step says, for instance the reasons of a decision.

    `labels` is None if it could not; `failed` tells that this was its own fault, so that it may be asked once more.
    `confidence` is its own estimate that the labels are right, from 0 to 1; None if it gave none.
    """

    type: Literal["label"] = "label"
    judge: str
    version: str
    labels: list[str] | None
    confidence: float | None = None
    reason: str = ""
    failed: bool = False


class WarningEvent(EventBase):
    """Something that whoever reads the results should know."""

    type: Literal["warning"] = "warning"
    text: str


class ErrorEvent(EventBase):
    """Why a run failed."""

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
"""The fields of each type that hold numbers of bodies."""


def event_data(event: Event) -> dict[str, Any]:
    """The fields of `event` beyond those of every event; defaults are left out."""
    return event.model_dump(mode="json", exclude=_EVERY_EVENT_HAS, exclude_defaults=True)


def make_event(kind: str, at: float, step: str, team: str, agent: str, data: dict[str, Any]) -> Event:
    """The event that was stored as these columns."""
    return _ADAPTER.validate_python({"type": kind, "at": at, "step": step, "team": team, "agent": agent, **data})


def body_numbers(event: Event) -> Iterator[int]:
    """The numbers of all bodies that an event names."""
    for name in _BODIES.get(event.type, ()):
        match getattr(event, name):
            case int() as number:
                yield number
            case list() as numbers:
                yield from numbers
            case dict() as files:
                yield from files.values()


def told_whole(event: Event, bodies: Bodies) -> dict[str, Any]:
    """The fields of `event` but for its time, with the bodies themselves in place of their numbers."""
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
