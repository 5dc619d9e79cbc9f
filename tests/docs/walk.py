"""Walks through a page as its reader would: in an empty folder, block by block, with a real shell.

Models named ``openai:…`` are asked over HTTP from the server of `tests.docs.everyone`; addresses of servers and
databases on pages are replaced by those that there are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.docs.forge import write_stand_ins
from tests.docs.pages import SHELL, Block
from tests.support.plugins import ROOT

NO_ENGINE = "unix:///no/engine"
LONGEST = 300
"""Seconds that a block may take on a busy machine; a page that needs as much is too slow anyway."""
_MODEL_SERVER = re.compile(r"http://127\.0\.0\.1:(?:8000|8080|11434)/v1")
_DATABASE = re.compile(r"postgresql://\w+@db\.example\.org/\w+")


def names_database(blocks: Iterable[Block]) -> bool:
    """Tell whether a page names the address of a database."""
    return any(_DATABASE.search(text) for block in blocks for text in (block.text, *block.first))


@dataclass(frozen=True)
class Done:
    """One command of a page that was executed.

    Attributes
    ----------
    missing
        Lines that the page shows and that were not printed, or not in this order.
    """

    block: Block
    command: str
    code: int
    printed: str
    missing: tuple[str, ...] = ()

    @property
    def crashed(self) -> bool:
        """Whether Python gave up with an exception that nobody handled."""
        return "Traceback (most recent call last)" in self.printed

    def __str__(self) -> str:
        missing = "".join(f"\nThe page shows, and it did not print: {line}" for line in self.missing)
        return (
            f"{self.block}\n{self.command}\nended with exit code {self.code} and printed:\n"
            f"{self.printed[-4000:].strip()}{missing}"
        )


@dataclass(frozen=True)
class Walk:
    """One page's folder and what stands ready there.

    Attributes
    ----------
    address
        Of the process that commands are forked from.
    server, database
        What addresses on the page are replaced by.
    """

    folder: Path
    address: Path
    server: str
    database: str = ""

    def prepare(self) -> None:
        """Lay out what a checkout after ``make setup`` has, as far as pages use it."""
        for name in ("Makefile", "pyproject.toml", "langgraph.json", "requirements", "examples", "docs", "packages"):
            (self.folder / name).symlink_to(ROOT / name)
        binaries = self.folder / ".venv" / "bin"
        write_stand_ins(binaries, self.address)
        (binaries / "pip").symlink_to(ROOT / "tests" / "docs" / "pip_stand_in.py")
        for stamp in (".ready", ".develop"):
            (self.folder / ".venv" / stamp).touch()

    def through(self, blocks: Sequence[Block]) -> Iterator[Done]:
        """Execute a page: its files are written, then its commands are executed, then its Python as one script."""
        for block in blocks:
            if block.file:
                target = self.folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)  # it may be a link to the project's own file
                target.write_text(self._here(block.text), encoding="utf-8")
        for block in blocks:
            yield from self.commands(block)
        python = [block for block in blocks if block.language == "python" and block.is_run]
        if python:
            self._write_script(python)
            yield self.shell("python page.py", python[0])

    def commands(self, block: Block) -> Iterator[Done]:
        """Execute the commands of a block, and those that its comments want before."""
        for command in block.first:
            yield self.shell(command, block)
        if block.language == "console" and block.is_run:
            for command, shown in block.commands:
                done = self.shell(command, block)
                yield replace(done, missing=_missing(shown, done.printed, block.exactly))
        elif block.language in SHELL and block.is_run:
            yield self.shell(block.text, block)

    def shell(self, script: str, block: Block) -> Done:
        """Execute a script of a block."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._here(script)],
            cwd=self.folder, env=self._environment(block), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LONGEST, check=False,
        )  # fmt: skip
        return Done(block, script.strip(), done.returncode, done.stdout)

    def _write_script(self, blocks: Iterable[Block]) -> None:
        """Write Python in the lines in which it stands on its page, so that a traceback names those."""
        lines: list[str] = []
        for block in blocks:
            lines += [""] * (block.line - len(lines))
            lines += self._here(block.text).splitlines()
        (self.folder / "page.py").write_text("\n".join(lines), encoding="utf-8")

    def _here(self, text: str) -> str:
        return _DATABASE.sub(self.database, _MODEL_SERVER.sub(self.server, text))

    def _environment(self, block: Block) -> Mapping[str, str]:
        ours = re.compile(r"(?:OPENAI|LANGSMITH|LANGCHAIN|LABMATES|VIRTUAL_ENV).*|.*_PROXY", re.IGNORECASE)
        clean = {name: value for name, value in os.environ.items() if not ours.fullmatch(name)}
        # Containers take most of the time of a short run: only what is about them has any.
        engine = {} if "labmates sandbox" in block.text else {"DOCKER_HOST": NO_ENGINE}
        bin_ = self.folder / ".venv" / "bin"
        return {
            **clean,
            **engine,
            "PATH": os.pathsep.join([str(bin_), str(Path(sys.executable).parent), clean["PATH"]]),
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.address.parent / "cache"),  # made once per machine, not once per page
            "PYTHONPATH": os.pathsep.join([str(self.folder / "installed"), str(ROOT)]),
            "OPENAI_BASE_URL": self.server,
            "OPENAI_API_KEY": "none",
            "LANGSMITH_TRACING": "false",
            "NO_PROXY": "127.0.0.1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:xdist",
        }


def _missing(shown: Sequence[str], printed: str, exactly: bool) -> tuple[str, ...]:
    """Return the lines of a page that were not printed, in order and up to numbers.

    ``…`` stands for any lines, and at the end of a line for its rest.
    """
    shape = _spaced if exactly else _shape
    lines = [shape(line) for line in printed.splitlines()]
    missing: list[str] = []
    for text in shown:
        line = shape(text)
        if not line or line == "…":
            continue
        found = next((number for number, one in enumerate(lines) if _is_like(one, line)), None)
        if found is None:
            missing.append(text)
        else:
            del lines[: found + 1]
    return tuple(missing)


def _is_like(printed: str, line: str) -> bool:
    return printed == line or (line[-1] == "…" and printed.startswith(line[:-1].rstrip()))


def _shape(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{10}\b", "ID", line)
    return _spaced(re.sub(r"-?\d[\d.,]*", "0", line))


def _spaced(line: str) -> str:
    return " ".join(line.split())
