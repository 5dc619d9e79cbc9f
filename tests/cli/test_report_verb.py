"""``labmates report`` and ``labmates export --rows``: pages and rows out of a store, and what they refuse."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from labmates.cli import export as export_verb
from labmates.records import frames
from labmates.records.entering import enter_study
from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.records.studies import StudyRecord
from labmates.workflows.protocol.export import EXPORTS
from tests.studies.ended import ended_run, fresh_run
from tests.support.command_line import Labmates


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/labmates.db")
    spec = {"name": "pilot", "kind": "science", "models": ["scripted:hasty"], "fixed": {"task": "anomaly"}}
    enter_study(store, StudyRecord("pilot", spec, None, 0.0), fresh_run(), [], lambda *_: False)
    score = ScoreEvent(judge="verified", version="1", metric="accuracy", value=0.5, reason="half")
    ended_run(store, "a paper", study="pilot", more=[score])
    ended_run(store, "a paper", seed=1)
    yield store
    store.close()


def test_a_report_of_the_only_study_is_written(labmates: Labmates, store: Store) -> None:
    done = labmates("report", "--out", "new/report.html")
    assert (done.code, done.out) == (0, "")
    assert "Written to new/report.html" in done.err
    page = (labmates.folder / "new/report.html").read_text()
    assert "Study pilot" in page
    assert "All of these models are baselines" in page
    assert labmates("report", "--all", "--out", "all.html").code == 0
    assert "All runs of the store" in (labmates.folder / "all.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["pilott", "--out", "r.html"], "unknown study 'pilott'. Did you mean 'pilot'?"),
        (["pilot", "--out", "r.pdf"], "its file ends in .html or .htm, not 'r.pdf'"),
        (["pilot", "--out", "labmates.db/r.html"], "can't write a report"),
        (["pilot", "--kind", "science", "--out", "r.html"], "of one STUDY, of one --kind, or of --all"),
        (["--kind", "nope", "--out", "r.html"], "unknown kind 'nope'"),
        (["--kind", "game", "--out", "r.html"], "has no run of the kind game"),
        (["pilot"], "Missing option '--out'"),
        (["absent.yaml", "--out", "r.html"], "absent.yaml"),
    ],
)
def test_a_wrong_report_is_refused(labmates: Labmates, store: Store, arguments: list[str], why: str) -> None:
    done = labmates("report", *arguments)
    assert done.code == 2
    assert why in done.err
    assert not (labmates.folder / "r.html").exists()


def test_a_report_needs_a_store(labmates: Labmates) -> None:
    assert labmates("report", "--all", "--out", "r.html").code == 2


def test_rows_of_each_sort_are_exported(labmates: Labmates, store: Store) -> None:
    assert export_verb.ROWS == frames.ROWS
    assert labmates("export", "pilot", "--rows", "scores", "--out", "s.csv").code == 0
    with (labmates.folder / "s.csv").open(newline="") as file:
        assert [(row["judge"], row["value"]) for row in csv.DictReader(file)] == [("verified", "0.5")]
    every = labmates("export", "--all", "--rows", "players", "--out", "p.jsonl")
    assert "2 rows in p.jsonl" in every.err or "0 rows in p.jsonl" in every.err
    assert "unknown kind 'games'. Did you mean 'game'?" in labmates("export", "--kind", "games", "--out", "p.csv").err
    none = labmates("export", "--all", "--model", "openai:x", "--out", "n.csv")
    assert "0 rows" in none.err
    assert (labmates.folder / "n.csv").read_text().startswith("id,kind,study")
    refused = labmates("export", "pilot", "--all", "--out", "x.csv")
    assert (refused.code, "give a STUDY, runs or --all" in refused.err) == (2, True)


def test_whole_runs_are_exported_in_a_format_of_a_package(labmates: Labmates, store: Store) -> None:
    def write(_: Store, out: str, runs: Callable[[], Iterable[RunRecord]]) -> int:
        Path(out).write_text(" ".join(run.id for run in runs()))
        return len(list(runs()))

    EXPORTS.register("ids", write)
    [run, *_] = store.runs()
    done = labmates("export", run.id[:5], "--format", "ids", "--out", "one")
    assert (done.code, done.err) == (0, "1 runs in one\n")
    assert (labmates.folder / "one").read_text() == run.id
    assert labmates("export", "pilot", "--out", "pilot.ids").code == 0
    assert (labmates.folder / "pilot.ids").read_text().split() == [r.id for r in store.runs() if r.study == "pilot"]
    absent = labmates("export", "pilt", "--out", "x.ids")
    assert (absent.code, "unknown study 'pilt'" in absent.err, "no run 'pilt'" in absent.err) == (2, True, True)
    assert labmates("export", "--all", "--out", "all.ids").code == 0
    assert (labmates.folder / "all.ids").read_text().split() == [run.id for run in store.runs()]
    refused = labmates("export", "--all", "--rows", "scores", "--out", "x.ids")
    assert (refused.code, "--rows: 'ids' has all that is recorded" in refused.err) == (2, True)
