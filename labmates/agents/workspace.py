"""An agent's workspace: its view of the lab's shared work during a step, and its additions.

Members who work in parallel see each other's writing only after the step, when it is merged in the order of the
members. So a run repeats exactly at any concurrency.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel

from labmates.agents.findings import FindingsForm, Stated
from labmates.agents.organisation import Organisation
from labmates.agents.sections import continued, excerpt, named_sections, page, sections_of, with_section
from labmates.agents.tools import (
    AppendArtifact,
    ListArtifacts,
    MarkComplete,
    ReadArtifact,
    ReplaceSection,
    RequestAdditionalWork,
    RequestTeamRedo,
    SendMessage,
    StateFindings,
    ToolError,
    WriteArtifact,
)
from labmates.models.reply import ToolCall

MOST_ARTIFACT_CHARS = 60_000
MOST_READ_CHARS = 12_000
MOST_MESSAGE_CHARS = 2_000
MOST_PLAN_CHARS = 6_000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

RequestKind = Literal["additional", "redo"]


@dataclass(frozen=True)
class Written:
    """A version of an artifact, written by the agent."""

    name: str
    content: str
    description: str
    added: str | None = None  # the text appended to the previous version; None for other changes
    partial: bool = False  # whether the length limit cut it off


@dataclass(frozen=True)
class Sent:
    """A message to another team."""

    team: str
    content: str


@dataclass(frozen=True)
class WorkRequest:
    """A request to an earlier team for another phase."""

    team: str
    kind: RequestKind
    request: str
    justification: str = ""


@dataclass
class Workspace:
    """One agent's view in one step of work, and its results."""

    organisation: Organisation
    team: str
    artifacts: Mapping[str, str]  # newest content of every artifact at the start of the step, by name
    requests_left: Mapping[str, int]  # remaining requests to each other team
    readers: Sequence[str] = ()  # teams with a phase still to start, which will read a message
    cut: Collection[str] = ()  # the artifacts whose newest version is partial
    form: FindingsForm | None = None  # form of the agent's findings; None if it states none
    seat: str = ""
    written: list[Written] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    requests: list[WorkRequest] = field(default_factory=list)
    stated: list[Stated] = field(default_factory=list)
    summary: str | None = None
    # Whether another team could be paid for work on a request.
    pays: Callable[[str, RequestKind], bool] = lambda _team, _kind: True

    def copy(self) -> Workspace:
        """A copy for trying a call."""
        lists: dict[str, Any] = {name: [*getattr(self, name)] for name in ("written", "sent", "requests", "stated")}
        return replace(self, **lists)

    def read(self, name: str, offset: int = 0) -> str:
        """A page of the newest version of an artifact, from the character `offset`."""
        content = self._newest().get(name)
        if content is None:
            known = ", ".join(sorted(self._newest())) or "none yet"
            raise ToolError(f"there is no artifact '{name}'. There are: {known}.")
        if offset >= len(content) > 0:
            raise ToolError(f"'{name}' has {len(content)} characters: the offset must be below that.")
        return page(content, offset, MOST_READ_CHARS) or "[this artifact is empty]"

    def list(self) -> str:
        """Names and sizes of all artifacts."""
        lines = [
            f"{name}: {len(text)} characters{', partial: it breaks off at its end' if self.is_partial(name) else ''}"
            for name, text in sorted(self._newest().items())
        ]
        return "\n".join(lines) or "none yet"

    def is_partial(self, name: str) -> bool:
        """Whether the newest version of an artifact is cut off."""
        return next((item.partial for item in reversed(self.written) if item.name == name), name in self.cut)

    def write(self, name: str, content: str, description: str = "", *, partial: bool = False) -> str:
        """Write a new version of an artifact; a partial one does not replace a longer one."""
        if not content.strip():
            raise ToolError("the content is empty.")
        if partial and len(content) <= len(self._newest().get(name, "")):
            raise ToolError("it was cut off while still shorter than the present version, which is kept.")
        return self._keep(Written(name, content, description, partial=partial))

    def append(self, name: str, content: str, *, partial: bool = False) -> str:
        """Append a text to an artifact; a partial one continues at its end."""
        before = self._existing(name)
        if not content.strip():
            raise ToolError("the content is empty.")
        whole = continued(before, content, cut=self.is_partial(name))
        return self._keep(Written(name, whole, "", added=content, partial=partial))

    def replace_section(self, name: str, heading: str, content: str) -> str:
        """Replace the text under a heading of an artifact."""
        before = self._existing(name)
        matches = named_sections(before, heading)
        if len(matches) != 1:
            titles = ", ".join(f"'{section.title}'" for section in sections_of(before)) or "none"
            has = f"has {len(matches)} sections called" if matches else "has no section"
            raise ToolError(f"'{name}' {has} '{heading}'. Its sections: {titles}.")
        # A replaced last section is complete again.
        partial = self.is_partial(name) and matches[0].end < len(before)
        return self._keep(Written(name, with_section(before, matches[0], content), "", partial=partial))

    def keep_cut(self, call: ToolCall) -> str | None:
        """Write the received part of a cut call; returns the name of the partial artifact, or None."""
        name, content = call.arguments.get("name"), call.arguments.get("content")
        if not (isinstance(name, str) and isinstance(content, str)):
            return None
        try:
            if call.name == "write_artifact":
                self.write(name, content, partial=True)
            elif call.name == "append_artifact":
                self.append(name, content, partial=True)
            else:
                return None
        except ToolError:
            return name if self.is_partial(name) else None
        return name

    def text(self, name: str) -> str:
        """Full text of the newest version of an artifact."""
        return self._newest()[name]

    def _existing(self, name: str) -> str:
        before = self._newest().get(name)
        if before is None:
            raise ToolError(f"there is no artifact '{name}' yet: write it with write_artifact.")
        return before

    def _keep(self, item: Written) -> str:
        name, content = item.name, item.content
        if not _NAME.fullmatch(name):
            raise ToolError(f"'{name}' is no artifact name: lower-case letters, digits and _, starting with a letter.")
        owner = self.organisation.owner(name)
        if owner not in (None, self.team):
            raise ToolError(f"'{name}' belongs to the {owner} team; ask that team, or choose another name.")
        if len(content) > MOST_ARTIFACT_CHARS:
            raise ToolError(
                f"the artifact would have {len(content)} characters; at most {MOST_ARTIFACT_CHARS} are allowed."
            )
        self.written.append(item)
        return f"'{name}' is kept ({len(content)} characters)."

    def send(self, team: str, content: str) -> str:
        """Leave a message for another team."""
        every = [*self.readers, *(asked.team for asked in self.requests)]
        readers = [name for name in every if self.organisation.may("tell", self.seat, name)]
        if team not in self.organisation.teams or team == self.team:
            raise ToolError(f"'{team}' is not another team. Teams that can still read a message: {_names(readers)}.")
        if team in every and team not in readers:
            raise ToolError(f"you may not write to the {team} team. Teams that you may write to: {_names(readers)}.")
        if team not in readers:
            raise ToolError(
                f"the {team} team has no phase left to start, so it would never read the message. Teams that can "
                f"still read one: {_names(readers)}."
            )
        if not content.strip():
            raise ToolError("the message is empty.")
        self.sent.append(Sent(team, excerpt(content, MOST_MESSAGE_CHARS, "first")))
        shortened = f", cut to its first {MOST_MESSAGE_CHARS:,} characters" * (len(content) > MOST_MESSAGE_CHARS)
        return f"The {team} team reads your message when its next phase starts{shortened}."

    def ask(self, team: str, kind: RequestKind, request: str, justification: str = "") -> str:
        """Ask an earlier team for another phase."""
        before = self.organisation.before(self.team)
        earlier = [name for name in before if self.organisation.may("ask", self.seat, name)]
        if team in before and team not in earlier:
            raise ToolError(f"you may not ask the {team} team. Teams that you may ask: {_names(earlier)}.")
        if team not in earlier:
            allowed = ", ".join(earlier) or "none, yours is the first team"
            raise ToolError(f"you can't ask '{team}'. Only teams that worked before yours can be asked: {allowed}.")
        if not request.strip():
            raise ToolError("the request is empty: say what you need.")
        made = sum(asked.team == team for asked in self.requests)
        if made >= self.requests_left.get(team, 0):
            raise ToolError(f"your team can make no further request to the {team} team.")
        if not self.pays(team, kind):
            raise ToolError(f"nobody of the {team} team could be paid for the work.")
        self.requests.append(WorkRequest(team, kind, request, justification))
        return f"Noted: the {team} team is asked for it before your team goes on."

    def state(self, findings: Mapping[str, Any]) -> str:
        """Record findings, if all of them are valid."""
        if self.form is None:
            raise ToolError("your team's lead states the findings.")
        self.stated.append(self.form.check(findings))
        return self.stated[-1].answer

    def complete(self, summary: str) -> str:
        """End the agent's task."""
        self.summary = summary
        return "Your task is closed."

    def _newest(self) -> dict[str, str]:
        return {**self.artifacts, **{item.name: item.content for item in self.written}}


_USES: Mapping[type[BaseModel], Callable[[Workspace, Any], str]] = {
    ReadArtifact: lambda lab, given: lab.read(given.name, given.offset),
    WriteArtifact: lambda lab, given: lab.write(given.name, given.content, given.description),
    AppendArtifact: lambda lab, given: lab.append(given.name, given.content),
    ReplaceSection: lambda lab, given: lab.replace_section(given.name, given.heading, given.content),
    StateFindings: lambda lab, given: lab.state(given.root),
    ListArtifacts: lambda lab, _: lab.list(),
    SendMessage: lambda lab, given: lab.send(given.to_team, given.content),
    RequestAdditionalWork: lambda lab, given: lab.ask(given.target_team, "additional", given.request),
    RequestTeamRedo: lambda lab, given: lab.ask(given.target_team, "redo", given.request, given.justification),
    MarkComplete: lambda lab, given: lab.complete(given.summary),
}


def use_workspace(workspace: Workspace, arguments: BaseModel) -> str:
    """Carry out any tool call but ``run_code``. Raises `ToolError` if the call is invalid."""
    return _USES[type(arguments)](workspace, arguments)


def _names(teams: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(teams)) or "none"
