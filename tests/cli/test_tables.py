"""Tables on the screen: names are wrapped at the marks inside them, and nothing is cut."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from labmates.cli import tables

ROW = ["scripted:fair-share", "0.500 [0.400, 0.600]"]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ["scripted:fair-share"]),
        (33, ["scripted:fair-", "share"]),
        (28, ["scripted:", "fair-share"]),
        (12, ["scripted:fair-share"]),
    ],
)
def test_names_are_wrapped_at_their_marks(monkeypatch: pytest.MonkeyPatch, width: int, lines: list[str]) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(tables, "out", lambda: Console(file=screen, width=width))
    monkeypatch.setattr(tables, "wide", lambda needed: Console(file=screen, width=needed))
    tables.print_grid(["model", "score"], [ROW], [False, True])
    printed = screen.getvalue()
    assert [line.split()[0] for line in printed.splitlines()[1:]] == lines
    assert "".join(printed.split()).endswith("0.600]")
