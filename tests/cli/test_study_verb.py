from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from labmates.records.store import Store
from labmates.records.studies import study_counts
from tests.support.children import Child, command
from tests.support.command_line import Labmates

STUDY = """
kind: science
models: [scripted:silent]
fixed: {task: anomaly, difficulty: easy, deliberation_rounds: 0}
grid: {visibility: [full, hidden]}
replicates: REPLICATES
sandbox: unsafe-local
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(STUDY.replace("REPLICATES", "2"))
    return path


def test_a_study_is_planned_executed_looked_at_and_exported(labmates: Labmates, study: Path) -> None:
    plan = labmates("study", "plan", "small.yaml")
    assert plan.code == 0
    assert "2 conditions × 2 runs = 4 runs" in plan.out
    assert not (study.parent / "labmates.db").exists()
    done = labmates("study", "run", "small.yaml")
    assert (done.code, "small: 4 runs: 4 completed" in done.out) == (0, True)
    again = labmates("study", "run", "small.yaml", "--json")
    assert again.records == [
        {"study": "small", "runs": 4, "status": {"completed": 4}, "invalid": 0, "idle": 4,
         "spent": again.records[0]["spent"], "uncertain": "0", "cap": None, "overspent": False,
         "capped": False, "workers": {}, "paused": [], "mixed": []}
    ]  # fmt: skip
    assert labmates("study", "status").out == labmates("study", "status", "small.yaml").out
    assert labmates("export", "--out", "runs.csv").err == "4 rows in runs.csv\n"
    assert "4 of them done" in labmates("study", "plan", "small.yaml").out
    assert labmates("study", "plan", "small.yaml", "--json").records[0]["done"] == 4
    assert "0 failed runs" in labmates("study", "retry", "--failed").out


def test_runs_in_which_nobody_works_say_so_everywhere(labmates: Labmates, study: Path) -> None:
    ran = labmates("study", "run", "small.yaml")
    assert (ran.code, "  4 no work" in ran.out) == (0, True)
    assert "status completed, no work" in " ".join(labmates("runs").out.split())  # of all, so in the caption
    assert "completed, no work in" in labmates("show", "last").out
    labmates("report", "small", "--out", "report.html")
    labmates("view", "--export", "pages")
    of_study = next((study.parent / "pages" / "analyses").glob("small-*/index.html"))
    for page in (study.parent / "report.html", study.parent / "pages" / "index.html", of_study):
        assert "no work" in page.read_text(), page


def test_a_store_is_checked(labmates: Labmates, study: Path) -> None:
    labmates("study", "run", "small.yaml")
    assert labmates("store", "check").out.startswith("4 runs checked; no faults.\n")
    database = sqlite3.connect(study.parent / "labmates.db")
    with closing(database), database:
        database.execute("delete from events where type = 'charge' and run = (select max(id) from runs)")
    done = labmates("store", "check", "--study", "small")
    assert done.code == 1
    assert "model calls were not charged" in done.out
    assert "unknown study 'smal'. Did you mean 'small'?" in labmates("store", "check", "--study", "smal").err


def test_studies_that_come_along_are_listed_and_shown(labmates: Labmates) -> None:
    assert "science-sweep" in labmates("study", "list").out
    assert "team_size: [2, 3]" in labmates("study", "show", "science-sample").out


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow("tests/studies/test_study.py"))])
def test_ctrl_c_ends_steps_keeps_all_and_the_same_command_goes_on(
    labmates: Labmates, study: Path, workers: int
) -> None:
    study.write_text(STUDY.replace("REPLICATES", "20"))
    code = command("study", "run", "small.yaml", "--workers", str(workers))
    with Child(code, {**os.environ, "NO_COLOR": "1"}, study.parent) as process:
        end = time.monotonic() + 200
        while not (study.parent / "labmates.db").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        store = Store(f"sqlite:///{study.parent}/labmates.db")
        while study_counts(store, "small").of("completed") < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Resume with the same command" in err
    counts = study_counts(store, "small")
    store.close()
    assert (counts.of("running"), counts.of("failed")) == (0, 0)
    assert counts.of("planned", "interrupted") > 0
    study.write_text(STUDY.replace("REPLICATES", "3"))
    assert labmates("study", "run", "small.yaml").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study", "plan", "nothing"), "no file or ready study 'nothing'"),
        (("study", "run", "absent.yaml"), "can't read the study 'absent.yaml'"),
        (("study", "show", "mine"), "no study 'mine' comes with labmates"),
        (("study", "run", "small.yaml", "--executor", "nowhere:x"), "'nowhere'. Known: local"),
        (("study", "run", "small.yaml", "--workers", "0"), "not in the range"),
        (("study", "status"), "does not exist yet"),
        (("study", "retry"), "--failed"),
        (("export", "--out", "x.txt"), "unknown format 'txt'"),
        (("export", "--out", "folder"), "--out: 'folder' has no ending; add --format (parquet, csv, jsonl"),
        (("export", "--out", "x.json", "--format", "csv"), "a file name that ends in .csv"),
        (("export", "x", "--all", "--out", "x.csv"), "give a STUDY, runs or --all"),
        (("worker",), "does not exist yet"),
        (("worker", "nonsense"), "is not the URL of a store"),
        (("worker", "postgresql://127.0.0.1:1/x"), "can't open the store 'postgresql://127.0.0.1:1/x'"),
        (("store", "upgrade"), "does not exist yet"),
        (("store", "check"), "does not exist yet"),
    ],
)
def test_wrong_input_exits_with_2(
    labmates: Labmates, study: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr("labmates.records.database.PATIENCE_SECONDS", 2.0)  # a worker waits for its store a minute
    done = labmates(*arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_a_worker_needs_a_study_of_the_store_and_right_settings(labmates: Labmates, study: Path) -> None:
    url = f"sqlite:///{study.parent}/labmates.db"
    Store(url).close()
    assert "no study in" in labmates("worker", url).err
    labmates("study", "run", "small.yaml")
    assert "unknown study 'smell'. Did you mean 'small'?" in labmates("worker", url, "--study", "smell").err
    assert "max_concurrent_runs" in labmates("worker", url, "--max-concurrent-runs", "0").err
    assert labmates("worker", url).code == 0


def test_a_failed_run_makes_the_command_fail_and_says_how_to_try_again(labmates: Labmates, study: Path) -> None:
    from tests.support.openai_server import OpenAIServer, fault

    with OpenAIServer(fault(500)) as server:
        connection = f"connection: {{base_url: '{server.base_url}', max_retries: 0}}\n"
        study.write_text(STUDY.replace("REPLICATES", "1").replace("scripted:silent", "openai:m") + connection)
        done = labmates("study", "run", "small.yaml")
    assert done.code == 1
    assert "2 failed: " in done.out
    assert "labmates study retry small --failed" in done.err
