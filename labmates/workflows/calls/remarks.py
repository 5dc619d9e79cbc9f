"""Remarks to an agent on its reply: what is wrong with it, and what was kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from labmates.agents.prompts import render
from labmates.agents.sections import sections_of
from labmates.agents.transcript import append_line
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply

TAIL_CHARS = 200
"""Trailing characters of a partial artifact shown to its author."""


def form_text(keys: Iterable[str]) -> str:
    """The form of an answer: a JSON object with neutral dots for its values."""
    return f"{{{', '.join(f'{json.dumps(key)}: …' for key in keys)}}}"


def remark_on(problem: UnusableAnswerError) -> str:
    """The message to the agent about an unusable reply."""
    form = problem.form or "Answer again in the form that was asked for."
    return problem.remark or render("repair", problem=str(problem).rstrip("."), form=form)


def sent_back(messages: list[BaseMessage], reply: Reply, problem: UnusableAnswerError) -> list[BaseMessage]:
    """The transcript with a reply and a remark on it, which answers each tool call of the reply.

    Empty replies are omitted, since servers reject empty messages, and those that the problem says to omit.
    """
    remark = remark_on(problem)
    if reply.tool_calls:
        return [*messages, *answered(reply, remark)]
    if problem.omits_reply or not reply.text.strip():
        return [*messages[:-1], append_line(messages[-1], remark)]
    reply_sent = reply.message.model_copy(update={"tool_calls": [], "content": reply.text})
    return [*messages, reply_sent, HumanMessage(remark)]


def answered(reply: Reply, answer: str) -> list[BaseMessage]:
    """A reply with tool calls, and the same answer to each of them."""
    return [reply.message, *(ToolMessage(answer, tool_call_id=call.id) for call in reply.tool_calls)]


def kept_text(reply: Reply, name: str, text: str) -> str:
    """The message to the author of a cut reply about its partial artifact `name` with `text`."""
    sections = ", ".join(section.title for section in sections_of(text)) or "none"
    tail = text[-TAIL_CHARS:]
    return render(
        "nudge_cut_kept", limit=_limit_of(reply), name=name, characters=len(text), sections=sections, tail=tail
    )


def _limit_of(reply: Reply) -> str:
    return f" of {reply.limit} tokens" if reply.limit else ""


def fault_text(reply: Reply) -> str | None:
    """A message to the agent about the fault of a reply; None if it has none."""
    if "cut" in reply.faults or "cut_tool_call" in reply.faults:
        return render("nudge_cut", limit=_limit_of(reply))
    if "bad_tool_call" in reply.faults:
        return render("nudge_bad_call")
    if "filtered" in reply.faults:
        return render("nudge_filtered")
    if "empty" in reply.faults:
        return render("nudge_empty")
    return None
