"""Reading the prompts of the science lab, as a model would: from their words alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.budgets.visibility import CONCISE, FINALISE
from labmates.models.tokens import text_of

Kind = Literal["plan", "work", "deliberate", "write", "other"]
Hurry = Literal["none", "concise", "finalise"]

STEP = "# Step:"
STATE = "state_findings"
SOLO = "solo"
ALONE = "this project"
"""What an agent is of that has no team."""

_STATED = re.compile(
    r"^=== (\w+) team ===\n(\{.*?\})\n(?:The same as the (\w+) team's: ([^\n]*)\.\n)?=== end", re.MULTILINE | re.DOTALL
)
"""What a team stated, and which of its values the team after it repeated."""


@dataclass(frozen=True)
class Use:
    """One tool call of the agent in its present step, what came back, and in which of its replies it stood."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    reply: int = 0


@dataclass(frozen=True)
class Step:
    """What the agent is asked to do.

    Attributes
    ----------
    kind
        The step, by its title; ``other`` for anything that is no step of the science lab.
    system
        The system prompt: who the agent is, the project, the data, what has to be stated.
    order
        The prompt of the step; in a deliberation, that of each round so far.
    replies
        How many replies the agent has given in this step.
    uses
        The tool calls among them that were answered.
    before
        The tool calls of earlier steps in the same conversation.
    remarks
        What it was told about replies that could not be used.
    hurry
        What the last message says about the pool.
    """

    kind: Kind
    system: str
    order: str
    replies: int = 0
    uses: tuple[Use, ...] = ()
    remarks: tuple[str, ...] = ()
    hurry: Hurry = "none"
    before: tuple[Use, ...] = ()

    @property
    def agent(self) -> str:
        """The agent's name, empty if the prompt doesn't say it."""
        return _first(rf"^You are the .*? of (?:the \w+ team|{ALONE}) \((\w+)\)", self.system)

    @property
    def team(self) -> str:
        """The agent's team, ``solo`` if it is alone, empty if the prompt doesn't say it."""
        alone = re.search(rf"^You are the .*? of {ALONE} \(", self.system, re.MULTILINE)
        return SOLO if alone else _first(r"^You are the .*? of the (\w+) team \(", self.system)

    @property
    def leads(self) -> bool:
        """Whether the agent leads its team: it is named first among the members."""
        return self.team == SOLO or (bool(self.agent) and next(iter(self.parts()), "") == self.agent)

    @property
    def artifact(self) -> str:
        """The artifact that is to be written or talked about."""
        return _first(r"`(\w+)`", self.order)

    @property
    def turns(self) -> int:
        """Most replies that the step allows."""
        return int(_first(r"at most (\d+) replies", self.order) or 8)

    @property
    def task(self) -> str:
        """The task that the lead gave to this agent."""
        return _first(r"^Your task(?: was)?: (.*)$", self.order)

    @property
    def request(self) -> str:
        """What another team asked this phase for; empty in a planned phase."""
        return _first(r"^This is a further phase of your team\..*\n> (.*)$", self.order)

    def read(self, name: str) -> str | None:
        """Return an artifact as it was last read in this step, or None."""
        return next(
            (
                use.result
                for use in reversed(self.uses)
                if use.name == "read_artifact" and use.arguments.get("name") == name
            ),
            None,
        )

    def parts(self) -> dict[str, str]:
        """Return the members of the team, the lead first, each with its part of the work."""
        return dict(re.findall(r"^- (\w+): (.+)$", between(self.system, "## Your team\n", "\n## "), re.MULTILINE))

    def members(self) -> dict[str, str]:
        """Return the members for whom a plan needs a task, each with its role."""
        return dict(
            re.findall(r"^- (\w+): (.+)$", self.order.rpartition("for exactly these members:")[2], re.MULTILINE)
        )

    def sections(self) -> list[tuple[str, str]]:
        """Return the sections that the artifact must have, each with what belongs in it."""
        return _sections(between(self.order, "Use Markdown with these sections:", "## Material"))

    def also_asked(self) -> dict[str, list[tuple[str, str]]]:
        """Return the artifacts that have to be written in a step of work, each with its sections."""
        listed = between(self.order, "in Markdown with these sections", "\n\nWhen all")
        pieces = re.split(r"^`(\w+)`$", listed, flags=re.MULTILINE)
        return {name: _sections(text) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}

    def has_stated(self) -> bool:
        """Whether findings that the agent stated in this step stand."""
        return "\nWhat stands:\n" in self.order

    def is_written(self) -> bool:
        """Whether the artifact stands, so that only its findings are left to be stated."""
        return "do not write it again." in self.order

    def without_faults(self, findings: Mapping[str, Any]) -> dict[str, Any]:
        """Return findings without the fields that were refused in this step."""
        refused = re.findall(r"^- (?:unknown )?field '(\w+)'", self.order, re.MULTILINE)
        return {name: value for name, value in findings.items() if name not in refused}

    def stated_so_far(self) -> dict[str, dict[str, Any]]:
        """Return the findings that the prompt of the step shows, by team."""
        shown = between(self.order, "## Findings stated so far\n", "\n\n## ")
        found: dict[str, dict[str, Any]] = {}
        for team, text, other, names in reversed(_STATED.findall(shown)):
            try:
                own = json.loads(text)
            except ValueError:
                continue
            theirs = found.get(other, {})
            found[team] = own | {name: theirs[name] for name in names.split(", ") if name in theirs}
        return dict(reversed(found.items()))

    def wants_findings(self) -> bool:
        """Whether the findings of the artifact are the project's."""
        return "`findings`" in between(self.order, "Use Markdown with these sections:", "## Material")


def read_step(messages: Sequence[BaseMessage]) -> Step:
    """Return the step that the messages ask for: the newest prompt with a step's title, and what followed it."""
    system = "\n".join(text_of(m.content) for m in messages if isinstance(m, SystemMessage))
    orders = [
        i
        for i, m in enumerate(messages)
        if isinstance(m, HumanMessage) and text_of(m.content).lstrip().startswith(STEP)
    ]
    if not orders:
        last = text_of(messages[-1].content) if messages else ""
        return Step("other", system, last, hurry=_hurry(last))
    before, after = messages[: orders[-1]], messages[orders[-1] + 1 :]
    order = text_of(messages[orders[-1]].content).lstrip()
    kind = _kind(order)
    if kind == "deliberate":
        order = "\n\n".join(text_of(messages[i].content).lstrip() for i in orders)
    return Step(
        kind=kind,
        system=system,
        order=order,
        replies=sum(isinstance(m, AIMessage) for m in after),
        uses=tuple(_uses(after)),
        remarks=tuple(text_of(m.content) for m in after if isinstance(m, HumanMessage)),
        hurry=_hurry(text_of(messages[-1].content)),
        before=tuple(_uses(before)),
    )


def between(text: str, start: str, *ends: str) -> str:
    """Return what stands in `text` after `start` and before the first of the `ends`; empty without `start`."""
    _, found, rest = text.partition(start)
    if not found:
        return ""
    return rest[: min((at for end in ends if (at := rest.find(end)) >= 0), default=len(rest))].strip("\n")


def results_of(text: str) -> Iterator[dict[str, Any]]:
    """Yield what analysis cells found, out of what they printed."""
    for line in re.findall(r"^RESULT (\{.*\})\s*$", text, re.MULTILINE):
        try:
            yield json.loads(line)
        except ValueError:
            continue


def columns_of(system: str) -> list[str]:
    """Return the columns that the description of the data set names."""
    return re.findall(r"^- ([\w .%/()-]+?):", between(system, "## The data set", "\n## Your"), re.MULTILINE)


def _sections(listed: str) -> list[tuple[str, str]]:
    found = re.findall(r"^\s*(?:[-*]|\d+\.|#+)\s+([^:\n]+?)(?::\s*(.*))?$", listed, re.MULTILINE)
    return [(title.strip("*` "), about) for title, about in found]


def _kind(order: str) -> Kind:
    title = order.partition("\n")[0].removeprefix(STEP).strip().lower()
    names: tuple[tuple[str, Kind], ...] = (
        ("plan", "plan"),
        ("work", "work"),
        ("deliberation", "deliberate"),
        ("write the artifact", "write"),
    )
    return next((kind for begin, kind in names if title.startswith(begin)), "other")


def _hurry(text: str) -> Hurry:
    return "finalise" if FINALISE in text else "concise" if CONCISE in text else "none"


def _uses(messages: Sequence[BaseMessage]) -> Iterator[Use]:
    results = {m.tool_call_id: text_of(m.content) for m in messages if isinstance(m, ToolMessage)}
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage):
            for made in message.tool_calls:
                if made["id"] in results:
                    yield Use(made["name"], made["args"], results[made["id"]], place)


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""
