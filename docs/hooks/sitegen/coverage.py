"""The page on what of the papers can be repeated, made of ``docs/reproduction/coverage.yaml``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

FOLDER = Path(__file__).parents[2] / "reproduction"
PAGE = FOLDER / "coverage.md"


class Element(BaseModel):
    """One element of a paper; `shows` is a text that its commands (joined by ``&&``) print."""

    model_config = ConfigDict(extra="forbid")

    element: str
    state: Literal["works", "differs", "out of reach"]
    command: str = ""
    code: Literal[0, 2] = 0
    shows: str = ""
    reason: str = ""

    @model_validator(mode="after")
    def _says_why(self) -> Element:
        if self.state != "works" and not self.reason:
            raise ValueError(f"'{self.element}' {self.state}: a reason is missing")
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
    return TypeAdapter(list[Paper]).validate_python(yaml.safe_load((FOLDER / "coverage.yaml").read_text("utf-8")))


def coverage_page() -> str:
    """The Markdown of the page."""
    parts = [
        "# Coverage of the papers",
        "Each element of the papers with the command that repeats it. Commands that analyse use the runs of a store. "
        "This page is generated from `docs/reproduction/coverage.yaml` by `python docs/hooks/sitegen/coverage.py`.",
        "\n".join(
            ["| paper | works | differs | out of reach |", "| --- | --- | --- | --- |", *map(_summary, papers())]
        ),
    ]
    for paper in papers():
        rows = ["| element | | command | |", "| --- | --- | --- | --- |"]
        rows += [f"| {one.element} | {one.state} | {_code(one.command)} | {one.reason} |" for one in paper.elements]
        parts += [f"## {paper.paper}", f"[More]({paper.page})", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _summary(paper: Paper) -> str:
    counts = Counter(one.state for one in paper.elements)
    return f"| {paper.paper} | {counts['works']} | {counts['differs']} | {counts['out of reach']} |"


def _code(command: str) -> str:
    return f"`{command}`" if command else ""


if __name__ == "__main__":
    PAGE.write_text(coverage_page(), "utf-8")
