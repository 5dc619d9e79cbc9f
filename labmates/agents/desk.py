"""An agent's desk: what it sees of the lab's shared work while its step goes on, and what it has put there itself.

Members who work in parallel don't see each other's writing until the step ends; then it is taken over in the order of
the members. So a run repeats exactly, whatever the concurrency.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from labmates.agents.roles import EXTRA_ARTIFACTS, TEAMS, Team

MOST_ARTIFACT_CHARS = 60_000
MOST_READ_CHARS = 12_000
MOST_MESSAGE_CHARS = 2_000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

RequestKind = Literal["additional", "redo"]


class ToolError(Exception):
    """A tool was called with something that can't be; the text goes back to the agent."""


@dataclass(frozen=True)
class Written:
    """An artifact that the agent wrote."""

    name: str
    content: str
    description: str


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
class Desk:
    """What one agent sees and leaves behind in one step of work.

    Attributes
    ----------
    team
        The agent's team.
    artifacts
        Newest content of every artifact when the step started, by name.
    requests_left
        How many requests the team may still make to each other team.
    """

    team: Team
    artifacts: Mapping[str, str]
    requests_left: Mapping[str, int]
    written: list[Written] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    requests: list[WorkRequest] = field(default_factory=list)
    summary: str | None = None

    def read(self, name: str) -> str:
        """Return the newest version of an artifact, cut to its first characters if it is long."""
        content = self._newest().get(name)
        if content is None:
            known = ", ".join(sorted(self._newest())) or "none yet"
            raise ToolError(f"there is no artifact '{name}'. There are: {known}.")
        if len(content) > MOST_READ_CHARS:
            return f"{content[:MOST_READ_CHARS]}\n[cut: {len(content) - MOST_READ_CHARS} more characters]"
        return content or "[this artifact is empty]"

    def list(self) -> str:
        """Return names and sizes of all artifacts."""
        newest = self._newest()
        return "\n".join(f"{name}: {len(text)} characters" for name, text in sorted(newest.items())) or "none yet"

    def write(self, name: str, content: str, description: str) -> str:
        """Keep a new version of an artifact."""
        if not _NAME.fullmatch(name):
            raise ToolError(f"'{name}' is no artifact name: lower-case letters, digits and _, starting with a letter.")
        owner = artifact_owner(name)
        if owner not in (None, self.team.name) and not self.team.alone:
            raise ToolError(f"'{name}' belongs to the {owner} team; ask that team, or choose another name.")
        if not content.strip():
            raise ToolError("the content is empty.")
        if len(content) > MOST_ARTIFACT_CHARS:
            raise ToolError(f"the content has {len(content)} characters; at most {MOST_ARTIFACT_CHARS} are allowed.")
        self.written.append(Written(name, content, description))
        return f"'{name}' is kept ({len(content)} characters)."

    def send(self, team: str, content: str) -> str:
        """Leave a message for another team."""
        if team not in TEAMS or team == self.team.name:
            raise ToolError(
                f"'{team}' is no other team. Other teams: {_names(t for t in TEAMS if t != self.team.name)}."
            )
        if not content.strip():
            raise ToolError("the message is empty.")
        self.sent.append(Sent(team, content[:MOST_MESSAGE_CHARS]))
        return f"The {team} team reads your message when its next phase starts."

    def ask(self, team: str, kind: RequestKind, request: str, justification: str = "") -> str:
        """Ask an earlier team for another phase."""
        earlier = list(TEAMS)[: list(TEAMS).index(self.team.name)]
        if team not in earlier:
            allowed = _names(earlier) if earlier else "none, yours is the first team"
            raise ToolError(f"you can't ask '{team}'. Only teams that worked before yours can be asked: {allowed}.")
        if not request.strip():
            raise ToolError("the request is empty: say what you need.")
        made = sum(asked.team == team for asked in self.requests)
        if made >= self.requests_left.get(team, 0):
            raise ToolError(f"your team can make no further request to the {team} team.")
        self.requests.append(WorkRequest(team, kind, request, justification))
        return f"Noted: the {team} team is asked for it before your team goes on."

    def complete(self, summary: str) -> str:
        """End the agent's task."""
        self.summary = summary
        return "Your task is closed."

    def _newest(self) -> dict[str, str]:
        return {**self.artifacts, **{item.name: item.content for item in self.written}}


def artifact_owner(name: str) -> str | None:
    """Return the team to which the artifact belongs, or None if any team may write it."""
    for team in TEAMS.values():
        if team.artifact == name:
            return team.name
    return EXTRA_ARTIFACTS.get(name)


def _names(teams: object) -> str:
    return ", ".join(teams)  # type: ignore[arg-type]
