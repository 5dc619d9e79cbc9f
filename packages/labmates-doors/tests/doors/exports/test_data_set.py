"""Runs as a folder that ``datasets`` opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import load_dataset

from labmates.api import load
from labmates.errors import UsageError
from labmates.records.frames import ROWS
from labmates.records.store import Store
from labmates_doors.exports.data_set import export_data_set


async def test_a_folder_opens_as_a_data_set(played: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    assert export_data_set(played, str(tmp_path / "runs"), played.runs) == 3
    for what in ROWS:
        frame = load(what, store=played.url)
        assert (tmp_path / "runs" / f"{what}.parquet").exists() == bool(len(frame)), what
        if frame.empty:
            continue
        opened = load_dataset(str(tmp_path / "runs"), what, split="train", cache_dir=str(tmp_path / "cache"))
        assert opened.num_rows == len(frame), what
        assert set(opened.column_names) == set(frame.columns), what
    assert "`messages`" in (tmp_path / "runs" / "README.md").read_text(encoding="utf-8")


async def test_a_folder_with_content_and_an_empty_choice_are_refused(played: Store, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="no empty folder"):
        export_data_set(played, str(tmp_path / "full"), played.runs)
    with pytest.raises(UsageError, match="no started run"):
        export_data_set(played, str(tmp_path / "new"), lambda: played.runs(kind="dilemma"))
    assert not (tmp_path / "new").exists()
