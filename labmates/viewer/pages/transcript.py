"""Transcripts: prompts and replies of agents, call by call, with the changes between prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from markupsafe import Markup
from starlette.datastructures import QueryParams

from labmates.errors import UsageError, unknown_name
from labmates.pages.links import Links
from labmates.pages.rendering import as_text, render
from labmates.records.bodies import StoredBodies, Value
from labmates.records.reading import RunReader
from labmates.viewer.event_items import SHORT_CHARS, Text, changes, cut_text, message_texts
from labmates.viewer.pages.run import head, page_number, pages_of

PER_PAGE: Final = 40
"""Calls on a page."""
MOST_LANES: Final = 6


@dataclass(frozen=True)
class Part:
    """A new or changed message of a prompt, or a reply."""

    name: str  # the message's role, after ``changed`` for a changed message
    texts: tuple[Text, ...] = ()  # empty for a changed message
    lines: tuple[tuple[str, str], ...] = ()  # the diff of a changed message, from `changes`


@dataclass(frozen=True)
class Turn:
    """A call of an agent."""

    number: int  # of the call's event
    agent: str
    team: str
    model: str
    lane: int  # index of the agent on the page
    seconds: float
    unchanged: int  # messages shared with the previous prompt and its reply
    left_out: int  # earlier messages that are missing in the prompt
    messages: tuple[Part, ...]  # new and changed messages
    reply: Part


def transcript(reader: RunReader, query: QueryParams, links: Links) -> Markup:
    """A page of the transcripts of one or several agents.

    Raises `UsageError` if an agent or the page is unknown, or there are too many agents.
    """
    calls = reader.rows("llm_call")
    agents = list(dict.fromkeys(_name(row) for row in calls))
    chosen = list(dict.fromkeys(query.getlist("agent"))) or agents[:1]
    for name in chosen:
        if name not in agents:
            raise unknown_name("agent", name[:100], agents)
    if len(chosen) > MOST_LANES:
        raise UsageError(f"{MOST_LANES} agents can be shown side by side; {len(chosen)} were chosen")
    mine = [row for row in calls if _name(row) in chosen]
    pages = pages_of(len(mine), PER_PAGE)
    page = page_number(query, pages)
    shown = mine[(page - 1) * PER_PAGE : page * PER_PAGE]
    return render(
        "transcript.html",
        agents=agents,
        chosen=chosen,
        page=page,
        pages=pages,
        total=len(mine),
        turns=list(_turns(reader, shown, _before(mine), chosen)),
        **head(reader, links, "transcript"),
    )


def pages_by_agent(reader: RunReader) -> dict[str, int]:
    """The number of pages of each agent's transcript."""
    numbers = Counter(map(_name, reader.rows("llm_call")))
    return {name: pages_of(number, PER_PAGE) for name, number in numbers.items()}


def _name(row: Any) -> str:
    return row.agent or row.team or "run"


def _before(rows: Sequence[Any]) -> dict[int, list[int]]:
    """By call, the messages of the previous prompt and reply of its agent, with the lab or with its own model."""
    latest: dict[tuple[str, str], list[int]] = {}
    earlier = {}
    for row in rows:
        talk = (_name(row), row.data["model"])
        earlier[row.seq] = latest.get(talk, [])
        latest[talk] = [*row.data["messages"], row.data["reply"]]
    return earlier


def _turns(
    reader: RunReader, rows: Sequence[Any], before: Mapping[int, list[int]], chosen: Sequence[str]
) -> Iterator[Turn]:
    bodies = reader.bodies
    for row in rows:
        messages, unchanged, left_out = _changes(before[row.seq], row.data["messages"], bodies)
        yield Turn(
            row.seq,
            row.agent,
            row.team,
            row.data["model"],
            chosen.index(_name(row)),
            max(0.0, row.at - reader.run.started),
            unchanged,
            left_out,
            tuple(messages),
            _message(bodies.get(row.data["reply"])),
        )


def _changes(before: Sequence[int], now: Sequence[int], bodies: StoredBodies) -> tuple[list[Part], int, int]:
    """The new and changed messages of a prompt, and the numbers of unchanged and missing ones."""
    parts: list[Part] = []
    unchanged = left_out = 0
    for how, old, old_end, new, new_end in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if how == "equal":
            unchanged += new_end - new
            continue
        paired = min(old_end - old, new_end - new)
        pairs = [(bodies.get(before[old + at]), bodies.get(now[new + at])) for at in range(paired)]
        parts += [
            _changed(was, message) if _role(was) == _role(message) else _message(message) for was, message in pairs
        ]
        parts += [_message(bodies.get(number)) for number in now[new + paired : new_end]]
        left_out += old_end - old - paired
    return parts, unchanged, left_out


def _changed(was: Value | None, message: Value | None) -> Part:
    texts = ["\n".join(text.body for text in message_texts(each)) for each in (was, message)]
    return Part(f"changed {_role(message)}", lines=tuple(changes(*texts)))


def _message(message: Value | None) -> Part:
    texts = (cut_text(text, SHORT_CHARS) for text in message_texts(message) if text.body.strip())
    return Part(_role(message), tuple(texts))


def _role(message: Value | None) -> str:
    return as_text(message.get("role", "message")) if isinstance(message, dict) else "message"
