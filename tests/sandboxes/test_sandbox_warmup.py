"""What a machine prepares once for its sandboxes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from labmates.sandboxes import warmup
from labmates.sandboxes.interpreter import this_interpreter


@pytest.mark.parametrize(("compiled", "writable"), [(True, True), (False, True), (False, False)])
def test_fonts_are_listed_and_modules_are_compiled_only_where_they_were_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool, writable: bool
) -> None:
    package = tmp_path / "packages" / "of_somebody.py"
    package.parent.mkdir()
    package.touch()
    real = this_interpreter()
    here = replace(real, packages=(package.parent, *real.packages))
    # Root may write everywhere, so that taking the right away would try nothing.
    monkeypatch.setattr(os, "access", lambda *_: writable)
    monkeypatch.setattr(warmup, "this_interpreter", lambda: here)
    monkeypatch.setattr(warmup, "_IMPORTS", "import of_somebody")  # all of them take seconds to compile
    monkeypatch.setattr(warmup, "_are_compiled", lambda: compiled)
    folder = tmp_path / "kernel" / "made"
    warmup._prepare(folder)
    assert (folder / "bytecode").is_dir() is (not compiled and not writable)
    assert (package.parent / "__pycache__").is_dir() is (not compiled and writable)
    assert len(list((folder / "matplotlib").glob("fontlist-*.json"))) == compiled


def test_packages_that_were_installed_anew_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Path] = []

    def prepare(folder: Path) -> None:
        prepared.append(folder)
        (folder / "matplotlib").mkdir(parents=True, exist_ok=True)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(warmup, "_prepare", prepare)
    for compiled, times in ((True, 1), (True, 1), (False, 2)):
        monkeypatch.setattr(warmup, "_are_compiled", lambda compiled=compiled: compiled)
        warmup._prepared.__wrapped__()
        assert len(prepared) == times
