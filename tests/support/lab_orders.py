"""Orders of the science lab read back out of their texts, for those who get nothing else.

A server gets texts alone, and tests write texts by hand. That what is read here out of the lab's own texts equals their
facts shows that the texts render these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from labmates.agents.transcript import text_of
from labmates.models.orders import Order, order_of
from labmates.workflows.science.lab.briefs import KIND

_STEPS = {"plan": "plan", "work": "work", "deliberation": "deliberate", "write the artifact": "write"}
_STATED = re.compile(
    r"^=== (\w+) team ===\n(?:(\{.*?\})\n)?(?:The same as the (\w+) team's: ([^\n]*)\.\n)?=== end",
    re.MULTILINE | re.DOTALL,
)
"""What a team stated, and which of its values the team after it repeated."""
_MEMBER = re.compile(r"^- (\w+): (.+)$", re.MULTILINE)
_SECTION = re.compile(r"^- (\S.*)$", re.MULTILINE)


def with_facts(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages, where those of the lab carry the facts that their texts tell."""
    return [message if order_of(message) else _with_facts(message) for message in messages]


def _with_facts(message: BaseMessage) -> BaseMessage:
    text = text_of(message)
    if isinstance(message, SystemMessage) and (facts := system_facts(text)):
        made = Order(KIND, facts, text).system()
    elif isinstance(message, HumanMessage) and (facts := order_facts(text)):
        made = Order(KIND, facts, text).human()
    else:
        return message
    return made.model_copy(update={"additional_kwargs": message.additional_kwargs})


def system_facts(text: str) -> dict[str, Any]:
    """Return what a system prompt tells; nothing of what is none."""
    who = re.search(r"^You are .*? of (?:the (\w+) team|this \w+)\b.*? \((\w+)\)\.$", text, re.MULTILINE)
    if who is None:
        return {}
    handed = re.findall(r"^- (?:(\w+) team: )?`(\w+)`(?:, which .*)?$", text, re.MULTILINE)
    facts: dict[str, Any] = {
        "brief": between(text, "## The project\n", "\n\n## What the final paper"),
        "findings": between(text, "as far as they can be found out:\n", "\n\n## Artifacts"),
        "agent": who[2],
        "handed": {name: team or "you" for team, name in handed},
    }
    if data := between(text, "## The data set\n", "\n\n## Your"):
        facts["data"] = data
    if who[1]:
        facts |= {"team": who[1], "parts": dict(_MEMBER.findall(between(text, "## Your team\n", "\n\n## ")))}
    return facts


def order_facts(text: str) -> dict[str, Any]:
    """Return what an order tells; nothing of what is none."""
    title = text.partition("\n")[0].removeprefix("# Step: ")
    step = next((step for begin, step in _STEPS.items() if title.startswith(begin)), None)
    if step is None or not text.startswith("# Step: "):
        return {}
    facts: dict[str, Any] = {"step": step}
    if tools := _first(r"^Tools in this step: (.+)\.$", text):
        told = tools.removeprefix("all but ")
        names = [] if told == "all" else told.split(", ")
        facts["lacking" if told != tools or not names else "tools"] = names
    request = _first(r"^The .* team asks your team .*:\n> (.*)$", text)
    if step == "work":
        facts["request"] = request
    if step in ("plan", "work"):
        facts |= {"so_far": _said(between(text, "## From the phases before\n", "\n\n"))}
    if step == "plan" and (listed := text.rpartition("for exactly these members:")[2]) != text:
        facts["members"] = dict(_MEMBER.findall(listed))
    if step == "work":
        facts["turns"] = int(_first(r"at most (\d+) replies", text) or 8)
        if also := between(text, "in Markdown with these sections", "\n\nWhen "):
            pieces = re.split(r"^`(\w+)`$", also, flags=re.MULTILINE)
            facts["artifact"] = _first(r"Next you write `(\w+)`", text)
            facts["also"] = {n: _SECTION.findall(t) for n, t in zip(pieces[1::2], pieces[2::2], strict=True)}
        else:
            if not request:
                facts["task"] = _first(r"^Your task: (.*)$", text)
                facts["artifact"] = _first(r"mark_complete with .* `(\w+)` ", text)
            if readable := re.findall(r"`(\w+)`", between(text, "Artifacts that you can read:", "\n")):
                facts["readable"] = readable
            if readers := between(text, "Teams that can still read a message from you:", "\n").strip():
                facts["readers"] = readers.split(", ")
            if "## Artifacts of others" in text:
                facts["material"] = shown_artifacts(between(text, "\n## Artifacts of others", "\n\nArtifacts that you"))
    if step == "deliberate":
        said = text.rpartition("Said s")[2].partition("\n")[2].partition("\n\n")[0] if "Said s" in text else ""
        facts |= {"round": int(_first(r"round (\d+)", text) or 1), **({"said": _said(said)} if said else {})}
        facts["artifact"] = _first(r"`(\w+)`", text.partition("\n\n")[0])
        ends = ("\n\nWhat your code printed:", "\n\nSaid so far:", "\n\nNo tool")
        if reported := between(text, "What you reported: ", *ends):
            facts |= {"task": _first(r"^Your task was: (.*)$", text), "reported": reported}
    if step == "write":
        listed = between(text, "Use Markdown with these sections:", "## Material")
        facts |= {"artifact": _first(r"`(\w+)`", title), "sections": _SECTION.findall(listed.partition("\n\n")[0])}
        if "`findings`" in listed:
            facts["block"] = "findings"
        facts |= {"request": request, "stated": stated_in(text)}
        if "## Material" in text:
            facts["reports"] = {}
            for name, part in split_parts(
                between(text, "## Material: what the members", "\n\n## Material: ", "\n\n## Findings", "\n\nBudget:")
            ).items():
                reported, _, printed = part.removeprefix("Reported: ").partition("\nPrinted:\n")
                facts["reports"][name] = {"reported": reported, **({"printed": printed} if printed else {})}
            if "## Material: artifacts" in text:
                shown = between(text, "\n## Material: artifacts", "\nBudget:", "\n\nLength limit:")
                facts["material"] = shown_artifacts(shown)
    return facts


def shown_artifacts(text: str) -> dict[str, str]:
    """Return the artifacts that a text shows, by name."""
    return {n: re.sub(rf"\n=== end of {n} ===[^=]*$", "", part) for n, part in split_parts(text).items()}


def split_parts(text: str) -> dict[str, str]:
    """Return the parts of a text that are headed ``=== name ===``."""
    pieces = re.split(r"^=== (\w+) ===$", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))


def _said(text: str) -> list[list[str]]:
    pieces = re.split(r"^\[(\w+)\]: ", text, flags=re.MULTILINE)
    return [[who, said.rstrip("\n")] for who, said in zip(pieces[1::2], pieces[2::2], strict=True)]


def stated_in(text: str) -> dict[str, Any]:
    """Return the findings that a text shows, by team."""
    shown = between(text, "## Findings stated so far\n", "\n\n## ")
    stated: dict[str, Any] = {}
    for team, values, other, names in reversed(_STATED.findall(shown)):
        try:
            own = json.loads(values or "{}")
        except ValueError:
            continue
        theirs = stated.get(other, {})
        stated[team] = own | {name: theirs[name] for name in names.split(", ") if name in theirs}
    return stated


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def between(text: str, start: str, *ends: str) -> str:
    """The part of `text` after `start` and before the first of the `ends`; empty without `start`."""
    _, separator, rest = text.partition(start)
    if not separator:
        return ""
    return rest[: min((at for end in ends if (at := rest.find(end)) >= 0), default=len(rest))].strip("\n")
