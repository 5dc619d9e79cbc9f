"""Normalisation of chat models' messages into `Reply`.

Whatever the server sends, the reply's text can be stored, its tool calls are complete, and its message can be sent
back: servers answer 400 or 500 to messages with a cut tool call, a tool call without an id, or no content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage
from pydantic_core import from_json

from labmates.budgets.tokens import (
    ATTACHED,
    MOST_TOKENS,
    beginning,
    estimate_messages,
    estimate_tokens,
    read_usage,
    text_of,
    token_bound,
)
from labmates.models.attached import attachment
from labmates.models.calls_in_text import written_calls
from labmates.models.completions import read_arguments
from labmates.models.marks import meant_tool, split_channels, split_thinking
from labmates.models.provider_words import FILTERED, FinishMeaning, meaning_of_finish
from labmates.models.reply import Fault, Finish, Reply, ToolCall
from labmates.util.safe_text import safe_text, safe_value

NO_TEXT = "(no text)"
"""`Reply.message` of a reply without text or complete tool call: several providers refuse empty messages."""

_SLACK = 2
"""Multiple of the limit at which a reply is cut by its estimated length: estimates are rough."""

_MOST_QUOTED = 100


def normalise(
    message: AIMessage,
    *,
    sent: Sequence[BaseMessage],
    tools: Sequence[Mapping[str, Any]] = (),
    limit: int = MOST_TOKENS,
    source: str = "",
) -> Reply:
    """Turn a message of the model `source`, which is not trusted, into a reply.

    The prompt `sent` and the schemas of its `tools` serve to estimate tokens; the prompt also holds the used ids of
    tool calls. A reply is cut if it is far beyond the output `limit` (tokens), or longer by the server's count.
    """
    meaning = meaning_of_finish(message.response_metadata)
    finish = _finish(meaning)
    schemas = [tool.get("function", tool) for tool in tools]
    offered = {str(each.get("name", "")): (each.get("parameters") or {}).get("properties", {}) for each in schemas}
    raw = safe_text(text_of(message.content))
    text, reasoning = split_thinking(raw, cut=finish == "length")
    answer, marked = text, raw if reasoning and finish != "length" else ""
    text, analysis, spoken = split_channels(text, offered)
    reasoning = "\n".join(filter(None, [safe_text(_reasoning(message)), reasoning, analysis]))
    begun, spoilt = _begun_calls(message, offered)
    if not begun:
        text, spoken = (text, spoken) if spoken or not offered else written_calls(text, offered)
        begun = [_Begun(None, name, read_arguments(arguments), arguments) for name, arguments in spoken]
        spoilt = ["a tool call was part of the text"] if begun else []
    written = estimate_tokens(text) + sum(_size(call) for call in begun)
    thought = estimate_tokens(reasoning)
    usage, notes = read_usage(
        cast("Mapping[str, Any] | None", message.usage_metadata),
        prompt=lambda: estimate_messages(sent, tools),
        output=lambda: written + thought,
        reasoning=thought,
        most=(token_bound(sent, tools), max(limit, _bytes(text, reasoning, *(call.text for call in begun)))),
    )
    # Broken calls are never sent back.
    sendable = estimate_tokens(text) + sum(_size(call) for call in begun if call.arguments is not None)
    if sendable > limit and (sendable > _SLACK * limit or usage.output_tokens - usage.reasoning_tokens > limit):
        text, begun, finish = *_cut(text, begun, limit), "length"
        notes = (*notes, f"the server ignored the limit of {limit:,} tokens: its reply of about {sendable:,} was cut")
    if thought > _SLACK * limit:
        reasoning = beginning(reasoning, limit)
    taken = {str(call["id"]) for message in sent if isinstance(message, AIMessage) for call in message.tool_calls}
    read, faults = _read_calls(begun, finish, taken=taken, turn=len(sent))
    calls = tuple(call for _, call in read)
    ids = [(sent_id, call.id) for sent_id, call in read]
    attached, problem = attachment(message, source, ids, limit, marked if text == answer else "")
    if not text and not begun and meaning != "bad_tool_call":
        faults = ["empty", *faults]
    if meaning == "bad_tool_call" and not begun:
        faults = ["bad_tool_call", *faults]
    if finish == "length":
        faults = ["cut", *faults]
    if finish == "content_filter":
        faults = ["filtered", *(fault for fault in faults if fault != "empty")]
    if blocked := message.response_metadata.get(FILTERED):
        notes = (*notes, f"the provider's filter blocked the prompt: {blocked}")
    return Reply(
        text,
        calls,
        tuple(dict.fromkeys(faults)),
        resendable(text, calls, attached),
        finish,
        usage,
        reasoning,
        cut_call=_cut_call(begun[-1]) if "cut_tool_call" in faults else None,
        notes=(*notes, *spoilt, *([problem] if problem else ())),
        raw=raw if spoken and begun else "",
    )


def safe_message(message: BaseMessage) -> BaseMessage:
    """A message that can be sent: as UTF-8, as tools' output may hold any characters, and not empty."""
    if not isinstance(message.content, str):
        return message
    is_empty = isinstance(message, AIMessage) and not message.content and not message.tool_calls
    content = NO_TEXT if is_empty else safe_text(message.content)
    return message if content == message.content else message.model_copy(update={"content": content})


@dataclass(frozen=True)
class _Begun:
    id: str | None
    name: str
    arguments: dict[str, Any] | None
    broken: object = ""

    @property
    def text(self) -> str:
        """Its name and its arguments."""
        return safe_text(f"{self.name}{self.arguments or self.broken or ''}")


def _size(call: _Begun) -> int:
    return estimate_tokens(call.text)


def _bytes(*texts: str) -> int:
    return sum(len(text.encode("utf-8", "replace")) for text in texts)


def _cut(text: str, begun: list[_Begun], limit: int) -> tuple[str, list[_Begun]]:
    """The part of a reply within the limit: its text first, then its calls, the last of them broken."""
    left = limit - estimate_tokens(text)
    if left < 0:
        return beginning(text, limit), []
    kept: list[_Begun] = []
    for call in begun:
        if call.arguments is not None and _size(call) > left:
            broken = beginning(json.dumps(call.arguments, ensure_ascii=False), left)
            return text, [*kept, _Begun(call.id, call.name, None, broken)]
        left -= _size(call) if call.arguments is not None else 0
        kept.append(call)
    return text, kept


def resendable(text: str, calls: tuple[ToolCall, ...], attached: Mapping[str, Any] | None = None) -> AIMessage:
    """A reply as a message that can be sent back: to any server, and to its own with what was attached."""
    return AIMessage(
        content=text or ("" if calls else NO_TEXT),
        tool_calls=[{"type": "tool_call", "id": call.id, "name": call.name, "args": call.arguments} for call in calls],
        additional_kwargs={ATTACHED: attached} if attached else {},
    )


def _finish(meaning: FinishMeaning | None) -> Finish:
    match meaning:
        case "bad_tool_call":
            return "tool_calls"
        case None | "server":
            return "unknown"
        case _:
            return meaning


def _reasoning(message: AIMessage) -> str:
    field = message.additional_kwargs.get("reasoning_content")
    parts = [field] if isinstance(field, str) and field else []
    for block in message.content if isinstance(message.content, list) else ():
        if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning"):
            parts += [part for key in ("thinking", "reasoning") if isinstance(part := block.get(key), str)]
    return "\n".join(part.strip() for part in parts)


def _begun_calls(message: AIMessage, offered: Collection[str]) -> tuple[list[_Begun], list[str]]:
    """All calls that the model began, complete ones, then invalid ones, and the names that were not offered as sent."""
    sent: list[tuple[Any, Any]] = [(call, read_arguments(call["args"])) for call in message.tool_calls]
    sent += [(call, None) for call in message.invalid_tool_calls]
    calls, spoilt = [], []
    for call, arguments in sent:
        name = call["name"] or ""
        tool = meant_tool(name, offered)
        if tool is not None and tool != name:
            spoilt.append(f"the name of the called tool {tool} came as {safe_text(name[:_MOST_QUOTED])!r}")
        calls.append(_Begun(call["id"], tool or re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64], arguments, call["args"]))
    return calls, spoilt


def _read_calls(
    begun: list[_Begun], finish: Finish, *, taken: set[str], turn: int
) -> tuple[list[tuple[str | None, ToolCall]], list[Fault]]:
    """The complete calls, each with its id as sent, and the faults of the others."""
    calls: list[tuple[str | None, ToolCall]] = []
    faults: list[Fault] = []
    for place, call in enumerate(begun):
        if call.arguments is None or not call.name:
            # The length limit can only have cut the last call.
            faults.append("cut_tool_call" if finish == "length" and place == len(begun) - 1 else "bad_tool_call")
            continue
        fresh = _fresh_id(call.id or "", f"call_{turn}_{place}", taken)
        taken.add(fresh)
        calls.append((call.id, ToolCall(fresh, call.name, call.arguments)))
    return calls, faults


def _cut_call(call: _Begun) -> ToolCall:
    arrived = read_partial(call.broken) if isinstance(call.broken, str) else {}
    return ToolCall("", call.name, arrived)


def _fresh_id(id_: str, own: str, taken: set[str]) -> str:
    """`id_` if it is unique and acceptable to servers (short, plain characters), else a generated id."""
    if re.fullmatch(r"[A-Za-z0-9_.:-]{1,40}", id_) and id_ not in taken:
        return id_
    return next(name for name in chain([own], (f"{own}_{number}" for number in count(1))) if name not in taken)


_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}


def read_partial(text: str) -> dict[str, Any]:
    """The received members of a cut JSON object.

    The last member may be a cut text. A last number, list or object, which may be incomplete, is left out.

    >>> read_partial('{"name": "final_paper", "content": "## Abstr')
    {'name': 'final_paper', 'content': '## Abstr'}
    """
    # Models break lines within texts, which strict JSON refuses.
    strict = _STRING.sub(lambda match: match[0].translate(_ESCAPES), safe_text(text))
    if (whole := _members(strict, "off")) is not None:
        return whole
    members = _members(strict, "trailing-strings") or {}
    if members and not isinstance(members[last := next(reversed(members))], str):
        del members[last]
    return members


def _members(text: str, partial: Literal["off", "trailing-strings"]) -> dict[str, Any] | None:
    try:
        value = safe_value(from_json(text, allow_partial=partial))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
