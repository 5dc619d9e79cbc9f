"""Walks through a page as its reader would: in an empty folder, block by block, with a real shell.

Models named ``openai:…`` are asked over HTTP from the server of `tests.docs.everyone`; addresses of servers and
databases on pages are replaced by those that there are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.forge import write_stand_ins
from tests.docs.pages import SHELL, Block
from tests.support.plugins import ROOT

NO_ENGINE = "unix:///no/engine"
LONGEST = 300
"""Seconds that a block may take on a busy machine; a page that needs as much is too slow anyway."""
_MODEL_SERVER = re.compile(r"http://127\.0\.0\.1:(?:8000|8080|11434)/v1")
_DATABASE = re.compile(r"postgresql://\w+@db\.example\.org/\w+")


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
    database: str

    def prepare(self) -> None:
        """Lay out what a checkout after ``make setup`` has, as far as pages use it."""
        for name in ("Makefile", "pyproject.toml", "langgraph.json", "requirements", "examples", "docs"):
            (self.folder / name).symlink_to(ROOT / name)
        binaries = self.folder / ".venv" / "bin"
        write_stand_ins(binaries, self.address)
        (binaries / "pip").symlink_to(ROOT / "tests" / "docs" / "pip_stand_in.py")
        for stamp in (".ready", ".develop"):
            (self.folder / ".venv" / stamp).touch()

    def write_files(self, blocks: Iterable[Block]) -> None:
        """Write the blocks that are files."""
        for block in blocks:
            if block.file:
                target = self.folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(self._here(block.text), encoding="utf-8")

    def run(self, block: Block) -> None:
        """Execute a block of commands.

        Raises
        ------
        AssertionError
            If a command fails, or prints something else than the page shows.
        """
        for command in block.first:
            self.shell(command, block)
        if block.file or block.not_run or block.language not in SHELL:
            return
        if block.language == "console":
            for command, shown in block.commands:
                _compare(shown, self.shell(command, block), block)
        else:
            self.shell(block.text, block)

    def run_python(self, blocks: list[Block]) -> None:
        """Execute all Python of a page as one script, after its commands."""
        wanted = [block for block in blocks if block.language == "python" and not (block.not_run or block.file)]
        if wanted:
            (self.folder / "page.py").write_text("\n\n".join(self._here(block.text) for block in wanted), "utf-8")
            self.shell("python page.py", wanted[0])

    def _here(self, text: str) -> str:
        return _DATABASE.sub(self.database, _MODEL_SERVER.sub(self.server, text))

    def shell(self, script: str, block: Block) -> str:
        """Execute a script of a block and return what it prints.

        Raises
        ------
        AssertionError
            If it fails.
        """
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._here(script)],
            cwd=self.folder, env=self._environment(block), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LONGEST, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{script}\n{done.stdout[-4000:]}"
        assert "Traceback" not in done.stdout, f"{block}:\n{script}\n{done.stdout[-4000:]}"
        return done.stdout

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
            "PYTHONPATH": os.pathsep.join([str(self.folder / "installed"), str(ROOT)]),
            "OPENAI_BASE_URL": self.server,
            "OPENAI_API_KEY": "none",
            "LANGSMITH_TRACING": "false",
            "NO_PROXY": "127.0.0.1",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:xdist",
        }


def _compare(shown: list[str], printed: str, block: Block) -> None:
    """Look whether every line that a page shows was printed, in order, up to numbers.

    ``…`` stands for any lines, and at the end of a line for its rest.
    """
    shape = _spaced if block.exactly else _shape
    lines = iter([shape(line) for line in printed.splitlines()])
    for line in map(shape, shown):
        if line and line != "…":
            beginning = line.removesuffix("…").rstrip()
            found = any(one == line or (line[-1] == "…" and one.startswith(beginning)) for one in lines)
            assert found, f"{block}: no line like '{line}' in\n{printed}"


def _shape(line: str) -> str:
    line = re.sub(r"\b[0-9a-f]{10}\b", "ID", line)
    return _spaced(re.sub(r"-?\d[\d.,]*", "0", line))


def _spaced(line: str) -> str:
    return " ".join(line.split())
