"""Where output goes wrong: streams that are closed, know few characters, or have no room."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from labmates.cli import console
from labmates.cli.console import discard, make_streams_safe
from labmates.cli.main import run_command
from labmates.cli.progress import Progress
from labmates.cli.results import present
from labmates.records.store import Store
from labmates.stats.figures import Drawing
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Result


class Full(io.StringIO):
    """A stream to a disk without room, or with another fault."""

    def __init__(self, number: int = errno.ENOSPC) -> None:
        super().__init__()
        self.number = number
        self.refused = 0

    def write(self, text: str) -> int:
        self.refused += 1
        raise OSError(self.number, "No space left on device")


@pytest.fixture(autouse=True)
def fresh_consoles() -> Iterator[None]:
    console.out.cache_clear()
    console.err.cache_clear()
    yield
    console.out.cache_clear()
    console.err.cache_clear()


def test_what_a_stream_can_not_spell_is_written_as_an_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    make_streams_safe()
    console.out().print("data → model …")
    sys.stdout.flush()
    assert written.getvalue() == b"data \\u2192 model \\u2026\n"


def test_a_closed_stream_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    make_streams_safe()
    assert run_command(["tasks"]) == 0
    assert run_command(["tasks", "show", "nothing"]) == 2
    sys.stdout.close()
    sys.stderr.close()


def test_output_without_room_is_told_in_one_line() -> None:
    err = io.StringIO()
    with contextlib.redirect_stdout(Full()), contextlib.redirect_stderr(err):
        assert run_command(["tasks"]) == 1
    assert err.getvalue() == "labmates: can't write: No space left on device\n"


def test_a_log_without_room_ends_no_run(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    with contextlib.redirect_stderr(full := Full()):
        Progress(store, [], as_json=True).notify("half of it is done")
    assert full.refused == 1
    console.err.cache_clear()
    with contextlib.redirect_stderr(Full(errno.EACCES)), pytest.raises(PermissionError):
        Progress(store, [], as_json=True).notify("half of it is done")
    store.close()


@pytest.mark.parametrize("as_json", [False, True])
def test_figures_and_tables_are_written_though_nobody_reads_the_output(tmp_path: Path, as_json: bool) -> None:
    table = Table("points", "Points", [Column("x")], [{"x": 1}])
    drawing = Drawing("points", "Points", "A point.", Figure)
    values = {"plots": tmp_path, "format": "svg", "files": [tmp_path / "points.csv"], "as_json": as_json}
    streams = contextlib.redirect_stdout, contextlib.redirect_stderr
    with unread() as out, unread() as err, streams[0](out), streams[1](err), pytest.raises(BrokenPipeError):
        present([Result([table], [drawing])], values)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["points.csv", "points.svg"]


def test_long_work_is_told_in_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "TOLD_SECONDS", 0.01)
    asked = threading.Event()

    def text() -> str:
        asked.set()
        return "3 of 4 done"

    shown: Any = console.err().status("2 of 4 done")
    with shown:
        shown.update(text)
        assert asked.wait(60)
    assert "3 of 4 done\n" in capsys.readouterr().err


@contextlib.contextmanager
def unread() -> Iterator[io.TextIOWrapper]:
    """A pipe whose reader has left."""
    reading, writing = os.pipe()
    os.close(reading)
    stream = open(writing, "w", buffering=1, encoding="utf-8")  # noqa: PTH123, SIM115
    yield stream
    discard(stream)
    stream.close()
