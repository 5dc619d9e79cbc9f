"""Baselines that do diligent work and waste: useless calls, or replies beyond the limit.

``scripted:wasteful`` and ``scripted:talkative`` exist in a process that imports this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from labmates.budgets.tokens import estimate_tokens
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, DraftCall, Heard, call, call_tokens
from labmates.workflows.science.baselines.diligent import (
    NO_LIMIT,
    Diligent,
    closing_draft,
    contribution,
    moves,
    plan_text,
    work_draft,
    write_draft,
)
from labmates.workflows.science.baselines.prompt import Step, read_step
from labmates.workflows.science.baselines.working import REQUESTS

PRINT_ALL = "print(df.to_string())"
RAMBLE = (
    "Let me say this once more in other words, since it can't be said too often: what matters here is that everything "
    "that matters is taken into account, and that nothing that might matter is left out before it has been looked at.",
    "Before going on, it is worth pausing to go through the whole matter again from the start, step by step, so that "
    "all of us agree on what we already know, what we have known for a while, and what we knew before that.",
    "On the one hand there is much to be said for looking at all of the data again; on the other hand there is as "
    "much to be said for it there too, and so, weighing both, looking at all of the data again is what I suggest.",
)
MOST_RAMBLE_TOKENS = 1_500
FIRST_RESULTS = 3
"""Replies until the first results exist: later output is cut in the lead's excerpt."""
TALK_TOKENS = 500
"""Words around a plan, a contribution and the calls of a step of work; halved after each remark."""
PARAGRAPH_TOKENS = 350
"""Words added to each section of an artifact."""
_ARRIVED = re.compile(r"a partial version of (\d+) characters")


class Wasteful(Diligent):
    """A `Diligent` agent that ignores the pool and wastes as much as fits into each reply."""

    baseline = "wasteful"
    description = "Burns the pool: long-winded, prints whole tables, repeats its reading and writing, asks for redos."

    def compose(self, heard: Heard) -> Draft:
        """The diligent move with as much waste as the limit allows."""
        step = replace(read_step(heard.messages), hurry="none")
        limit = heard.max_tokens or NO_LIMIT
        match step.kind:
            case "plan":
                return Draft(padded(plan_text(step, 1), limit, before=True))
            case "deliberate":
                return Draft(padded(contribution(step, 2), limit))
            case "write":
                return self._write(step, heard, limit)
            case "work":
                return self._work(step, heard, limit)
            case _:
                return super().compose(heard)

    def _work(self, step: Step, heard: Heard, limit: int) -> Draft:
        last = step.turns - step.replies <= 1
        calls = () if last else moves(step, heard)
        if not calls and not last:
            calls = tuple(_requests(step, heard.tool_names()))
        closing = not calls
        if closing:
            calls = closing_draft(step, heard).calls
        # Waste after the closing call would not run.
        used = sum(call_tokens(made.name, made.arguments) for made in calls)
        for extra in _waste(step, heard.tool_names()):
            used += call_tokens(extra.name, extra.arguments)
            if used > limit:
                break
            calls = (extra, *calls) if closing else (*calls, extra)
        return Draft(calls=calls)

    def _write(self, step: Step, heard: Heard, limit: int) -> Draft:
        room = max(limit // 2, limit - MOST_RAMBLE_TOKENS)
        draft = write_draft(step, replace(heard, max_tokens=room))
        return replace(draft, content=padded(str(draft.content), limit - room)) if draft.calls else draft


def padded(text: str, limit: int, *, before: bool = False) -> str:
    """A text with as many idle paragraphs as the limit allows, up to `MOST_RAMBLE_TOKENS`."""
    room = min(limit - estimate_tokens(text) - 8, MOST_RAMBLE_TOKENS)
    idle: list[str] = []
    while (room := room - estimate_tokens(paragraph := RAMBLE[len(idle) % len(RAMBLE)]) - 4) > 0:
        idle.append(paragraph)
    return "\n\n".join(part for part in ([*idle, text] if before else [text, *idle]) if part)


def _waste(step: Step, held: tuple[str, ...]) -> Iterator[DraftCall]:
    """Useless calls: the whole table, all artifacts again, the same notes again."""
    if "run_code" in held and step.replies >= FIRST_RESULTS:
        yield call("run_code", code=PRINT_ALL, description="look at everything")
    if "list_artifacts" in held:
        yield call("list_artifacts")
    if "read_artifact" in held:
        for name, team in step.owners.items():
            if team != step.team and f"`{name}`" in step.order:
                yield call("read_artifact", name=name)
    if "write_artifact" in held:
        yield call("write_artifact", name=f"notes_of_{step.agent or 'a_member'}", content=padded("Notes.", 400))


def _requests(step: Step, held: tuple[str, ...]) -> Iterator[DraftCall]:
    """A lead's requests at the end of its work: additions by the first team, a redo by the last."""
    teams = list(step.owners.values())
    earlier = teams[: teams.index(step.team)] if step.team in teams else []
    if not step.leads or not earlier or any(use.name in REQUESTS for use in step.uses):
        return
    if REQUESTS[0] in held:
        yield call(REQUESTS[0], target_team=earlier[0], request="Please look at everything again and tell us more.")
    if REQUESTS[1] in held:
        why = "We would feel better if it had been done twice."
        yield call(REQUESTS[1], target_team=earlier[-1], request="Please do all of it again.", justification=why)


class Talkative(Diligent):
    """A `Diligent` agent with many more words, regardless of limits and pool; it continues cut artifacts."""

    baseline = "talkative"
    description = "Diligent in many words: its artifacts are cut at the limit of a reply, and it continues them."

    def compose(self, heard: Heard) -> Draft:
        """The diligent move with too many words."""
        step = replace(read_step(heard.messages), hurry="none")
        talk = TALK_TOKENS >> len(step.remarks)
        match step.kind:
            case "plan":
                return Draft(_with_talk(plan_text(step, 8), talk, before=True))
            case "deliberate":
                return Draft(_with_talk(contribution(step, 8), talk))
            case "write":
                return _write(step, heard)
            case "work":
                return self._talk_at_work(step, heard, talk)
            case _:
                return super().compose(heard)

    def _talk_at_work(self, step: Step, heard: Heard, talk: int) -> Draft:
        if heard.max_tokens is None or heard.max_tokens < 2 * talk:
            return work_draft(step, heard)
        draft = work_draft(step, replace(heard, max_tokens=heard.max_tokens - talk))
        return draft if draft.content else replace(draft, content=padded("", talk))


def _write(step: Step, heard: Heard) -> Draft:
    """The whole artifact at any length; for a cut one, the rest after the accepted text."""
    draft = write_draft(step, replace(heard, max_tokens=None))
    return replace(draft, calls=tuple(_longer(made, step, heard) for made in draft.calls))


def _longer(made: DraftCall, step: Step, heard: Heard) -> DraftCall:
    if made.name != "write_artifact":
        return made
    arguments = json.loads(made.arguments)
    text = "\n\n## ".join(_long_section(part) for part in str(arguments["content"]).split("\n\n## "))
    arrived = _ARRIVED.search(step.order) if "append_artifact" in heard.tool_names() else None
    if arrived and (rest := text[int(arrived[1]) :]):
        return call("append_artifact", name=arguments["name"], content=rest)
    return call("write_artifact", **{**arguments, "content": text})


def _long_section(text: str) -> str:
    """A section with padding before its fenced block, or at its end."""
    prose, fence, block = text.partition("\n\n```")
    return f"{_with_talk(prose, PARAGRAPH_TOKENS)}{fence}{block}"


def _with_talk(text: str, tokens: int, *, before: bool = False) -> str:
    """A text with about `tokens` tokens of padding after it, or before it."""
    return padded(text, estimate_tokens(text) + tokens, before=before)


BASELINES.register("wasteful", Wasteful)
BASELINES.register("talkative", Talkative)
