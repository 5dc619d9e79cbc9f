"""Facts of an organisation that sentences of prompts rest on, and the choice of the sentences that are true.

In a template, a mark in braces after a sentence names the facts that make it true, as in ``You lead. {leads, group}``;
``!`` negates. A sentence whose facts don't hold is left out, with its line if nothing else stands there. A text without
a mark is always shown, so prompts of users need none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

FACTS: Final = {
    "always": "true in every run",
    "alone": "the organisation has one seat",
    "apart": "there are several seats, and none can read, tell or ask another",
    "teams": "several teams work one after the other",
    "group": "one team has several seats, which can reach each other",
    "merged": "each member writes a report, and a rule merges their findings",
    "pooled": "members who work at the same time share the pool's rest equally",
    "shares": "each seat has a given share of the pool",
    "budget": "the seat may know of the budget",
    "priced_tools": "a tool call has a price",
    "one_price": "all seats pay the same prices",
    "divided": "each seat holds a part of the data",
    "mates": "the seat has teammates, whom it can reach",
    "leads": "the seat plans for its team and gives its members their tasks",
    "led": "a teammate plans for the seat",
    "writes": "the seat writes its team's artifact, alone",
    "codes": "the seat's team runs code",
    "sees_reports": "the author sees the members' reports in its order, not in its own conversation",
    "last": "the seat's team writes the paper",
    "hands_on": "other teams work after the seat's team",
    "others": "there is somebody to think of: a teammate, or a later team",
    "unique": "no teammate has the seat's title",
    "several_phases": "the seat's team works in several phases",
    "also": "the seat's team writes further artifacts of a given form",
    "lead_works": "the lead has a task of its own in the phase",
    "beside": "several members work at the same time",
    "reads": "the seat may read the work of another who works in the phase",
    "talks": "members talk in the rest of the phase",
    "final": "the seat's team has no later phase",
    "write_next": "the rest of the phase ends with the team's artifact",
    "rounds": "the talk may have further rounds",
    "stated": "the seat has stated its team's findings in this phase",
}
"""What each mark says."""
GIVEN: Final = {
    "plan": "the phase has a plan",
    "request": "the phase answers another team's request",
    "artifacts": "artifacts stand in the order",
    "artifact_names": "the seat may read an artifact",
    "readers": "a team that the seat may tell has yet to start",
    "mail": "a message waits for the seat",
    "said": "something was said that the seat heard",
    "files": "files of earlier teams are in the sandbox",
}
"""Marks with the name of a value of the prompt: they hold if that value has a text."""

_NAMES = "|".join([*FACTS, *GIVEN])
_MARK = re.compile(rf" ?\{{(!?(?:{_NAMES})(?:, !?(?:{_NAMES}))*)\}}")


def marked(text: str) -> list[tuple[str, str]]:
    """The pieces of a line, each with its mark; the last one has none."""
    *pieces, rest = _MARK.split(text)
    return [*zip(pieces[::2], pieces[1::2], strict=True), (rest, "")]


@lru_cache(maxsize=4096)
def true_sentences(template: str, facts: frozenset[str]) -> str:
    """The sentences of a template that are true under `facts`, without marks."""
    lines = []
    for line in template.split("\n"):
        pieces = marked(line)
        kept = "".join(text for text, mark in pieces if holds(mark, facts))
        if len(pieces) == 1 or kept.strip():
            lines.append(kept.lstrip() if len(pieces) > 1 and not line.startswith(kept) else kept)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def holds(mark: str, facts: frozenset[str]) -> bool:
    """Whether all facts of a mark hold; an empty mark does."""
    return all((name.lstrip("!") in facts) != name.startswith("!") for name in mark.split(", ") if name)


ALWAYS: Final = frozenset({"always"})
