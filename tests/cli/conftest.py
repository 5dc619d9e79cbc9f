from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Done:
    """What a command left: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Standard output as JSON objects, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


Labmates = Callable[..., Done]


@pytest.fixture
def labmates(tmp_path: Path) -> Labmates:
    """Run the real command in a folder of its own."""

    def run(*arguments: str, timeout: float = 150, **environment: str) -> Done:
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "LANGSMITH", "LANGCHAIN", "LABMATES"))
        }
        # Containers cost most of the time of a short run; what is special about them is tested with the sandboxes.
        engine = {"DOCKER_HOST": "unix:///no/engine"} if arguments[:1] != ("sandbox",) else {}
        done = subprocess.run(
            [sys.executable, "-m", "labmates.cli.main", *arguments],
            cwd=tmp_path,
            env={**clean, **engine, "NO_COLOR": "1", "COLUMNS": "120", **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "Traceback" not in done.stdout
        return Done(done.returncode, done.stdout, done.stderr)

    return run
