"""Measures of coordination between the seats of a lab, from the events of a run.

The prompts of a seat's calls show its inputs, so the measures work for every organisation. ``docs/lab/coordination.md``
gives their definitions and rationale.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, Literal, Protocol

from labmates.agents.steps import StepKind, kinds_by_label, label_of
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    Event,
    FindingsEvent,
    LLMCallEvent,
    MessageEvent,
    PhaseEvent,
    ToolCallEvent,
)
from labmates.workflows.calls.call import outer_step

HEAD: Final = 80
"""A text has reached a seat if a prompt of the seat holds this many of its first characters."""
MARK_DIGITS: Final = 3
"""Numbers with fewer digits match by chance, so they don't mark messages."""
QUANTITY_DIGITS: Final = 4
"""A number printed by code counts as a quantity from this many digits on."""

_REQUESTS: Final = ("request_additional_work", "request_team_redo")
_COORDINATING: Final = ("list_artifacts", "send_message", *_REQUESTS)
_HANDING_OVER: Final = re.compile(r"transfer_(back_)?to_")
_READ: Final = "read_artifact"
_TOKEN: Final = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)|[^\W\d]\w*")
_TASK: Final = re.compile(r"^[ \t*\-#>`_]*+\w++[`*]*+[ \t]*+:[*_]*+\s*+(\S.{20,})$", flags=re.MULTILINE)
_PROPER: Final = re.compile(r"(?<=[a-z,;:(] )[A-Z][a-z]{3,}\b")


Kind = Literal["plan", "message", "report", "artifact"]
"""Kinds of hand-overs: an assignment, a contribution, the summary of a task, a version of an artifact."""


class Values(Protocol):
    """The bodies of a run by number."""

    def __getitem__(self, number: int, /) -> Any:
        """The value of a body."""


@dataclass
class HandOver:
    """A plan, message, report or version of an artifact that reached another seat.

    Attributes
    ----------
    event
        Index of its event in the run.
    reached
        Index of the receiver's first call whose prompt holds it.
    credits
        Cost of writing it, in micro-dollars, divided among its receivers.
    fresh
        Its numbers and names that were new to the receiver.
    used
        Whether code, an artifact or findings of the receiver contain one of these.
    """

    event: int
    kind: Kind
    sender: str
    receiver: str
    reached: int
    credits: float = 0.0
    fresh: set[str] = field(default_factory=set)
    used: bool = False


@dataclass(frozen=True)
class Coordination:
    """The measures of one run.

    Attributes
    ----------
    metrics
        The measures as metrics of a run; `labmates.workflows.science.experiment.COORDINATION` says what they are.
    hand_overs
        Texts that reached another seat, once per receiver.
    """

    metrics: Mapping[str, float]
    hand_overs: tuple[HandOver, ...]


def coordination(events: Sequence[Event], bodies: Values, seats: Iterable[str] = ()) -> Coordination:
    """Measure the coordination between the seats of a run.

    Parameters
    ----------
    events
        All events of the run, in order.
    bodies
        Values of the events' bodies, by number.
    seats
        The seats of the organisation; seats that only events name are added.
    """
    shares = coordination_shares(events, bodies)
    calls = [event for event in events if isinstance(event, LLMCallEvent) and event.type == "llm_call"]
    # Attempts without a reply may be billed, but belong to no seat.
    charges = [event for event in events if isinstance(event, ChargeEvent) and event.agent and not event.uncertain]
    spent = sum(charge.amount for charge in charges)
    tools = [event for event in events if isinstance(event, ToolCallEvent)]
    phases = [event for event in events if isinstance(event, PhaseEvent) and event.reason != "planned"]
    printed = _quantities(tools, bodies).values()
    quantities = sum(map(len, printed))
    received = hand_overs(events, bodies)
    tokens = [(call.input_tokens + call.output_tokens, shares[call.step]) for call in calls]
    metrics = {
        "coordination_tokens": _share(sum(n * share for n, share in tokens), sum(n for n, _ in tokens)),
        "coordination_credits": _share(sum(c.amount * shares.get(c.step, 0.0) for c in charges), spent),
        "messages": sum(isinstance(event, MessageEvent) for event in events),
        "messages_used": len({item.event for item in received if item.used and item.kind == "message"}),
        "hand_overs": len(received),
        "hand_overs_used": sum(item.used for item in received),
        "redundancy": _share(quantities - len(set().union(*printed)), quantities),
        "idle_seats": sum(1 for _ in _idle(events, seats)),
        "requests_asked": sum(tool.tool in _REQUESTS for tool in tools),
        "requests_answered": sum(phase.status == "ended" for phase in phases),
    }
    return Coordination(metrics, tuple(received))


def _share(part: float, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def coordination_shares(events: Sequence[Event], bodies: Values) -> dict[str, float]:
    """The share of coordination in each call, by step, from 0 to 1.

    A call in a step that talks (plan, bid, talk, review …) is coordination. Any other call is divided equally among the
    tool calls of its reply; a model call of an external agent, among those of the agent's reply.
    """
    shares: dict[str, float] = {}
    kinds, now = kinds_by_label(), 0
    # The authors of each artifact: in this stage, and in the last one before it.
    authors: dict[str, set[str]] = defaultdict(set)
    earlier: dict[str, set[str]] = {}

    def coordinates(tool: str, arguments: Any, seat: str) -> bool:
        """Whether a tool call is coordination; reading one's own artifact is not."""
        if tool == _READ:
            artifact = str(arguments.get("name")) if isinstance(arguments, Mapping) else ""
            return not any(seat in known.get(artifact, ()) for known in (authors, earlier))
        return tool in _COORDINATING or bool(_HANDING_OVER.match(tool))

    for event, stage in zip(events, stages(events), strict=True):
        if stage != now:
            earlier.update(authors)
            authors.clear()
            now = stage
        if isinstance(event, ArtifactEvent):
            authors[event.name].add(event.agent)
        elif isinstance(event, LLMCallEvent) and event.type == "llm_call":
            uses = _tool_calls(bodies[event.reply])
            coordinating = sum(coordinates(str(use.get("name")), use.get("args"), event.agent) for use in uses)
            kind = kinds.get(label_of(event.step))
            talks = kind is not None and kind.does == "talk"
            shares[event.step] = 1.0 if talks else coordinating / len(uses) if uses else 0.0
        elif isinstance(event, ToolCallEvent):
            shares[event.step] = float(coordinates(event.tool, bodies[event.arguments], event.agent))
    return {step: shares.get(outer_step(step), share) for step, share in shares.items()}


def _stage(step: str, kinds: Mapping[str, StepKind]) -> tuple[str, ...]:
    """A team's phase and step; also the round of a step in rounds, and the turn of one in turns."""
    parts, label = (outer_step(step) or step).split("/"), label_of(step)
    pace = kinds[label].pace if label in kinds else "together"
    if pace == "turns":
        return tuple(parts)
    return (*parts[:2], label, *(parts[4:5] if pace == "rounds" else ()))


def stages(events: Sequence[Event]) -> list[int]:
    """The stage number of each event; seats of one stage work in parallel, so the order of their events is random."""
    kinds = kinds_by_label()
    has_stages = any(_is_staged(event, kinds) for event in events)
    numbers: list[int] = []
    number, stage = 0, tuple[str, ...]()
    for event in events:
        if isinstance(event, LLMCallEvent) and event.type == "llm_call":
            number += not has_stages or stage != _stage(event.step, kinds)
            stage = _stage(event.step, kinds)
        numbers.append(number)
    return numbers


def _is_staged(event: Event, kinds: Mapping[str, StepKind]) -> bool:
    """Whether an event shows that its run has stages; in a user's graph all calls are work."""
    kind = kinds.get(label_of(event.step))
    works = kind is not None and kind.does == "work"
    if isinstance(event, ToolCallEvent):
        return works
    return isinstance(event, LLMCallEvent) and event.type == "llm_call" and not works


def _tool_calls(message: Any) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    return [call for call in calls or () if isinstance(call, Mapping)]


def _quantities(tools: Iterable[ToolCallEvent], bodies: Values) -> dict[str, set[str]]:
    """The quantities printed by the code of each seat."""
    printed: dict[str, set[str]] = defaultdict(set)
    for tool in tools:
        if tool.status:
            numbers = (token for token in tokens(str(bodies[tool.result])) if token[0].isdigit())
            printed[tool.agent].update(number for number in numbers if _digits(number) >= QUANTITY_DIGITS)
    return printed


def _idle(events: Iterable[Event], seats: Iterable[str]) -> Iterator[str]:
    known, worked = dict.fromkeys(seats), set()
    for event in events:
        if isinstance(event, LLMCallEvent) and event.type == "llm_call":
            known.setdefault(event.agent)
        elif isinstance(event, ArtifactEvent | FindingsEvent) or (isinstance(event, ToolCallEvent) and event.status):
            worked.add(event.agent)
    yield from (seat for seat in known if seat not in worked)


def hand_overs(events: Sequence[Event], bodies: Values) -> list[HandOver]:
    """Texts that reached other seats, in order of writing."""
    return _Tracker(bodies).follow(events)


@dataclass(frozen=True)
class _Sent:
    """A seat's text for others: the beginnings of its parts, and its marks."""

    event: int
    kind: Kind
    sender: str
    to: str
    stage: int
    heads: tuple[str, ...]
    marks: frozenset[str]
    step: str
    uses: int

    def is_for(self, call: LLMCallEvent) -> bool:
        return self.to in ("", call.team, call.agent)

    def is_in(self, text: str) -> bool:
        return any(head in text for head in self.heads)


@dataclass
class _Seat:
    """Inputs and products of one seat so far."""

    given: set[int] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    got: set[int] = field(default_factory=set)
    received: list[HandOver] = field(default_factory=list)
    replies: list[tuple[str, str, int]] = field(default_factory=list)


class _Tracker:
    """Tracks sent texts through the prompts of all seats."""

    def __init__(self, bodies: Values) -> None:
        self._bodies = bodies
        self._kinds = kinds_by_label()
        self._seats: dict[str, _Seat] = defaultdict(_Seat)
        self._sent: list[_Sent] = []
        self._stage = 0
        self._charged: dict[str, int] = defaultdict(int)
        self._tokens: dict[int, frozenset[str]] = {}

    def follow(self, events: Sequence[Event]) -> list[HandOver]:
        for place, (event, stage) in enumerate(zip(events, stages(events), strict=True)):
            self._stage = stage
            match event:
                case LLMCallEvent(type="llm_call"):
                    self._give(place, event)
                    if not outer_step(event.step):
                        self._send_reply(place, event)
                case ChargeEvent(uncertain=False):
                    self._charged[outer_step(event.step) or event.step] += event.amount
                case ToolCallEvent() if event.status:
                    code = str(self._bodies[event.arguments].get("code", ""))
                    self._use(event.agent, tokens(code))
                    self._compute(event.agent, self._tokens_of(event.result))
                case ToolCallEvent(tool="mark_complete", ok=True):
                    summary = str(self._bodies[event.arguments].get("summary", ""))
                    self._send(place, "report", event.agent, summary, event.team)
                case MessageEvent():
                    self._send(place, "message", event.agent, str(self._bodies[event.text]), event.to)
                case ArtifactEvent():
                    self._use(event.agent, self._tokens_of(event.content))
                    self._send(place, "artifact", event.agent, _text(self._bodies[event.content]))
                case FindingsEvent():
                    self._use(event.agent, self._tokens_of(event.findings))
        received = [item for seat in self._seats.values() for item in seat.received]
        return self._with_credits(sorted(received, key=lambda item: item.event))

    def _give(self, place: int, call: LLMCallEvent) -> None:
        """Record the new content of a prompt compared to the seat's earlier calls."""
        seat = self._seats[call.agent]
        new = [number for number in call.messages if number not in seat.given]
        seat.given.update(new)
        texts = {number: _text(self._bodies[number]) for number in new}
        for number, sent in enumerate(self._sent):
            # Texts reach other seats in later stages only.
            if number in seat.got or sent.stage == self._stage or sent.sender == call.agent:
                continue
            holding = [body for body, text in texts.items() if sent.is_in(text)]
            if holding and sent.is_for(call):
                others = (self._tokens_of(body) for body in new if body not in holding)
                fresh = set(sent.marks - seat.known.union(*others))
                seat.received.append(HandOver(sent.event, sent.kind, sent.sender, call.agent, place, fresh=fresh))
            if holding:
                seat.got.add(number)
        for number in new:
            seat.known |= self._tokens_of(number)
        seat.given.add(call.reply)

    def _send_reply(self, place: int, call: LLMCallEvent) -> None:
        """Send the tasks of a plan, or a reply of a user's graph, which has no separate event."""
        reply, kind = self._bodies[call.reply], self._kinds.get(label_of(call.step))
        self._seats[call.agent].replies.append((call.step, _text(reply), max(1, len(_tool_calls(reply)))))
        text = str(reply.get("content", ""))
        if kind is not None and kind.assigns:
            self._send(place, "plan", call.agent, text, call.team, _TASK.findall(text))
        elif kind is not None and kind.does == "work" and not _tool_calls(reply):
            self._send(place, "message", call.agent, text)

    def _send(self, place: int, kind: Kind, sender: str, text: str, to: str = "", parts: Sequence[str] = ()) -> None:
        heads = tuple(part.strip()[:HEAD] for part in (text, *parts) if part.strip())
        if heads:
            step, uses = self._written_in(sender, heads[0])
            self._sent.append(_Sent(place, kind, sender, to, self._stage, heads, marks(text), step, uses))

    def _written_in(self, sender: str, head: str) -> tuple[str, int]:
        """The step of the call that wrote a text, and the number of tool calls in its reply."""
        replies = self._seats[sender].replies
        return next(((step, uses) for step, reply, uses in reversed(replies) if head in reply), ("", 1))

    def _use(self, seat: str, made: Collection[str]) -> None:
        for item in self._seats[seat].received:
            item.used = item.used or not item.fresh.isdisjoint(made)

    def _compute(self, seat: str, printed: Collection[str]) -> None:
        """Count the output of the seat's code as known to the seat."""
        for item in self._seats[seat].received:
            item.fresh.difference_update(printed)

    def _with_credits(self, received: list[HandOver]) -> list[HandOver]:
        credits = {sent.event: self._charged[sent.step] / sent.uses for sent in self._sent}
        receivers = Counter(item.event for item in received)
        for item in received:
            item.credits = credits[item.event] / receivers[item.event]
        return received

    def _tokens_of(self, number: int) -> frozenset[str]:
        if number not in self._tokens:
            self._tokens[number] = tokens(_text(self._bodies[number]))
        return self._tokens[number]


@lru_cache(maxsize=256)  # prompts are largely the same in all runs
def tokens(text: str) -> frozenset[str]:
    """The words and numbers of a text; numbers without separators and trailing zeros."""
    return frozenset(_plain(token) if token[0].isdigit() else token for token in set(_TOKEN.findall(text)))


def marks(text: str) -> frozenset[str]:
    """Marks of a text: long numbers, names inside a sentence, identifiers."""
    words = (token for token in tokens(text) if _digits(token) >= MARK_DIGITS or _is_identifier(token))
    return frozenset((*words, *_PROPER.findall(text)))


def _plain(token: str) -> str:
    token = token.replace(",", "")
    return token.rstrip("0").rstrip(".") if "." in token and "e" not in token.lower() else token


def _digits(token: str) -> int:
    """The significant digits of a number; 0 for a word."""
    if not token[0].isdigit():
        return 0
    return len(re.split("[eE]", token)[0].replace(".", "").lstrip("0"))


def _is_identifier(token: str) -> bool:
    return not token[0].isdigit() and len(token) > 2 and ("_" in token or any(map(str.isdigit, token)))


_dump = partial(json.dumps, ensure_ascii=False)


def _text(value: Any) -> str:
    """A body as text; a message's content and the arguments of its tool calls."""
    if isinstance(value, Mapping) and "role" in value:
        parts = [str(value.get("content", ""))]
        for call in _tool_calls(value):
            arguments = call.get("args")
            inner = arguments.values() if isinstance(arguments, Mapping) else [arguments]
            parts += [part if isinstance(part, str) else _dump(part) for part in inner]
        return "\n".join(parts)
    return value if isinstance(value, str) else _dump(value, default=str)
