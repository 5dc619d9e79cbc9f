"""Model calls by agents, players or judges, and answerers in place of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict

from langchain_core.messages import AIMessage, BaseMessage

from labmates.budgets.purse import Purse
from labmates.budgets.tokens import estimate_messages
from labmates.budgets.usage import Usage
from labmates.models.normalise import NO_TEXT
from labmates.models.reply import Reply, ToolCall


@dataclass(frozen=True)
class Speaker:
    """The caller of a model."""

    team: str
    agent: str
    model: str


class Outsider(Protocol):
    """An answerer in place of a model: a person, or an agent with its own loop."""

    async def reply(self, call: Call) -> Reply:
        """The next reply; cancelled when the run stops."""


def no_outsider(model: str) -> Outsider | None:
    """No answerer in place of a model."""
    del model
    return None


class CallOptions(TypedDict, total=False):
    """Optional parts of a call.

    Attributes
    ----------
    tools
        Available tools, as OpenAI schemas.
    response_format
        Format enforced by the server.
    tool_choice
        The tool that the reply must call; see `labmates.models.hub.CallParameters`.
    state_limit
        Always state the output limit.
    limit
        Output limit, in tokens; by default the model's, else the caller's.
    """

    tools: Sequence[dict[str, Any]]
    response_format: Mapping[str, Any] | None
    tool_choice: str
    state_limit: bool
    limit: int


@dataclass(frozen=True)
class Call:
    """A call: its prompt, payer and limits.

    Attributes
    ----------
    inputs
        Estimated tokens of the transcript and the tools.
    reserved
        Reserved input tokens.
    limit
        Output limit; 0 for the model's, until the call is made.
    """

    step: str
    speaker: Speaker
    messages: list[BaseMessage]
    purse: Purse
    name: str
    seed: int
    tools: Sequence[dict[str, Any]] = ()
    response_format: Mapping[str, Any] | None = None
    tool_choice: str = ""
    state_limit: bool = False
    inputs: int = 0
    reserved: int = 0
    limit: int = 0

    @property
    def where(self) -> dict[str, str]:
        """Step, team and agent of the call's events."""
        return {"step": self.step, "team": self.speaker.team, "agent": self.speaker.agent}

    def with_messages(self, messages: list[BaseMessage]) -> Call:
        """The same call with another transcript."""
        return replace(self, messages=messages, inputs=estimate_messages(messages, self.tools))


def outside_reply(text: str = "", calls: Sequence[ToolCall] = (), notes: tuple[str, ...] = ()) -> Reply:
    """A reply without cost; empty without text and calls."""
    message = AIMessage(
        text or ("" if calls else NO_TEXT),
        tool_calls=[{"id": call.id, "name": call.name, "args": call.arguments} for call in calls],
    )
    return Reply(
        text=text,
        tool_calls=tuple(calls),
        faults=() if text or calls else ("empty",),
        message=message,
        finish="tool_calls" if calls else "stop",
        usage=Usage(0, 0),
        bill=0,
        notes=notes,
    )
