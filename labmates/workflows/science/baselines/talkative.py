"""The baseline that finds no end: diligent work in replies that are longer than their limit."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from labmates.budgets.tokens import estimate_tokens
from labmates.models.scripted.base import Draft, DraftCall, Heard, call
from labmates.workflows.science.baselines.diligent import Diligent, contribution, plan_text, write_draft
from labmates.workflows.science.baselines.prompt import Step, read_step
from labmates.workflows.science.baselines.wasteful import padded

TALK_TOKENS = 500
"""What it says around a plan, a contribution and the calls of a step of work; half of it after each remark on that."""
PARAGRAPH_TOKENS = 350
"""What it adds to each section of an artifact."""
_ARRIVED = re.compile(r"a partial version of (\d+) characters")


class Talkative(Diligent):
    """Works as `Diligent` does with many words more, whatever the limit of a reply and the pool are.

    Where an artifact was cut off, it goes on from that place.
    """

    baseline = "talkative"
    description = "Diligent in many words: its artifacts are cut at the limit of a reply, and it continues them."

    def compose(self, heard: Heard) -> Draft:
        """The diligent move with more words than requested."""
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
            return self.work(step, heard)
        draft = self.work(step, replace(heard, max_tokens=heard.max_tokens - talk))
        return draft if draft.content else replace(draft, content=padded("", talk))


def _write(step: Step, heard: Heard) -> Draft:
    """The whole artifact at any length; of a truncated one, the part after the accepted text."""
    draft = write_draft(step, replace(heard, max_tokens=None))
    return replace(draft, calls=tuple(_longer(one, step, heard) for one in draft.calls))


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
    """A section with idle words before its fenced block, or at its end."""
    prose, fence, block = text.partition("\n\n```")
    return f"{_with_talk(prose, PARAGRAPH_TOKENS)}{fence}{block}"


def _with_talk(text: str, tokens: int, *, before: bool = False) -> str:
    """A text with about so many tokens of idle words after it, or before it."""
    return padded(text, estimate_tokens(text) + tokens, before=before)
