"""Marks that servers leave in replies: reasoning and channels within the text, and names of tools with more around.

Models write reasoning and calls between marks of their own, which a server should turn into fields of its protocol.
Servers without the right parser leave them where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress

_TAG = r"(?:seed:|longcat_)?think(?:ing)?|thought"
_OPENED = rf"<(?:{_TAG})>|\[THINK\]|<\|START_THINKING\|>|<\|begin_of_thought\|>|◁think▷"
_CLOSED = rf"</(?:{_TAG})>|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>|◁/think▷"
_UNQUOTED = rf"(?!(?<=([`'\"]))(?:{_OPENED}|{_CLOSED})\1)"  # who quotes a mark writes about it
OPEN = re.compile(f"{_UNQUOTED}(?:{_OPENED})", re.IGNORECASE)
CLOSE = re.compile(f"{_UNQUOTED}(?:{_CLOSED})", re.IGNORECASE)

_MESSAGE = "<|message|>"
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


def split_channels(text: str, offered: Collection[str]) -> tuple[str, str, list[tuple[str, str]]]:
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
    answer, thought, calls = "", list[str](), list[tuple[str, str]]()
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
