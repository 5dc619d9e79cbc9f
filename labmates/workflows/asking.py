"""Asking an agent of a run: each call is paid, an unusable answer goes back with what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar, Unpack

from langchain_core.messages import BaseMessage, HumanMessage

from labmates.agents.prompts import render
from labmates.agents.sections import sections_of
from labmates.agents.transcript import append_line
from labmates.budgets.purse import Purse
from labmates.models.asking import Accept, Conversation, Exchange, Read
from labmates.models.errors import ContextOverflowError
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.workflows.caller import Caller
from labmates.workflows.calls import CallOptions, Speaker

T = TypeVar("T")

TAIL_CHARS = 200
"""How much of the end of a partial artifact its author is shown."""


def form_text(keys: Iterable[str]) -> str:
    """The form of an answer: a JSON object with dots for its values, which favour none."""
    return f"{{{', '.join(f'{json.dumps(key)}: …' for key in keys)}}}"


def conversation(
    caller: Caller,
    step: str,
    speaker: Speaker,
    messages: list[BaseMessage],
    purse: Purse,
    *,
    name: str,
    first: int = 0,
    **options: Unpack[CallOptions],
) -> Conversation:
    """A conversation with an agent.

    Parameters
    ----------
    step
        Each call is the step of this name and the call's number.
    name
        Readable name of the calls in a trace; ``{}`` in it stands for the count of calls.
    options
        Passed on to `Caller.call`.
    """

    async def call(transcript: list[BaseMessage], number: int) -> Exchange:
        return await caller.call(
            f"{step}/{number}", speaker, transcript, purse, name=name.replace("{}", str(number + 1)), **options
        )

    def failed(number: int, reason: str) -> None:
        caller.failed(f"{step}/{number}", speaker, reason)

    return Conversation(call, messages, send_back=sent_back, failed=failed, first=first)


async def ask(
    caller: Caller,
    step: str,
    speaker: Speaker,
    messages: list[BaseMessage],
    purse: Purse,
    read: Read[T],
    *,
    name: str,
    repair_turns: int,
    accept: Accept[T] | None = None,
    **options: Unpack[CallOptions],
) -> T | None:
    """Ask until `read` can use the answer, at most `repair_turns` more times; None if it never can.

    Parameters
    ----------
    accept
        Also has to accept the answer.
    options
        Passed on to `Caller.call`.

    Raises
    ------
    InsufficientFundsError, EndpointError
        As `Caller.call` does.
    """
    talk = conversation(caller, step, speaker, messages, purse, name=name, **options)
    try:
        return await talk.ask(read, repair_turns=repair_turns, accept=accept)
    except (UnusableAnswerError, ContextOverflowError):
        return None


def remark_on(problem: UnusableAnswerError) -> str:
    """The message to an agent about its unusable reply."""
    return problem.remark or render("repair", problem=problem)


def sent_back(messages: list[BaseMessage], reply: Reply, problem: UnusableAnswerError) -> list[BaseMessage]:
    """The transcript with a reply of text and the remark on it.

    An empty reply is not sent back, since servers refuse empty messages; nor are tool calls that stay without an
    answer.
    """
    remark = remark_on(problem)
    if not reply.text.strip():
        return [*messages[:-1], append_line(messages[-1], remark)]
    reply_sent = reply.message.model_copy(update={"tool_calls": [], "content": reply.text})
    return [*messages, reply_sent, HumanMessage(remark)]


def kept_text(reply: Reply, name: str, text: str) -> str:
    """The message to the author of a cut reply about the partial artifact that is kept of it.

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
    """The fault of a reply in words for the agent, or None."""
    if "cut" in reply.faults or "cut_tool_call" in reply.faults:
        return render("nudge_cut", limit=_limit_of(reply))
    if "bad_tool_call" in reply.faults:
        return render("nudge_bad_call")
    if "empty" in reply.faults:
        return render("nudge_empty")
    return None
