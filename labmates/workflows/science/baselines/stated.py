"""Findings as baselines handle them: the fields of the task, blocks in texts, and sentences about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

Block = dict[str, Any]
"""Findings by names of the task's fields."""

MOST_ITEMS = 12
MOST_CHARS = 260
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_UNTOLD = ("#", "|", "RESULT", "Budget:", "Traceback", "stopped:", "===", "[")


def read_fields(listed: str) -> dict[str, str]:
    """The fields of the findings with their descriptions, from a list with one field per line."""
    return dict(re.findall(r"^- (\w+) \(.+?\): (.*)$", listed, re.MULTILINE))


def find_block(text: str) -> Block:
    """The last readable findings block in `text`, else an empty one."""
    for body in reversed(re.findall(r"```findings\s*\n(.*?)\n\s*```", text, re.DOTALL)):
        try:
            block = json.loads(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(block, dict):
            return block
    return {}


def show_block(block: Block) -> str:
    """The block in the format of a report."""
    return f"```findings\n{json.dumps(block, ensure_ascii=False)}\n```"


def merge(ranked: Iterable[Mapping[str, Any]]) -> Block:
    """The union of mappings; the first value of a key counts."""
    merged: Block = {}
    for mapping in ranked:
        for key, value in mapping.items():
            merged.setdefault(key, value)
    return merged


def sentences(block: Block, fields: Mapping[str, str]) -> list[str]:
    """A sentence about each finding, which begins with the words of its field's description."""
    return [f"{_subject(about)}: {_shown(block[name])}." for name, about in fields.items() if name in block]


def _subject(about: str) -> str:
    words = re.split(r"[;:(]|, ", about)[0].strip()
    return f"{words[:1].upper()}{words[1:]}"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items() if part not in ([], None))
    if not isinstance(value, list):
        return value if isinstance(value, str) else json.dumps(value)
    mark = "; " if any(isinstance(item, Mapping) for item in value) else ", "
    more = [f"and {len(value) - MOST_ITEMS} more"] if len(value) > MOST_ITEMS else []
    return mark.join([*map(_shown, value[:MOST_ITEMS]), *more]) or "none"


def telling_lines(text: str, most: int) -> list[str]:
    """The first different lines and sentences with a number, without code, headings and lines for programs."""
    parts = re.split(r"\n|(?<=[a-z%).\d][.!?])\s+(?=[A-Z\d])", FENCE.sub("", text))
    lines = (part.strip().lstrip("-*> ") for part in parts if re.search(r"\d", part) and len(part) <= MOST_CHARS)
    return list(dict.fromkeys(line for line in lines if not line.startswith(_UNTOLD)))[:most]
