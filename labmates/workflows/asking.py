"""One question to an agent, asked again with its own error until the answer can be used, or given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from labmates.agents.decisions import FormT, read_decision
from labmates.agents.prompts import render
from labmates.agents.sections import sections_of
from labmates.agents.transcript import append_line
from labmates.budgets.purse import Purse
from labmates.models.errors import ContextOverflowError
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.models.structured import format_of
from labmates.workflows.calls import Caller, Speaker

T = TypeVar("T")

TAIL_CHARS = 200
"""How much of the end of a partial artifact its author is shown."""


class UnusableError(Exception):
    """An answer can't be used; the text says why, and goes back to the agent."""

    @property
    def remark(self) -> str:
        """What the agent is told."""
        return render("repair", problem=self)


class FaultError(UnusableError):
    """A reply is cut, empty or has a broken tool call; the text is all that the agent is told."""

    @property
    def remark(self) -> str:
        """What the agent is told."""
        return str(self)


def form_text(keys: Iterable[str]) -> str:
    """Return how an answer looks: a JSON object with dots for its values, which favour none."""
    return f"{{{', '.join(f'{json.dumps(key)}: …' for key in keys)}}}"


async def ask(
    caller: Caller,
    step: str,
    speaker: Speaker,
    messages: list[BaseMessage],
    purse: Purse,
    read: Callable[[Reply, bool], T],
    *,
    name: str,
    repair_turns: int,
    tools: tuple[dict[str, Any], ...] = (),
    response_format: Mapping[str, Any] | None = None,
    state_limit: bool = False,
) -> T | None:
    """Ask until `read` can use the answer, at most `repair_turns` more times; None if it never can.

    Parameters
    ----------
    read
        Takes the reply, and whether it is the last that will be asked for; raises `UnusableError` if it can't use it.
    response_format
        What the server holds each reply to.
    state_limit
        State the output limit of each reply.

    Raises
    ------
    InsufficientFundsError, EndpointError
        As `Caller.call` does.
    """
    for turn in range(repair_turns + 1):
        try:
            exchange = await caller.call(
                f"{step}/{turn}",
                speaker,
                messages,
                purse,
                tools=tools,
                response_format=response_format,
                name=name,
                state_limit=state_limit,
            )
        except ContextOverflowError:
            return None
        reply, messages = exchange.reply, exchange.sent
        if reply.faults:
            # Counted even where what is left of the reply can be used.
            caller.failed(f"{step}/{turn}", speaker, ", ".join(reply.faults))
        try:
            return read(reply, turn == repair_turns)
        except UnusableError as problem:
            caller.failed(f"{step}/{turn}", speaker, str(problem))
            messages = sent_back(messages, reply, problem.remark)
    return None


async def decide(
    caller: Caller,
    step: str,
    speaker: Speaker,
    messages: list[BaseMessage],
    purse: Purse,
    form: type[FormT],
    *,
    name: str,
    repair_turns: int,
    structured: bool = False,
) -> FormT | None:
    """Ask for a decision until it has the form, at most `repair_turns` more times; None if it never has.

    Parameters
    ----------
    structured
        Let the server hold the reply to the form.

    Raises
    ------
    InsufficientFundsError, EndpointError
        As `Caller.call` does.
    """

    def read(reply: Reply, last: bool) -> FormT:
        del last
        try:
            return read_decision(reply, form)
        except UnusableAnswerError as problem:
            raise UnusableError(str(problem)) from problem

    held = format_of(form) if structured else None
    return await ask(
        caller, step, speaker, messages, purse, read, name=name, repair_turns=repair_turns, response_format=held
    )


def sent_back(messages: list[BaseMessage], reply: Reply, remark: str) -> list[BaseMessage]:
    """Return the transcript with a reply of text and a remark on it.

    An empty reply is not sent back, since servers refuse empty messages; nor are tool calls that stay without an
    answer.
    """
    if not reply.text.strip():
        return [*messages[:-1], append_line(messages[-1], remark)]
    said = reply.message.model_copy(update={"tool_calls": [], "content": reply.text})
    return [*messages, said, HumanMessage(remark)]


def kept_text(reply: Reply, name: str, text: str) -> str:
    """Return what the author of a cut reply has to know of the artifact that is kept of it, as far as it arrived.

    Parameters
    ----------
    text
        The whole artifact `name`, which breaks off.
    """
    sections = ", ".join(section.title for section in sections_of(text)) or "none"
    tail = text[-TAIL_CHARS:]
    return render(
        "nudge_cut_kept", limit=_limit_of(reply), name=name, characters=len(text), sections=sections, tail=tail
    )


def _limit_of(reply: Reply) -> str:
    return f" of {reply.limit} tokens" if reply.limit else ""


def fault_text(reply: Reply) -> str | None:
    """Return what was wrong with a reply in words for the agent, or None."""
    if "cut" in reply.faults or "cut_tool_call" in reply.faults:
        return render("nudge_cut", limit=_limit_of(reply))
    if "bad_tool_call" in reply.faults:
        return render("nudge_bad_call")
    if "empty" in reply.faults:
        return render("nudge_empty")
    return None
