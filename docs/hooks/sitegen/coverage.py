"""The page on what of the papers can be repeated, made of ``docs/reproduction/coverage.yaml``."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

DATA = Path(__file__).parents[2] / "reproduction" / "coverage.yaml"
_PROMPTS = " && labmates show last --prompts --full"


class Element(BaseModel):
    """One element of a paper; `shows` is a text that its commands (joined by ``&&``) print."""

    model_config = ConfigDict(extra="forbid")

    element: str
    state: Literal["works", "differs", "out of reach"]
    command: str = ""
    code: Literal[0, 2] = 0
    shows: str = ""
    reason: str = ""

    @property
    def executed(self) -> str:
        """The command as tests execute it, with the options in brackets, which make it small."""
        return self.command.replace("[", "").replace("]", "")

    @property
    def shown(self) -> str:
        """The command as the page shows it."""
        return re.sub(r" \[[^]]*\]", "", self.command).replace(_PROMPTS, " …")

    @model_validator(mode="after")
    def _says_why(self) -> Element:
        if self.state != "works" and not self.reason:
            raise ValueError(f"'{self.element}' {self.state}: a reason is missing")
        if self.command and not self.shows:
            raise ValueError(f"'{self.element}': the text that its command prints is missing")
        if self.state == "works" and not (self.command or self.reason):
            raise ValueError(f"'{self.element}' works: a command is missing")
        return self


class Paper(BaseModel):
    """A paper with its elements, and the page that says more."""

    model_config = ConfigDict(extra="forbid")

    paper: str
    page: str
    elements: list[Element]


def papers() -> list[Paper]:
    """The data file."""
    return TypeAdapter(list[Paper]).validate_python(yaml.safe_load(DATA.read_text("utf-8")))


def coverage_page() -> str:
    """The Markdown of the page."""
    parts = [
        "# Coverage of the papers",
        "**Proof**: a test runs every command on a store with small runs, and looks for a text of the element in what "
        "it prints; help texts prove nothing. An element without a command has no proof. Commands that analyse need "
        "runs in the store. **Bold**: differs from the paper. "
        f"…: `{_PROMPTS.strip()}`.",
    ]
    for paper in papers():
        parts += [f"## {paper.paper}", _summary(paper), "\n".join(_lines(paper))]
    return "\n\n".join(parts) + "\n"


def _summary(paper: Paper) -> str:
    counts = Counter(one.state for one in paper.elements)
    said = f"{counts['works']} work, {counts['differs']} differ, {counts['out of reach']} are out of reach."
    return f"{said} [More]({paper.page})"


def _lines(paper: Paper) -> list[str]:
    """One line for each command with all that it repeats, then what needs none, then what is out of reach."""
    cells: dict[str, list[str]] = {}
    for one in sorted(paper.elements, key=lambda one: (one.state == "out of reach", not one.command)):
        first = f"`{one.shown}`" if one.command else "Out of reach" if one.state == "out of reach" else "Also"
        name = f"**{one.element}**" if one.state == "differs" else one.element
        cells.setdefault(first, []).append(f"{name}: {one.reason}" if one.reason else name)
    return [f"- {first}: {'; '.join(names)}" for first, names in cells.items()]
