"""The command line of labmates for tests, in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import unittest.mock
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from labmates.cli import console
from labmates.cli.main import run_command
from labmates.sandboxes import bubblewrap
from labmates.sandboxes.local import PlainLauncher
from tests.support.children import Child, command

OURS = ("OPENAI", "LANGSMITH", "LANGCHAIN", "LABMATES")


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


@dataclass(frozen=True)
class Labmates:
    """The command line, in a folder of its own."""

    folder: Path

    def __call__(self, *arguments: str, **environment: str) -> Done:
        """Run a command in this process, which saves the seconds that a new one takes to import everything.

        What a process finds out once (what it can import, what can isolate code) must not stay in this one: such
        commands get a process of their own.
        """
        if arguments[:1] == ("sandbox",) or environment.keys() & {"PATH", "PYTHONPATH"}:
            return self.process(*arguments, environment=environment)
        told, complained = io.StringIO(), io.StringIO()
        console.out.cache_clear()
        console.err.cache_clear()
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(told),
            contextlib.redirect_stderr(complained),
        ):
            patch.chdir(self.folder)
            if "--sandbox" not in arguments:  # what isolates code is tested with the sandboxes
                patch.setattr(bubblewrap, "BubblewrapLauncher", PlainLauncher)
            # Commands set variables too, which must not outlive them.
            with unittest.mock.patch.dict(os.environ, self._environment(arguments, environment), clear=True):
                try:
                    code = run_command(arguments)
                except SystemExit as end:
                    code = end.code if isinstance(end.code, int) else 1
        console.out.cache_clear()
        console.err.cache_clear()
        return _done(code, told.getvalue(), complained.getvalue())

    def process(self, *arguments: str, environment: Mapping[str, str] = MappingProxyType({})) -> Done:
        """Run a command in a process of its own, forked from one that has imported everything."""
        with Child(command(*arguments), self._environment(arguments, environment), self.folder) as child:
            out, err = child.communicate(timeout=150)
        assert child.returncode is not None
        return _done(child.returncode, out, err)

    def _environment(self, arguments: tuple[str, ...], environment: Mapping[str, str]) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        # Containers cost most of the time of a short run; what is special about them is tested with the sandboxes.
        engine = {"DOCKER_HOST": "unix:///no/engine"} if arguments[:1] != ("sandbox",) else {}
        here = {"LANGSMITH_TRACING": "false", "NO_PROXY": "127.0.0.1"}
        return {**clean, **engine, **here, "NO_COLOR": "1", "COLUMNS": "120", **environment}


def _done(code: int, out: str, err: str) -> Done:
    assert "Traceback" not in err
    assert "Traceback" not in out
    return Done(code, out, err)
