from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.command_line import Labmates
from tests.support.langsmith_server import langsmith_server

RUN = ["run", "tournament", "--structure", "sa", "--model", "scripted:tit-for-tat"]
SHORT = ["--team-size", "1", "--rounds", "4", "--plan-every", "2"]


def test_one_json_object_per_tournament_and_nothing_else(labmates: Labmates) -> None:
    done = labmates(*RUN, *SHORT, "--model-for", "B=scripted:defect", "--replicates", "2", "--json")
    assert done.code == 0
    assert sorted(record["seed"] for record in done.records) == [0, 1], "in the order in which they end"
    for record in done.records:
        assert record["status"] == "completed"
        assert record["condition"]["rounds_per_player"] == 3
        assert record["metrics"]["cooperation"] == pytest.approx(1 / 6)
        assert record["models"] == ["scripted:tit-for-tat", "scripted:defect"]


def test_a_tournament_is_summed_up_and_can_be_looked_at(labmates: Labmates) -> None:
    done = labmates(*RUN, *SHORT)
    assert done.code == 0
    assert "one shot cooperation     1.000" in done.out
    run_id = done.out.split("Run ")[1].split(" ")[0]
    shown = labmates("show", run_id)
    assert shown.code == 0
    assert "P1, round 1, match 1: move: move action_a" in shown.out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--rounds-per-player", "100"], "--rounds-per-player must be below 100"),
        (["--team-size", "x"], "--team-size: must be a number from 1 to 50"),
        (["--teams", "0"], "--teams"),
        (["--model-for", "Z=scripted:grim"], "unknown team or player 'Z'"),
        (["--model-for", "A"], "--model-for takes NAME=VALUE"),
        (["--model", "scripted:tit-for-tats"], "Did you mean 'tit-for-tat'"),
        (["--structure", "all"], "'ri', 'gc', 'sa'"),
        (["--temptation", "1", "--sucker", "0"], "temptation > reward or punishment > sucker"),
    ],
)
def test_wrong_input_is_told_with_exit_code_2(labmates: Labmates, more: list[str], told: str) -> None:
    options = dict(zip(RUN[2::2], RUN[3::2], strict=True)) | dict(zip(more[::2], more[1::2], strict=True))
    done = labmates(*RUN[:2], *(part for option in options.items() for part in option))
    assert done.code == 2
    assert told in done.err
    assert done.out == ""


@pytest.mark.slow("tests/workflows/tournament")
def test_a_tournament_is_one_trace_with_readable_names(tmp_path: Path) -> None:
    arguments = [*RUN, *SHORT[:-1], "1", "--store", f"sqlite:///{tmp_path}/runs.db"]
    code = textwrap.dedent(f"""
        import sys
        from labmates.cli.main import main
        sys.exit(main({arguments!r}))
    """)
    with langsmith_server() as traces:
        environment = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": traces.url,
            "LANGSMITH_API_KEY": "lsv2-x",
            "PATH": "/usr/bin",
        }
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=150, capture_output=True)
    [root] = traces.roots()
    assert root["name"].startswith("tournament sa scripted:tit-for-tat ")
    assert {"labmates", "tournament", "sa"} <= set(root["tags"])
    paths = {" > ".join(traces.path(run)[1:]) for run in traces.runs.values() if run["run_type"] == "llm"}
    assert "match > match > moves > P1, match 1, round 1: move" in paths
    assert "match > match > planning > planner and critic > critique > P2, match 1, round 2: critique" in paths
    assert "match > match > comprehension > P1, match 1: questions" in paths
    names = {run["name"] for run in traces.runs.values()}
    assert not {"Unnamed", "RunnableLambda", "LangGraph"} & names


@pytest.mark.slow("tests/workflows/tournament")
def test_tournaments_are_analysed_with_tables_figures_and_json(labmates: Labmates) -> None:
    for structure in ("ri", "gc", "sa"):
        short = ["--structure", structure, "--team-size", "2", "--rounds", "3", "--critique-turns", "0"]
        assert labmates("run", "tournament", "--model", "scripted:joss", *short, "--replicates", "2").code == 0
    done = labmates("analyze", "tournament", "--plots", "figures", "--profiles")
    assert done.code == 0
    for told in (
        "SA: super-additive",
        "Behaviour",
        "one-shot cooperation",
        "H1 cooperation",
        "p is one-sided",
        "within teams",
    ):
        assert told in done.out
    drawn = {path.name for path in (labmates.folder / "figures").iterdir()}
    assert drawn == {"cooperation.png", "one-shot.png", "teams.png", "comprehension.png"}
    written = labmates("analyze", "tournament", "--out", "t.csv", "--out", "t.tex").err
    assert "Written to t-rates.csv" in written
    assert "Written to t-hypotheses.csv" in written
    assert "Written to t-scores.csv" in written
    assert (labmates.folder / "t.tex").read_text().count(r"\toprule") == 3
    rows = labmates("analyze", "tournament", "--json").records
    assert {row["structure"] for row in rows if row["table"] == "rates"} == {"RI", "GC", "SA"}
    assert [row["hypothesis"][:2] for row in rows if row["table"] == "hypotheses"] == ["H1", "H2"]


def test_what_can_not_be_analysed_is_told(labmates: Labmates) -> None:
    game = ["--game", "weakest-link", "--model", "scripted:random", "--rounds", "1"]
    assert labmates("run", "game", *game).code == 0
    for arguments in ([], ["--study", "none"]):
        done = labmates("analyze", "tournament", *arguments)
        assert (done.code, done.out) == (2, "")
        assert "has no run of kind 'tournament'" in done.err
