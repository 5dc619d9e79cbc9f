from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from tests.support.command_line import Done, Labmates

RUN = ["run", "science", "--task", "anomaly", "--difficulty", "easy"]
KEYS = [
    "id", "kind", "study", "condition", "key", "replicate", "seed", "status", "error", "metrics", "scores", "sandbox",
    "valid", "invalid", "usage", "bill", "budget", "seconds", "models", "digest",
]  # fmt: skip


def test_the_demo_shows_progress_budget_scores_and_where_the_report_is(labmates: Labmates, tmp_path: Path) -> None:
    done = labmates.process("demo")
    assert done.code == 0
    for team in ("data", "model", "eval", "writing"):
        assert f"{team} team, phase 1 ended" in done.err
    assert "Budget" in done.out
    assert "heuristic" in done.out
    assert "verified" in done.out
    [report] = (tmp_path / "labmates-reports").iterdir()
    assert str(report.name) in done.out
    text = report.read_text()
    assert text.startswith("## Abstract")
    assert "Abstract" in text


@pytest.mark.slow("tests/studies/test_resume.py")
@pytest.mark.needs("bubblewrap")
def test_the_same_seed_gives_the_same_report_and_scores_at_any_concurrency(labmates: Labmates) -> None:
    results = []
    for at_once in ("1", "3"):
        done = labmates(
            *RUN, "--model", "scripted:diligent", "--replicates", "2", "--seed", "5", "--json",
            "--max-concurrent-runs", at_once, "--max-sandboxes", at_once,
        )  # fmt: skip
        assert done.code == 0
        records = sorted(done.records, key=lambda record: int(record["seed"]))
        reports = [labmates("show", record["id"], "--report").out for record in records]
        results.append(
            [
                (record["metrics"], record["scores"], record["usage"], record["budget"], report)
                for record, report in zip(records, reports, strict=True)
            ]
        )
    assert results[0] == results[1]
    assert results[0][0][4] != results[0][1][4]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Labmates, Done]:
    """A folder with one run of the lab, and what the command printed."""
    labmates = Labmates(tmp_path_factory.mktemp("ran"))
    return labmates, labmates(*RUN, "--model", "scripted:diligent", "--json")


def test_a_json_record_has_the_documented_keys_and_nothing_else_is_printed(ran: tuple[Labmates, Done]) -> None:
    [record] = ran[1].records
    assert list(record) == KEYS
    assert record["models"] == ["scripted:diligent"]
    assert record["condition"]["budget"] == "1"


def test_a_run_with_a_small_budget_ends_as_exhausted_and_is_scored(labmates: Labmates) -> None:
    done = labmates(*RUN, "--model", "scripted:diligent", "--budget", "0.02", "--json")
    assert done.code == 0
    [record] = done.records
    assert record["status"] == "exhausted"
    assert float(record["budget"]["spent"]) <= 0.02
    assert record["metrics"]["artifacts_missing"] == 1, "what work leaves pays for what is handed over"
    assert all(score["value"] is not None for score in record["scores"])


def test_the_story_of_a_run_tells_phases_code_artifacts_and_scores(ran: tuple[Labmates, Done]) -> None:
    labmates, [record] = ran[0], ran[1].records
    story = labmates("show", record["id"])
    assert story.code == 0
    for part in (
        "== data team, phase 1 (planned) started ==",
        "run_code (ok",
        "wrote final_paper, version 1",
        "Scores",
    ):
        assert part in story.out
    assert json.loads(labmates("show", record["id"], "--json").out)["id"] == record["id"]
    assert "has no artifact 'nothing'" in labmates("show", record["id"], "--artifact", "nothing").err
    artifact = labmates("show", record["id"], "--artifact", "dataset_description").out
    assert len(artifact) > 200


def test_what_a_model_wrote_can_not_steer_the_terminal(labmates: Labmates) -> None:
    records = labmates(*RUN, "--model", "scripted:garbage", "--replicates", "3", "--json").records
    for record in records:
        story = labmates("show", record["id"], "--full").out
        assert not [c for c in story if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]


def test_tasks_and_models_are_listed_and_shown(labmates: Labmates) -> None:
    assert "ecology" in labmates("tasks").out
    assert "rows" in labmates("tasks", "show", "anomaly").out
    listed = labmates("models").out
    assert "scripted:diligent" in listed
    assert "qwen3-8b" in listed
    names = [one["name"] for one in labmates("models", "--json").records]
    assert sum(not name.startswith(("scripted:", "gguf:")) for name in names) == 35
    assert {"scripted:diligent", "scripted:gullible", "scripted:fair-share"} <= set(names)
    assert "Qwen3" in labmates("models", "show", "qwen3-8b").out


def test_every_verb_has_help_with_an_example(labmates: Labmates) -> None:
    for words in (
        "demo", "run science", "run game", "analyze ratings", "show", "tasks", "tasks show", "models", "models show",
    ):  # fmt: skip
        done = labmates(*words.split(), "--help")
        assert done.code == 0
        assert "Example: labmates" in " ".join(done.out.split())


def test_help_has_options_in_sections_and_required_ones_first(labmates: Labmates) -> None:
    lines = labmates("run", "science", "--help").out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Condition:", "Options:", "Models:", "Execution:"]
    first = lines[lines.index("Condition:") + 1 :]
    assert [line.split()[0] for line in first if line.startswith("  --")][:2] == ["--task", "--model"]
    assert "\n".join(first).count("[required]") == 2


@pytest.mark.parametrize("group", ["analyze", "study"])
def test_lists_of_commands_cut_no_summary_and_name_the_nearest(labmates: Labmates, group: str) -> None:
    listed = labmates(group, "--help").out.partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    command = listed.split()[0]
    assert f"Did you mean '{command}'?" in labmates(group, f"{command}x").err


@pytest.mark.parametrize(
    ("words", "needed"), [(["--help"], []), (["strategies", "references"], ["numpy", "pydantic", "rich"])]
)
def test_commands_import_nothing_heavy_that_they_do_not_need(words: list[str], needed: list[str]) -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom labmates.cli.main import run_command\n"
        f"try:\n    run_command({words})\nexcept SystemExit:\n    pass\n"
        "heavy = {'pandas', 'numpy', 'langgraph', 'langchain_core', 'openai', 'sqlalchemy', 'pydantic', 'rich'}\n"
        f"print('HEAVY', sorted(heavy & set(sys.modules) - set({needed})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_runs_are_deleted_when_somebody_said_so(labmates: Labmates) -> None:
    labmates("run", "game", "--game", "public-goods", "--model", "scripted:random", "--rounds", "1")
    dry = labmates("runs", "delete", "--kind", "game", "--dry-run", "--json").records
    assert dry == [{"runs": 1, "studies": 0, "replies": 0, "dry_run": True}]
    unasked = labmates("runs", "delete", "--kind", "game")
    assert (unasked.code, "1 runs would be deleted" in unasked.err, "--yes" in unasked.err) == (2, True, True)
    assert labmates("runs", "delete", "--kind", "game", "--yes").out == "1 runs were deleted.\n"
    assert labmates("runs", "delete", "--kind", "game", "--yes").code == 2
    assert labmates("runs", "delete").code == 2


def test_a_published_digest_names_its_record_and_an_edited_number_is_told(labmates: Labmates, tmp_path: Path) -> None:
    [run] = labmates(
        "run", "game", "--game", "public-goods", "--model", "scripted:random", "--rounds", "1", "--json"
    ).records
    assert f"Digest: {run['digest']}" in labmates("show", run["id"]).out
    checked = labmates("store", "check", "--json")
    [whole] = checked.records
    assert (checked.code, whole["runs"], whole["faults"], whole["ended"]) == (0, 1, [], 1)
    assert whole["digest"] in labmates("store", "check").out
    with closing(sqlite3.connect(tmp_path / "labmates.db")) as connection, connection:
        connection.execute("update runs set metrics = json_set(metrics, '$.payoff', 99.5)")
    checked = labmates("store", "check", "--json")
    [whole] = checked.records
    assert (checked.code, whole["digest"]) == (1, None)
    [by_digest] = (fault["text"] for fault in whole["faults"])
    assert "differ from its digest" in by_digest
    replayed = labmates("replay", run["id"], "--json")
    [[difference]] = (record["differences"] for record in replayed.records)
    assert (replayed.code, difference["field"], difference["recorded"]) == (1, "metrics.payoff", "99.5")
