"""The code on the pages of documentation, and what their comments ask for.

An HTML comment right above a block says what is special about it; readers of the site don't see it, readers of the
source do:

``<!-- not run: REASON -->``
    The block is not executed. Every such block stands in a list in the tests too.
``<!-- instead: OLD => NEW -->``
    A part of the block is replaced before it is executed, as a rule to make it smaller.
``<!-- first: COMMAND -->``
    Something else is executed before it, in the same folder.
``<!-- exactly: WHY -->``
    The output that is shown is compared with all its numbers, which else only have to be numbers.
``<!-- file: NAME -->``
    The block is the file of this name, and is written before anything on the page is executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.plugins import ROOT

SHELL = ("sh", "bash", "console")
LANGUAGES = (*SHELL, "python", "yaml", "json", "toml", "text", "")

_BLOCK = re.compile(
    r"(?P<notes>(?:^ *<!--(?:(?!-->).)*-->\n+)*)"
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_NOTE = re.compile(r"<!--\s*(not run|instead|first|exactly|file):\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of code.

    Attributes
    ----------
    line
        Of the page, where it begins.
    shown
        What readers see.
    text
        What is executed.
    not_run
        Why it is not executed, or empty.
    first
        Commands to execute before.
    exactly
        Whether the numbers of its output are compared too.
    file
        The name under which it is written, or empty.
    """

    page: str
    line: int
    language: str
    shown: str
    text: str
    not_run: str = ""
    first: tuple[str, ...] = ()
    exactly: bool = False
    file: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether it is executed: it is no file, and no comment says otherwise."""
        return not (self.file or self.not_run)

    @property
    def is_command(self) -> bool:
        """Whether it is executed and is for the shell or for Python."""
        return self.is_run and self.language in (*SHELL, "python")

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """Of a ``console`` block, each command with the lines of output that are shown for it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (f"{found[-1][0]}\n{line.removeprefix('> ')}", [])
            elif found:
                found[-1][1].append(line)
        return found


def pages() -> list[Path]:
    """Return README and every page of the documentation, those of all packages among them."""
    packages = [*ROOT.glob("packages/*/README.md"), *ROOT.glob("packages/*/docs/**/*.md")]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(packages)]


def name_of(page: Path) -> str:
    """Return how a page is called in tests."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    """Return the blocks of a page in order.

    Raises
    ------
    ValueError
        If a comment says something that does not hold, for instance a replacement of what is not there.
    """
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text[: found.start("indent")].count("\n") + 1
        shown = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        block = Block(name_of(page), line, found["language"], shown, shown)
        if block.language not in LANGUAGES:
            raise ValueError(f"{block}: '{block.language}' is none of the languages of our pages")
        for kind, said in _NOTE.findall(found["notes"]):
            block = _noted(block, kind, said)
        yield block


def _noted(block: Block, kind: str, said: str) -> Block:
    match kind:
        case "not run":
            return replace(block, not_run=said)
        case "first":
            return replace(block, first=(*block.first, said))
        case "exactly":
            return replace(block, exactly=True)
        case "file":
            return replace(block, file=said)
    old, arrow, new = said.partition(" => ")
    if not arrow or old not in block.text:
        raise ValueError(f"{block}: the comment replaces '{old}', which is not in the block")
    return replace(block, text=block.text.replace(old, new))
