"""What a provider attached to its reply: thoughts, signatures, encrypted reasoning, fields unknown to us.

Providers that let a model think refuse the next call of a tool loop, or answer worse, if any of it is missing. It is
data of the message beside its text and calls, which alone may be edited: shortened, repaired, cleaned of broken calls.
`restored` joins the two just before a call. Only the model that sent an attachment gets it back.

Sources: the documentation of DeepSeek (thinking mode), Anthropic (extended thinking), Google (thought signatures),
OpenAI (reasoning items) and OpenRouter (reasoning tokens).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from labmates.budgets.tokens import ATTACHED, CALL_BLOCKS, TEXT_BLOCKS, text_of
from labmates.models.completions import WIRE, Json
from labmates.models.names import parse_model
from labmates.models.settings import Thoughts
from labmates.util.grouping import grouped
from labmates.util.safe_text import UnsafeValueError, safe_value

_PLAIN: Final = {"type", "text", "id", "call_id", "name", "input", "arguments", "args", "index", "partial_json"}
"""Members of blocks that repeat the text and the calls of the message."""
_OURS: Final = {ATTACHED, WIRE, "tool_calls", "function_call", "parsed"}
"""Members of LangChain's ``additional_kwargs`` that repeat the calls, or are not a provider's."""
_METADATA: Final = ("model_provider", "id")
"""Metadata that LangChain's classes read from a message that is sent back."""
BYTES_PER_TOKEN: Final = 64
LEAST_BYTES: Final = 262_144
"""An attachment has at most `LEAST_BYTES` and `BYTES_PER_TOKEN` per token of the output limit."""


def attachment(
    message: AIMessage, source: str, ids: Sequence[tuple[str | None, str]], limit: int, raw: str = ""
) -> tuple[Json | None, str]:
    """What a provider attached to a reply, made safe to store, and a note if it had to be dropped.

    Parameters
    ----------
    source
        The model that sent it.
    ids
        The id of each complete tool call, as sent and as used.
    limit
        Output limit of the call in tokens.
    raw
        The text with its marked reasoning; empty without marks.
    """
    wire: Json = message.additional_kwargs.get(WIRE) or {}
    # Reasoning on the wire is a field of the message, under the server's name.
    given = without(message.additional_kwargs, {*_OURS, "reasoning_content"} if wire else _OURS)
    fields = {name: value for name, value in given.items() if value and _is_safe(value)}
    parts = {
        "content": message.content if _says_more(message.content) else None,
        "fields": fields,
        "message": wire.get("message"),
        "calls": _of_calls(wire.get("calls", ()), ids),
        "text": "" if isinstance(message.content, list) else raw,
    }
    found = {name: value for name, value in parts.items() if value}
    if not found:
        return None, ""
    if "content" in found or "fields" in found:
        known = message.response_metadata
        found["metadata"] = {name: known[name] for name in _METADATA if isinstance(known.get(name), str)}
    try:
        safe: Json = safe_value(found)
        used = grouped((old, new) for old, new in ids if old)
        for name in ("content", "fields"):
            if name in safe and any(old != new for old, new in ids):
                safe[name] = _renamed(safe[name], used)
        size = len(json.dumps(safe, ensure_ascii=False).encode())
    except UnsafeValueError as error:
        return None, f"what the provider attached to the reply can't be sent back: {error}"
    if size > LEAST_BYTES + BYTES_PER_TOKEN * limit:
        return None, f"what the provider attached to the reply can't be sent back: it has {size:,} bytes"
    return {"source": source, **safe}, ""


def source_of(model: str) -> str:
    """The name of a model in its attachments: without settings, which may change within a conversation."""
    name = parse_model(model)
    variant = f"?variant={name.settings.variant}" if name.settings.variant else ""
    return f"{name.provider}:{name.name}{variant}"


def attached_to(message: BaseMessage) -> Json | None:
    """The attachment of a message; None without one."""
    return message.additional_kwargs.get(ATTACHED)


def with_attachment(message: AIMessage, attached: Mapping[str, Any] | None) -> AIMessage:
    """The message with this attachment instead of its current one."""
    more = {name: value for name, value in message.additional_kwargs.items() if name != ATTACHED}
    return message.model_copy(update={"additional_kwargs": more | ({ATTACHED: attached} if attached else {})})


def for_model(messages: Sequence[BaseMessage], model: str, thoughts: Thoughts = "all") -> list[BaseMessage]:
    """The transcript without attachments of other models, and with those of the turns that `thoughts` names."""
    if not any(map(attached_to, messages)):
        return list(messages)
    source, wanted = source_of(model), _turns(messages, thoughts)
    return [
        with_attachment(message, None)
        if isinstance(message, AIMessage)
        and (attached := attached_to(message))
        and (attached["source"] != source or number not in wanted)
        else message
        for number, message in enumerate(messages)
    ]


def _turns(messages: Sequence[BaseMessage], thoughts: Thoughts) -> set[int]:
    """The places of the messages in turns whose thoughts are sent."""
    starts = [number for number, message in enumerate(messages) if message.type == "human"]
    turns = [range(*ends) for ends in zip([0, *starts], [*starts, len(messages)], strict=True)]
    if thoughts != "all":
        calling = [any(getattr(messages[n], "tool_calls", ()) for n in turn) for turn in turns[:-1]]
        turns = [turn for turn, calls in zip(turns, [*calling, True], strict=True) if calls]
    return {number for turn in (turns[-1:] if thoughts == "turn" else turns) for number in turn}


def restored(
    messages: Sequence[BaseMessage], dropped: Collection[str] = (), filled: Mapping[str, Any] | None = None
) -> list[BaseMessage]:
    """The transcript as LangChain's classes send it, with attachments in their places.

    Parameters
    ----------
    dropped
        Names of fields and types of blocks that the server refuses.
    filled
        Fields of messages with tool calls that the server requires, with the values of those that lack them.
    """
    return [
        _restored(message, dropped, filled or {})
        if isinstance(message, AIMessage) and (filled or attached_to(message))
        else message
        for message in messages
    ]


def _restored(message: AIMessage, dropped: Collection[str], filled: Mapping[str, Any]) -> AIMessage:
    attached = attached_to(message) or {}
    fields = without(attached.get("fields", {}), dropped)
    own = without(attached.get("message", {}), dropped)
    calls = {id_: without(more, dropped) for id_, more in attached.get("calls", {}).items()}
    if message.tool_calls and filled:
        own = {**filled.get("message", {}), **own}
        first = str(message.tool_calls[0]["id"])
        calls[first] = {**filled.get("call", {}), **calls.get(first, {})}
    if blocks := own.get("content"):
        own["content"] = _joined(message, blocks, dropped)
    content: Any = message.content
    if blocks := attached.get("content"):
        content = _joined(message, blocks, dropped)
    elif (raw := attached.get("text")) and message.content in raw:  # else it was shortened
        content = raw
    if own or calls:
        fields[WIRE] = {"message": own, "calls": calls}
    metadata = attached.get("metadata", {})
    return AIMessage(content, tool_calls=message.tool_calls, additional_kwargs=fields, response_metadata=metadata)


def _is_safe(value: Any) -> bool:
    try:
        safe_value(value)
    except UnsafeValueError:
        return False
    return True


def without(fields: Mapping[str, Any], dropped: Collection[str]) -> Json:
    """Fields without the dropped ones."""
    return {name: value for name, value in fields.items() if name not in dropped}


def names_in(messages: Sequence[BaseMessage]) -> list[str]:
    """The names of all attached fields and types of blocks that a server may refuse."""
    names: dict[str, None] = {}
    for attached in filter(None, map(attached_to, messages)):
        for fields in (attached.get("message", {}), attached.get("fields", {}), *attached.get("calls", {}).values()):
            names |= dict.fromkeys(fields)
        blocks = [*attached.get("content", ()), *attached.get("message", {}).get("content", ())]
        names |= {block["type"]: None for block in blocks if _kind(block) not in (*TEXT_BLOCKS, *CALL_BLOCKS)}
    return [name for name in names if name != "content"]


def _joined(message: AIMessage, blocks: Sequence[Any], dropped: Collection[str]) -> list[Any]:
    """The provider's blocks with the text and the calls of the message, in the provider's order."""
    ids = {call["id"] for call in message.tool_calls}
    text = text_of(message.content)
    is_same = text_of(blocks).strip() == text.strip()
    joined: list[Any] = []
    place = None
    for block in blocks:
        kind = _kind(block)
        if kind in TEXT_BLOCKS:
            place = len(joined) if place is None else place
            if is_same:
                joined.append(block)
        elif kind in CALL_BLOCKS:
            place = len(joined) if place is None else place
            if (block.get("call_id") or block.get("id")) in ids:
                joined.append(block)
        elif kind not in dropped:
            joined.append(block)
    if text and not is_same:
        joined.insert(len(joined) if place is None else place, {"type": "text", "text": text})
    return joined


def _kind(block: Any) -> str:
    return str(block.get("type")) if isinstance(block, dict) else "text"


def _says_more(content: Any) -> bool:
    """Whether blocks hold anything besides text and calls."""
    return any(
        _kind(block) not in (*TEXT_BLOCKS, *CALL_BLOCKS)
        or any(value and name not in _PLAIN for name, value in block.items())
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, dict)
    )


def _of_calls(sent: Sequence[Sequence[Any]], ids: Sequence[tuple[str | None, str]]) -> dict[str, Json]:
    """The fields of the complete calls by their id as used, from those of all calls by their id as sent."""
    left = [(id_, more) for id_, more in sent]
    found: dict[str, Json] = {}
    for old, new in ids:
        place = next((place for place, (id_, _) in enumerate(left) if id_ == (old or "")), None)
        if place is not None and (more := left.pop(place)[1]):
            found[new] = more
    return found


def _renamed(value: Any, ids: Mapping[str, Sequence[str]]) -> Any:
    """A value with the ids of tool calls as they are used; of several calls with one id, the blocks come in order."""
    seen: Counter[str] = Counter()

    def walk(item: Any) -> Any:
        if isinstance(item, list):
            return [walk(inner) for inner in item]
        if not isinstance(item, dict):
            return item
        found = {ids[name][0] if name in ids else name: walk(inner) for name, inner in item.items()}
        name = "call_id" if "call_id" in item else "id"
        old = str(item.get(name))
        if _kind(item) in CALL_BLOCKS and old in ids:
            found[name] = ids[old][min(seen[old], len(ids[old]) - 1)]
            seen[old] += 1
        return found

    return walk(value)
