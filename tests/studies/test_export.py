from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import MissingExtraError, UsageError
from labmates.records.events import ScoreEvent
from labmates.records.store import Store
from labmates.studies import export
from labmates.studies.export import export_rows
from labmates.util.csv_rows import inert, read_rows
from labmates.workflows.protocol.export import TABLES
from tests.studies.ended import ended_run


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    for seed, value in ((0, 0.25), (1, None)):
        told = {"judge": "verified", "version": "1", "metric": "accuracy", "value": value, "failed": value is None}
        score = ScoreEvent.model_validate({**told, "reason": 'a "reason",\nso'})
        ended_run(store, "a paper", seed=seed, study="s" if seed == 0 else None, more=[score])
    yield store
    store.close()


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an export."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("form", TABLES)
def test_each_run_is_a_row_with_the_keys_of_its_record(store: Store, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"runs.{form}"
    assert export_rows(store, path, store.runs()) == 2
    rows = sorted(read(path), key=lambda row: str(row["seed"]))
    assert [str(row["seed"]) for row in rows] == ["0", "1"]
    for row in rows:
        assert {"id", "status", "condition.task", "condition.prices.default.input", "metrics.phases"} <= row.keys()
        assert (row["condition.task"], row["models"]) == ("anomaly", "scripted:hasty")
    assert [row.get("scores.verified.accuracy") or None for row in rows] in ([0.25, None], ["0.25", None])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("runs", "."))] == [f"runs.{form}"]


def test_numbers_stay_numbers_in_parquet(store: Store, tmp_path: Path) -> None:
    export_rows(store, tmp_path / "x.parquet", store.runs())
    row, _ = read(tmp_path / "x.parquet")
    assert (type(row["seed"]), type(row["metrics.phases"]), type(row["condition.theory_of_mind"])) == (int, float, bool)
    assert row["error"] is None


def test_the_folder_of_an_export_is_made(store: Store, tmp_path: Path) -> None:
    export_rows(store, tmp_path / "new" / "runs.csv", store.runs())
    assert (tmp_path / "new" / "runs.csv").exists()


def test_one_studys_runs_alone_can_be_written(store: Store, tmp_path: Path) -> None:
    assert export_rows(store, tmp_path / "x.csv", store.runs(study="s")) == 1


def test_what_can_not_be_written_is_told_and_nothing_is_left(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="can't write"):
        export_rows(store, Path("/proc/absent/x.csv"), store.runs())
    (tmp_path / "x.csv").write_text("before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "_write_csv", full)
    with pytest.raises(UsageError, match="No space left"):
        export_rows(store, tmp_path / "x.csv", store.runs())
    assert (tmp_path / "x.csv").read_text() == "before"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_parquet_without_its_library_names_the_extra(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"labmates\[parquet\]"):
        export_rows(store, tmp_path / "x.parquet", store.runs())


def test_a_run_without_scores_or_metrics_has_its_row_too(store: Store, tmp_path: Path) -> None:
    run = ended_run(store, "", seed=2)
    store.add(run.id, [], [])
    assert export_rows(store, tmp_path / "x.jsonl", store.runs()) == 3
    assert replace(run).id in {row["id"] for row in read(tmp_path / "x.jsonl")}


@pytest.mark.parametrize("text", ["=cmd|calc!A1", '=HYPERLINK("http://evil","x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1"])
def test_no_cell_of_a_csv_file_begins_a_formula(store: Store, tmp_path: Path, text: str) -> None:
    score = ScoreEvent(judge="verified", version="1", metric="accuracy", value=-0.5, reason=text)
    ended_run(store, "a paper", seed=7, more=[score])
    export_rows(store, tmp_path / "x.csv", store.runs(), what="scores")
    [row] = [row for row in read(tmp_path / "x.csv") if float(row["value"] or 0) < 0]
    assert (row["reason"], row["value"]) == (f"'{text}", "-0.5")
    export_rows(store, tmp_path / "x.jsonl", store.runs(), what="scores")
    assert text in [row["reason"] for row in read(tmp_path / "x.jsonl")]


def test_what_was_made_inert_is_read_back_as_it_was(tmp_path: Path) -> None:
    cells = ["=1+1", "'quoted'", "-0.5", "-x", "plain", "'"]
    (tmp_path / "x.csv").write_text("\n".join(["value", *(str(inert(cell)) for cell in cells)]))
    assert [row["value"] for row in read_rows(tmp_path / "x.csv")] == cells
