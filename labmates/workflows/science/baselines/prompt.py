"""Orders of the science lab as steps: their facts, tool calls and remarks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from labmates.agents.sections import LEFT_OUT
from labmates.agents.steps import StepKind, kind_of_order
from labmates.budgets.tokens import text_of
from labmates.budgets.visibility import CONCISE, FINALISE
from labmates.models.orders import order_of
from labmates.tasks.analysis import Analysis
from labmates.workflows.science.baselines.cells import analysis_of
from labmates.workflows.science.baselines.stated import read_fields

Hurry = Literal["none", "concise", "finalise"]

STATE = "state_findings"
KIND = "science"
"""Kind of the lab's orders."""
SOLO = "solo"
"""The team of a single agent."""
GROUP = "group"
"""The team of members whose prompts name none."""


@dataclass(frozen=True)
class Use:
    """A tool call of the agent, its result, and the index of its reply."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    reply: int = 0


@dataclass(frozen=True)
class Step:
    """The request of an order to the agent."""

    kind: str  # the name of the step's order; ``other`` for anything outside the science lab
    order: str  # the text of the order; in a deliberation, of each round so far
    declared: StepKind | None = None  # the kind of step; None for anything outside the science lab
    facts: Mapping[str, Any] = field(default_factory=dict)  # facts of its orders
    replies: int = 0  # number of the agent's replies in this step
    uses: tuple[Use, ...] = ()  # answered tool calls in these replies
    remarks: tuple[str, ...] = ()  # remarks on unusable replies
    hurry: Hurry = "none"  # notice about the pool in the last message
    before: tuple[Use, ...] = ()  # tool calls of earlier steps in the same conversation

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.facts.get("agent", ""))

    @property
    def team(self) -> str:
        """The agent's team: ``group`` for the members of one, ``solo`` for an agent without; empty if it is unknown."""
        unnamed = GROUP if len(self.parts()) > 1 else SOLO
        return str(self.facts.get("team", unnamed if self.agent else ""))

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of the findings to state in the paper, with their descriptions."""
        return read_fields(str(self.facts.get("findings", "")))

    @property
    def analysis(self) -> Analysis | None:
        """The analysis that the task ships; None if it has none."""
        return analysis_of(str(self.facts.get("findings", "")))

    @property
    def leads(self) -> bool:
        """Whether the agent leads its team: it is the first of the members."""
        return self.team == SOLO or (bool(self.agent) and next(iter(self.parts()), "") == self.agent)

    @property
    def artifact(self) -> str:
        """The artifact to write or discuss."""
        return str(self.facts.get("artifact", ""))

    @property
    def turns(self) -> int:
        """Most replies in the step."""
        return int(self.facts.get("turns", 8))

    @property
    def task(self) -> str:
        """The agent's task; a request in its place."""
        return self.request or str(self.facts.get("task", ""))

    @property
    def request(self) -> str:
        """Another team's request to this phase; empty in a planned phase."""
        return str(self.facts.get("request", ""))

    def parts(self) -> Mapping[str, str]:
        """The part of the work of each team member, the lead first."""
        members: Mapping[str, str] = self.facts.get("parts", {})
        return members

    def members(self) -> Mapping[str, str]:
        """The role of each member that needs a task in a plan."""
        members: Mapping[str, str] = self.facts.get("members", {})
        return members

    @property
    def owners(self) -> dict[str, str]:
        """The team of each artifact."""
        return {name: self.team if team == "you" else team for name, team in self.facts.get("handed", {}).items()}

    @property
    def brief(self) -> tuple[str, ...]:
        """The sentences of the project's description."""
        return tuple(part.strip() for part in re.split(r"(?<=[.!?])\s+", self.facts.get("brief", "")) if part.strip())

    def sections(self) -> list[tuple[str, str]]:
        """The required sections of the artifact, each with its content."""
        return _sections(self.facts.get("sections", []))

    def also_asked(self) -> dict[str, list[tuple[str, str]]]:
        """The artifacts to write in a step of work, each with its sections."""
        return {name: _sections(listed) for name, listed in self.facts.get("also", {}).items()}

    def stated_so_far(self) -> Mapping[str, dict[str, Any]]:
        """The findings in the order, by team."""
        stated: Mapping[str, dict[str, Any]] = self.facts.get("stated", {})
        return stated

    def wants_findings(self) -> bool:
        """Whether the findings of the artifact are the project's."""
        return "block" in self.facts

    def read(self, name: str) -> str | None:
        """The text of an artifact, read last in this step or whole in its order; None if neither."""
        reads = (use for use in reversed(self.uses) if use.name == "read_artifact")
        shown = str(self.facts.get("material", {}).get(name, LEFT_OUT))
        return next((u.result for u in reads if u.arguments.get("name") == name), None if LEFT_OUT in shown else shown)

    def has_stated(self) -> bool:
        """Whether the agent has stated valid findings in this step."""
        return "\nWhat stands:\n" in self.order

    def is_written(self) -> bool:
        """Whether the artifact is complete and only its findings are missing."""
        return "do not write it again." in self.order

    def without_faults(self, findings: Mapping[str, Any]) -> dict[str, Any]:
        """Findings without the fields refused in this step."""
        refused = re.findall(r"^- (?:unknown )?field '(\w+)'", self.order, re.MULTILINE)
        return {name: value for name, value in findings.items() if name not in refused}


def read_step(messages: Sequence[BaseMessage]) -> Step:
    """The step requested by the newest order of the lab, with the messages after it."""
    orders = {place: order for place, m in enumerate(messages) if (order := order_of(m)) and order.kind == KIND}
    asked = [place for place, order in orders.items() if "step" in order.facts]
    last = text_of(messages[-1].content) if messages else ""
    if not asked:
        return Step("other", last, hurry=_hurry(last))
    facts = {name: fact for order in orders.values() for name, fact in order.facts.items()}
    kind = str(facts["step"])
    before, after = messages[: asked[-1]], messages[asked[-1] + 1 :]
    # The rounds of a talk share a conversation, and the first order describes the topic.
    same = [place for place in asked if orders[place].facts["step"] == kind]
    declared = kind_of_order(kind)
    shown = same if declared is not None and declared.pace != "together" else asked[-1:]
    texts = [text_of(messages[place].content) for place in shown]
    return Step(
        kind=kind,
        order="\n\n".join(texts),
        declared=declared,
        facts=facts,
        replies=sum(isinstance(m, AIMessage) for m in after),
        uses=tuple(_uses(after)),
        remarks=tuple(text_of(m.content) for m in after if isinstance(m, HumanMessage)),
        hurry=_hurry(last),
        before=tuple(_uses(before)),
    )


def _sections(listed: Sequence[str]) -> list[tuple[str, str]]:
    return [(title, about.strip()) for title, _, about in (section.partition(":") for section in listed)]


def _hurry(text: str) -> Hurry:
    return "finalise" if FINALISE in text else "concise" if CONCISE in text else "none"


def _uses(messages: Sequence[BaseMessage]) -> Iterator[Use]:
    results = {m.tool_call_id: text_of(m.content) for m in messages if isinstance(m, ToolMessage)}
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for made in message.tool_calls:
                if made["id"] in results:
                    yield Use(made["name"], made["args"], results[made["id"]], place)
