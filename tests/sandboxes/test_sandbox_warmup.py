"""What a machine prepares once for its sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.sandboxes import warmup


def test_fonts_are_listed_and_modules_are_compiled_only_where_they_were_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warmup, "_IMPORTS", "import json.tool")  # all of them take seconds to compile
    for compiled in (True, False):
        monkeypatch.setattr(warmup, "_are_compiled", lambda compiled=compiled: compiled)
        folder = tmp_path / str(compiled) / "made"
        assert warmup._prepare(folder)
        assert (folder / "bytecode").is_dir() is not compiled
        assert len(list((folder / "matplotlib").glob("fontlist-*.json"))) == compiled
