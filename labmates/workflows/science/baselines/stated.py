"""Findings as baselines handle them: the fields of the task, blocks in texts, and sentences about them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

Block = dict[str, Any]
"""Findings by names of the task's fields."""

MOST_ITEMS = 12
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


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


def lines_with_numbers(text: str, most: int) -> list[str]:
    """The first sentences and lines of a text with a number, without code, headings and list marks."""
    prose = FENCE.sub("", text)
    lines: list[str] = []
    for raw in re.split(r"\n|(?<=[a-z%).\d][.!?])\s+(?=[A-Z\d])", prose):
        line = raw.strip().lstrip("-*> ").strip().removeprefix("Tests: ")
        if (
            25 <= len(line) <= 260
            and re.search(r"\d", line)
            and not line.startswith(("#", "|", "RESULT", "Budget:", "==="))
        ):
            lines.append(line if line.endswith((".", "!", "?")) else f"{line}.")
    return list(dict.fromkeys(lines))[:most]


def printed_lines(text: str, most: int) -> list[str]:
    """Lines with numbers in the output of code, without lines for programs."""
    keep = [line.strip() for line in text.splitlines() if re.search(r"\d", line)]
    lines = [ln for ln in keep if not ln.startswith(("RESULT", "Budget:", "Traceback", "stopped:", "===", "[cut"))]
    return list(dict.fromkeys(lines))[:most]
