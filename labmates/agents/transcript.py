"""An agent's transcript: its stored form, and the rule for shortening it to a model's context.

The rule takes one step each time the model refuses a transcript for its length. If the model's context is known,
`compact` takes all necessary steps before the call:

1. Cut tool results before the last two replies to their first 200 characters.
2. Once they are cut, drop the older half of the replies with their tool results; keep the first messages (the agent's
   role and task) and the newest reply.
3. Once only these remain, cut the longest message to its first and last quarter.

A transcript without a message above 2,000 characters can't be shortened: the agent's step ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.agents.prompts import render
from labmates.budgets.tokens import ATTACHED
from labmates.models.orders import Order, order_of
from labmates.models.prefix import MARKS

KEPT_RESULT_CHARS = 200
SHORT_MESSAGE_CHARS = 2_000
_KEPT = (ATTACHED, *MARKS)
"""Data beside a message's text, of LangChain's ``additional_kwargs``, that the store keeps."""
_MARK = "[shortened]"
_LIMIT_LINE = re.compile(r"\n\n" + re.escape(render("output_limit", limit="N")).replace("N", r"\d+", 1))


def message_to_data(message: BaseMessage) -> dict[str, Any]:
    """A message as plain data for the store: role, content, tool calls, and what a provider attached."""
    data: dict[str, Any] = {"role": _role(message), "content": text_of(message)}
    if isinstance(message, AIMessage) and message.tool_calls:
        data["tool_calls"] = [{"id": c["id"], "name": c["name"], "args": c["args"]} for c in message.tool_calls]
    if isinstance(message, ToolMessage):
        data["tool_call_id"] = message.tool_call_id
    return data | {name: value for name in _KEPT if (value := message.additional_kwargs.get(name))}


def said_in(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data of a message without `continued`, which earlier versions did not record."""
    return {name: value for name, value in data.items() if name != "continued"}


def message_from_data(data: Mapping[str, Any]) -> BaseMessage:
    """The message stored as `data`."""
    content, more = data["content"], {name: data[name] for name in _KEPT if name in data}
    match data["role"]:
        case "system":
            return SystemMessage(content, additional_kwargs=more)
        case "user":
            return HumanMessage(content, additional_kwargs=more)
        case "tool":
            return ToolMessage(content, tool_call_id=data["tool_call_id"], additional_kwargs=more)
        case _:
            return AIMessage(content, tool_calls=data.get("tool_calls", []), additional_kwargs=more)


def kept_data(message: BaseMessage) -> dict[str, Any]:
    """The stored form of a message for continuing a conversation, with the unsent facts of its order."""
    order = order_of(message)
    facts = {} if order is None else {"order": {"kind": order.kind, "facts": order.facts, "text": order.text}}
    return {**message_to_data(message), **facts}


def kept_message(data: Mapping[str, Any]) -> BaseMessage:
    """The message stored by `kept_data`."""
    message = message_from_data(data)
    if "order" not in data:
        return message
    order = Order(**data["order"])
    prompt = order.system() if data["role"] == "system" else order.human()
    return prompt.model_copy(update={"content": message.content, "additional_kwargs": message.additional_kwargs})


def text_of(message: BaseMessage) -> str:
    """Text of a message."""
    return message.content if isinstance(message.content, str) else str(message.text)


def append_line(message: BaseMessage, line: str) -> BaseMessage:
    """The message with a line added to its text; unchanged if the line is empty."""
    if not line:
        return message
    return message.model_copy(update={"content": f"{text_of(message)}\n\n{line}"})


def replace_line(message: BaseMessage, old: str, line: str) -> BaseMessage:
    """The message with the line `old` at its end replaced."""
    return append_line(message.model_copy(update={"content": text_of(message).removesuffix(old).rstrip()}), line)


def with_persona(messages: Sequence[BaseMessage], text: str | None) -> list[BaseMessage]:
    """The transcript with a persona's text once, at the end of the system message, which begins with what all share."""
    if not text:
        return list(messages)
    first, *rest = messages
    if not isinstance(first, SystemMessage):
        return [SystemMessage(text), *messages]
    told = text_of(first)
    if told.endswith(text):
        return list(messages)
    return [first.model_copy(update={"content": f"{told}\n\n{text}"}), *rest]


def with_limit(messages: Sequence[BaseMessage], limit: int) -> list[BaseMessage]:
    """The transcript with the output limit of the next reply, in tokens, stated once at its end."""
    last = messages[-1]
    text = _LIMIT_LINE.sub("", text_of(last))
    last = last.model_copy(update={"content": text})
    return [*messages[:-1], append_line(last, render("output_limit", limit=limit))]


def shorten(messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
    """The next shorter version of a transcript by the rule above; None if there is none."""
    return _cut_results(messages) or _drop_replies(messages) or _cut_longest(messages)


def compact(
    messages: Sequence[BaseMessage], size: Callable[[Sequence[BaseMessage]], int], room: int
) -> list[BaseMessage]:
    """A transcript of at most `room`, shortened by the rule above if its `size` is larger.

    Long transcripts are shortened to three quarters of the room, so that the next replies fit without another cut, or
    to their shortest version.
    """
    shortest = list(messages)
    if size(shortest) <= room:
        return shortest
    while size(shortest) > room * 3 // 4 and (shorter := shorten(shortest)) is not None:
        shortest = shorter
    return shortest


def _cut_results(messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
    replies = [i for i, message in enumerate(messages) if isinstance(message, AIMessage)]
    end = replies[-2] if len(replies) > 2 else 0
    shorter = [
        message.model_copy(update={"content": f"{text_of(message)[:KEPT_RESULT_CHARS]} {_MARK}"})
        if i < end and isinstance(message, ToolMessage) and len(text_of(message)) > KEPT_RESULT_CHARS + len(_MARK) + 1
        else message
        for i, message in enumerate(messages)
    ]
    return shorter if shorter != list(messages) else None


def _drop_replies(messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
    replies = [i for i, message in enumerate(messages) if isinstance(message, AIMessage)]
    if len(replies) < 2:
        return None
    dropped = (len(replies) + 1) // 2
    head = [*messages[: replies[0]]]
    note = f"{_MARK} Your first {dropped} replies were left out here: the transcript became too long."
    head[-1] = append_line(head[-1], note)
    return [*head, *messages[replies[dropped] :]]


def _cut_longest(messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
    longest = max(range(len(messages)), key=lambda i: len(text_of(messages[i])), default=None)
    if longest is None:
        return None
    text = text_of(messages[longest])
    if len(text) <= SHORT_MESSAGE_CHARS:
        return None
    quarter = len(text) // 4
    shorter = list(messages)
    cut = f"{text[:quarter]}\n{_MARK}\n{text[-quarter:]}"
    shorter[longest] = messages[longest].model_copy(update={"content": cut})
    return shorter


def _role(message: BaseMessage) -> str:
    return {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}[message.type]
