"""One agent alone and the comparison with teams, through the real command."""

from __future__ import annotations

from html import unescape

import pytest

from tests.support.command_line import Labmates

RUN = ["run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "scripted:silent", "--budget", "0.50"]


def test_teams_and_solo_runs_are_paired(labmates: Labmates) -> None:
    labmates(*RUN, "--seed", "3", "--replicates", "3", "--prices", "input=1,output=4", "--json")
    lonely = labmates("analyze", "teamwork")
    assert lonely.code == 2
    assert "no run matches 'one agent'" in lonely.err

    solo = labmates(*RUN, "--solo", "--seed", "3", "--replicates", "3", "--prices", "input=1,output=4", "--json")
    rows = labmates("analyze", "teamwork", "--json").records
    assert {row["first"] for row in rows} == {"a team"}
    assert {row["difference_n"] for row in rows} == {3}
    assert {row["outcome"] for row in rows} >= {"skill", "completeness", "provenance", "tokens", "dollars"}

    labmates(*RUN, "--visibility", "hidden", "--json")
    told = labmates("analyze", "teamwork", "--out", "t.csv").out
    assert "This holds for new data sets of this task and this model; 3 of 3 pairs have an unreadable result" in told
    assert (labmates.folder / "t.csv").exists()
    assert "Without a partner (1)" in told

    assert labmates("report", "--all", "--out", "r.html").code == 0
    report = unescape((labmates.folder / "r.html").read_text())
    assert told.startswith("Can't tell a team from one agent: 0.00")
    assert "Teams against one agent alone: Can't tell a team from one agent: 0.00" in report

    [first] = [record["id"] for record in solo.records if record["seed"] == 3]
    story = labmates("show", first).out
    assert "== one agent alone, phase 1 (planned) started ==" in story
    assert "(science, scripted:silent, seed 3)" in story


@pytest.mark.parametrize("option", [["--team-size", "2"], ["--model-for", "data=scripted:silent"]])
def test_options_of_teams_are_refused_for_one_agent_alone(labmates: Labmates, option: list[str]) -> None:
    done = labmates(*RUN, "--solo", *option)
    assert done.code == 2
    assert f"{option[0]}: one agent alone (solo) has no teammates" in done.err
    assert done.out == ""
