"""Marks that servers leave in replies: reasoning and tool calls within the text, and names of tools with more around.

Models write reasoning and calls between marks of their own, which a server should turn into fields of its protocol.
Servers without the right parser leave them where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress

_UNQUOTED = r"(?!(?<=([`'\"]))(?:</?think(?:ing)?>|\[/?THINK\])\1)"  # who quotes a mark writes about it
OPEN = re.compile(_UNQUOTED + r"(?:<think(?:ing)?>|\[THINK\])", re.IGNORECASE)
CLOSE = re.compile(_UNQUOTED + r"(?:</think(?:ing)?>|\[/THINK\])", re.IGNORECASE)

Written = tuple[str, str]
"""A call in a text: the name of an offered tool, and its arguments as JSON, which may be broken."""

_MESSAGE, _CALL, _END_OF_CALL = "<|message|>", "<tool_call>", "</tool_call>"
_HEAD = re.compile(
    r"(?:<\|(?:end|call|return)\|>\s{0,9})?(?:<\|start\|>[^<]{0,99})?"
    r"<\|channel\|>([^<]{0,99})(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
)
_LEAD = re.compile(r"\s*(?:assistant)?\s*(?:to=[\w.-]+)?\s*")
"""What may stand before the first head, whose beginning is part of the prompt."""
_STOP_AT_END = re.compile(r"<\|(?:end|call|return)\|>\Z")
_RECIPIENT = re.compile(r"\bto=([\w.-]+)")
_BARE = re.compile(r"\A\s*(?:analysis|commentary)(?s:.*)assistant(?:final|commentary)")
"""A reply in channels whose marks were dropped, as special tokens are by some servers."""
_BARE_HEAD = re.compile(r"(?:\A\s*|assistant)(analysis|commentary|final)( to=[\w.-]+)?(?: ?json(?=\s*\{))?")
_DECODER = json.JSONDecoder(strict=False)
_ENDS = ("<|eom_id|>", "<|eot_id|>", "</s>")
_BEGINNINGS = ("<|python_tag|>", "[TOOL_CALLS]")
_TAG = re.compile(r"<([\w.-]{1,99})>")
_GAP = re.compile(r"[\s}]*")
"""What may follow an object: small models close more braces than they opened."""
_FENCE = re.compile(r"```\w*\s")
_NAMED = re.compile(r"([\w.-]+)(?:\[ARGS\])?\s*(\{.*)\Z", re.DOTALL)
_CALLED = re.compile(r"([\w.-]+)[(:]\s*(\{.*\})\s*\)?", re.DOTALL)
"""A call as programs write it, with one object, or the tool's name as a title; small models forget to close it."""
_TRIPLE = re.compile(r'(?<=:)(\s*)"""(.*?)"""', re.DOTALL)
"""A text in Python's quotes, in which models like to write code."""
_BROKEN = re.compile(r'\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(\{.*)\Z', re.DOTALL)


def meant_tool(name: str, offered: Collection[str]) -> str | None:
    """The offered tool that a sent name means; None unless exactly one stands in it by itself.

    Servers leave parts of a model's own notation around the name, or repeat it for each piece of a stream.

    >>> meant_tool("functions.run_code<|channel|>commentary", ["run_code", "read_artifact"])
    'run_code'
    """
    if name in offered:
        return name
    for between in (r"[^\w-]+", r"[^\w-]+|__+"):
        parts = re.split(between, name)
        found = {
            tool for tool in offered for part in parts if re.fullmatch(f"(?:{re.escape(tool)})+", part, re.IGNORECASE)
        }
        if len(found) == 1:
            return found.pop()
    return None


def written_calls(text: str, offered: Collection[str]) -> tuple[str, list[Written]]:
    """The text without the tool calls in it, and these calls; the whole text if they are not unambiguous.

    Calls between marks may follow other text, but no text follows them: it would make them examples. Without marks, the
    text must be nothing but JSON objects, fenced or not, each with the name of an offered tool and its arguments, or
    ``tool({…})``, or ``tool: {…}``. A tag around one may have the tool's name.
    """
    before, *blocks = text.split(_CALL)
    if blocks:
        pieces = [block.partition(_END_OF_CALL) for block in blocks]
        tagged = [not after.strip() and _call_objects(piece.strip(), offered) for piece, _, after in pieces]
        return (before.strip(), [call for found in tagged for call in found or ()]) if all(tagged) else (text, [])
    whole = text.strip()
    for end in _ENDS:
        whole = whole.removesuffix(end).rstrip()
    for beginning in _BEGINNINGS:
        whole = whole.removeprefix(beginning).lstrip()
    if fence := _FENCE.match(whole):
        whole = whole[fence.end() :].removesuffix("```").strip()
    elif "[TOOL_CALLS]" in text and (named := _NAMED.match(whole)) and (tool := meant_tool(named[1], offered)):
        return "", [(tool, named[2])]
    if (tag := _TAG.match(whole)) and tag[1] in offered and whole.endswith(end := f"</{tag[1]}>"):
        whole, offered = whole[tag.end() :].removesuffix(end).strip(), [tag[1]]
    if (called := _CALLED.fullmatch(whole)) and (tool := meant_tool(called[1], offered)):
        return "", _call_objects(called[2], [tool]) or [(tool, called[2])]
    calls = _call_objects(whole, offered)
    return ("", calls) if calls else (text, [])


def _call_objects(text: str, offered: Collection[str]) -> list[Written]:
    """The calls in JSON objects or a list of them; empty if one is no call of an offered tool, or other text remains.

    Braces may be doubled, as small models repeat those of templates, and more be closed than were opened. Repetitions
    of a call are one call, also if the reply's limit cut the last one.
    """
    text, at = _TRIPLE.sub(lambda match: json.dumps(match[2]), text), 0
    calls: list[Written | None] = []
    while at < len(text):
        doubled = text.startswith("{{", at)
        try:
            value, at = _DECODER.raw_decode(text, at + doubled)
        except (ValueError, RecursionError):
            if calls and len(set(calls)) == 1 and text[:at].startswith(text[at:]):
                break
            broken = _BROKEN.match(text)
            tool = meant_tool(broken[1], offered) if broken and not calls else None
            return [(tool, broken[2])] if broken and tool else []
        gap = _GAP.match(text, at)
        assert gap is not None
        at = gap.end()
        calls += [_call_object(item, offered) for item in (value if isinstance(value, list) else [value])]
    return [call for call in dict.fromkeys(calls) if call is not None] if None not in calls else []


def _call_object(value: object, offered: Collection[str]) -> Written | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    tool, arguments = meant_tool(value["name"], offered), value.get("arguments", value.get("parameters"))
    if tool is None or not isinstance(arguments, dict | str):
        return None
    return tool, arguments if isinstance(arguments, str) else json.dumps(arguments)


def split_channels(text: str, offered: Collection[str]) -> tuple[str, str, list[Written]]:
    """Split a reply in the channels of harmony (gpt-oss) into its text, its reasoning and its calls.

    A reply in channels begins with the head of a message; marks elsewhere are text. The final channel is text, to the
    end of the reply; analysis and commentary are reasoning, except for a message to an offered tool, which is its call.
    """
    if _MESSAGE not in text and _BARE.match(text):
        text = _BARE_HEAD.sub(rf"<|start|>assistant<|channel|>\1\2{_MESSAGE}", text)
    lead = _LEAD.match(text)
    assert lead is not None
    begin, head = 0, _HEAD.match(text, lead.end())
    if head is None:
        return text, "", []
    answer, thought, calls = "", list[str](), list[Written]()
    while head is not None:
        recipient = _RECIPIENT.search(text, begin, head.end())
        tool = meant_tool(recipient[1], offered) if recipient else None
        if tool is None and head[1].strip() == "final":
            answer = text[head.end() :]  # the last message, whatever marks it speaks of
            break
        begin = head.end()
        head = _HEAD.search(text, begin if tool is None else _end_of_object(text, begin))
        content = _content(text[begin : head.start() if head else None])
        if tool is None:
            thought.append(content)
        else:
            calls.append((tool, content))
        begin = head.start() if head else begin
    return _content(answer), "\n".join(filter(None, thought)), calls


def _end_of_object(text: str, at: int) -> int:
    """The end of the JSON object at `at`, which may hold marks; `at` if there is none."""
    begin = text.find("{", at)
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, begin)[1] if begin >= 0 and not text[at:begin].strip() else at
    return at


def _content(text: str) -> str:
    """The content of a message, without the mark that ends it."""
    return _STOP_AT_END.sub("", text.strip()).strip()


def split_thinking(text: str, *, cut: bool) -> tuple[str, str]:
    """Split a reply into its text and its reasoning, both without surrounding white space.

    Closed blocks are reasoning wherever they are. An unclosed block is reasoning if the reply begins with it or was
    `cut` by the length limit; else its tag is part of the text. A closing tag alone ends reasoning whose opening tag
    was part of the prompt (as in some models' templates).
    """
    if CLOSE.search(text) is None and OPEN.search(text) is None:
        return text.strip(), ""
    answer: list[str] = []
    thought: list[str] = []
    opened, closed = OPEN.search(text), CLOSE.search(text)
    at = 0
    if closed and (opened is None or closed.start() < opened.start()):
        thought.append(text[: closed.start()])
        at = closed.end()
    while opened := OPEN.search(text, at):
        closed = CLOSE.search(text, opened.end())
        if closed is None:
            break
        answer.append(text[at : opened.start()])
        thought.append(text[opened.end() : closed.start()])
        at = closed.end()
    if opened and (cut or not "".join([*answer, text[at : opened.start()]]).strip()):
        answer.append(text[at : opened.start()])
        thought.append(text[opened.end() :])
    else:
        answer.append(text[at:])
    return "".join(answer).strip(), "\n".join(part.strip() for part in thought if part.strip())
