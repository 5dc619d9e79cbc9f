"""The baseline ``scripted:garbage``: malformed replies of every kind that servers and models send, and a few more.

It exists in a process that imports this module.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage

from labmates.budgets.tokens import text_of
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, DraftCall, Heard, ScriptedModel, call
from labmates.util.seeds import derive

KNOWN_TOOLS = ("run_code", "read_artifact", "mark_complete")
UNKNOWN_TOOLS = ("execute", "run_code ", "functions.run_code", "", "rm -rf /", "run_code" * 40, "запуск", "\x00")
BROKEN = (
    '{"code": "print(1)',
    "{'code': 'print(1)'}",
    '{"code": "print(1)",}',
    "null",
    "[1, 2]",
    '"print(1)"',
    "print(1)",
    "{} {}",
    "{",
    "\ud800",
    "[" * 100_000,
)
WRONG: tuple[object, ...] = (
    {"code": 5},
    {"code": None},
    {"code": ["print(1)"]},
    {"kode": "print(1)"},
    {"code": "print(1)", "language": "python"},
    {"name": {"name": "final_paper"}, "content": True},
    {"summary": ""},
    {"name": "../../etc/passwd", "content": "x"},
    {"name": "final_paper", "content": " "},
    {"to_team": "everyone", "content": "hello"},
    {"target_team": "writing", "request": "", "justification": ""},
    {"n": 10**40, "x": 1e308, "deep": json.loads("[" * 90 + "]" * 90)},
)
STRANGE = "\ud83d\udc00\x00\x1b[31mred\x1b[0m\x07\u202etxet\u2028\ufffe"
HTML = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
FAKE = '<tool_call>{"name": "run_code", "arguments": {"code": "print(df)"}}</tool_call>'
BLOCKS: tuple[list[str | dict[str, object]], ...] = (
    [],
    [{}],
    [{"type": "text", "text": None}],
    [{"type": "text"}, ""],
    [{"type": "thinking", "thinking": None}],
    [{"type": "text", "text": "half"}, {"type": "text", "text": "\udcff"}, "rest"],
    [{"type": "image_url", "image_url": {"url": "data:,"}}],
)


@dataclass(frozen=True)
class Spoilt(Draft):
    """A reply with what only a server can spoil: its blocks, the ids of its calls, and the reason of its end."""

    blocks: list[str | dict[str, object]] | None = None
    id: str | None = None
    finish: str | None = None


def spoilt(message: AIMessage, draft: Draft) -> AIMessage:
    """The message of a draft, spoilt where the draft says so."""
    if not isinstance(draft, Spoilt):
        return message
    content: Any = message.content if draft.blocks is None else draft.blocks
    calls = message.tool_calls if draft.id is None else [{**call, "id": draft.id} for call in message.tool_calls]
    is_cut = message.response_metadata["finish_reason"] == "length"
    finish = {"finish_reason": draft.finish} if draft.finish and not is_cut else {}
    metadata = {**message.response_metadata, **finish}
    return message.model_copy(update={"content": content, "tool_calls": calls, "response_metadata": metadata})


def _text(*options: str) -> Callable[[random.Random, Heard], Draft]:
    return lambda rng, _: Draft(rng.choice(options))


def _cut(rng: random.Random, _: Heard) -> Draft:
    return Spoilt("The analysis shows that the " + "most important " * rng.randrange(40), finish="length")


def _broken(rng: random.Random, heard: Heard) -> Draft:
    return Draft(calls=(DraftCall(_tool(rng, heard), rng.choice(BROKEN)),))


def _unknown(rng: random.Random, _: Heard) -> Draft:
    return Draft(calls=(DraftCall(rng.choice(UNKNOWN_TOOLS), "{}"),))


def _wrong(rng: random.Random, heard: Heard) -> Draft:
    return Draft(calls=(DraftCall(_tool(rng, heard), json.dumps(rng.choice(WRONG))),))


def _missing(rng: random.Random, heard: Heard) -> Draft:
    return Draft(calls=(DraftCall(_tool(rng, heard), rng.choice(("{}", ""))),))


def _huge(rng: random.Random, heard: Heard) -> Draft:
    return Draft(calls=(call(_tool(rng, heard), code="x = 1\n" * rng.randrange(500, 5_000), content="y" * 70_000),))


def _many(rng: random.Random, heard: Heard) -> Draft:
    number = rng.choice((2, 3, 50))
    return Draft(calls=tuple(call(_tool(rng, heard), name=f"artifact_{i}", code="1") for i in range(number)))


def _ids(rng: random.Random, heard: Heard) -> Draft:
    id_ = rng.choice(("", "same", "\x00", "i" * 5_000))
    return Spoilt(calls=(call(_tool(rng, heard)), call("list_artifacts")), id=id_)


def _strange(rng: random.Random, heard: Heard) -> Draft:
    text = "".join(rng.sample(STRANGE, len(STRANGE)))
    return Draft(text, (call(_tool(rng, heard), code=text),) if rng.random() < 0.5 else ())


def _repeated(rng: random.Random, _: Heard) -> Draft:
    return Draft(rng.choice(("the the ", "ha", "\n", "🙂", "| | ")) * rng.randrange(1_000, 8_000))


def _blocks(rng: random.Random, _: Heard) -> Draft:
    blocks = list(rng.choice(BLOCKS))
    return Spoilt(text_of(blocks), blocks=blocks)


def _filtered(rng: random.Random, _: Heard) -> Draft:
    return Spoilt(rng.choice(("", "I")), finish="content_filter")


def _valid(rng: random.Random, heard: Heard) -> Draft:
    options = (
        call("mark_complete", summary="Done, with 3 numbers: 1, 2, 3."),
        call("run_code", code="print(len(df))", description="count"),
        call("list_artifacts"),
        call("write_artifact", name="scraps", content="Nothing of note."),
    )
    available = [option for option in options if option.name in heard.tool_names()]
    return Draft(calls=(rng.choice(available),)) if available else Draft("A plain answer.")


def _tool(rng: random.Random, heard: Heard) -> str:
    return rng.choice(heard.tool_names() or KNOWN_TOOLS)


KINDS: dict[str, Callable[[random.Random, Heard], Draft]] = {
    "empty": _text(""),
    "white space": _text(" ", "\n\n\t", "\u200b", "\r\n"),
    "cut": _cut,
    "broken arguments": _broken,
    "unknown tool": _unknown,
    "wrong arguments": _wrong,
    "missing arguments": _missing,
    "huge arguments": _huge,
    "many calls": _many,
    "bad ids": _ids,
    "fake call": _text(FAKE, f"```json\n{FAKE}\n```", '{"name": "mark_complete", "parameters": {"summary": "done"}}'),
    "strange characters": _strange,
    "open thinking": _text("<think>Let me see", "<think>\n</think>", "</think>", "[THINK] and then? <think>"),
    "web page": _text(HTML, "<br>" * 50),
    "repetition": _repeated,
    "content blocks": _blocks,
    "refusal": _text("I'm sorry, but I can't help with that.", "As a language model I have no opinion."),
    "filtered": _filtered,
    "valid": _valid,
}
"""Kinds of replies by name."""


class Garbage(ScriptedModel):
    """Replies with one of `KINDS`, drawn from the seed and the length of the conversation."""

    baseline = "garbage"
    description = "Sends malformed replies of every kind, drawn from its seed, and now and then a valid one."

    def compose(self, heard: Heard) -> Draft:
        """A reply of a random kind."""
        rng = random.Random(derive(heard.seed, "garbage", len(heard.messages)))
        return KINDS[rng.choice(tuple(KINDS))](rng, heard)

    def reply(self, heard: Heard) -> AIMessage:
        """The reply, spoilt on its way."""
        return spoilt(super().reply(heard), self.compose(heard))


BASELINES.register("garbage", Garbage)
