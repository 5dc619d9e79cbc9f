"""``labmates show``: what the run came to, finding by finding, seat by seat, player by player."""

from __future__ import annotations

import json

from labmates.tasks.registry import get_task
from labmates.util.seeds import derive
from tests.support.command_line import Labmates
from tests.support.recorded import Recorded


def test_each_finding_is_told_with_its_truth_credit_and_reason_and_each_seat_with_its_part(
    labmates: Labmates, recorded: Recorded
) -> None:
    run = recorded.store.run(recorded.ids["science"])
    done = labmates("show", run.id, "--json", "--store", recorded.store.url)
    tables = json.loads(done.out)["tables"]
    findings = {row["finding"]: row for row in tables["findings"]}
    assert findings.keys() == get_task(run.condition["task"]).findings.model_fields.keys()
    assert all({"stated", "true", "credit", "weight", "reason"} <= row.keys() for row in findings.values())
    assert any(row["stated"] for row in findings.values())
    assert all(row["true"] for row in findings.values() if row["credit"] == 0)
    assert {(row["seat"], row["part"]) for row in tables["seats"]} >= {("data_lead", "all data")}
    shown = labmates("show", run.id, "--store", recorded.store.url).out
    assert "Seats: organisation pipeline, evidence shared" in shown
    assert f"data set of the seed {derive(run.seed, 'dataset')}." in shown


def test_each_seat_is_told_with_its_part_of_divided_evidence(labmates: Labmates) -> None:
    team = ("--organisation", "decentralised", "--team-size", "3", "--evidence", "split:1", "--max-turns", "1")
    run = ("run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "scripted:silent", *team)
    assert labmates(*run).code == 0
    seats = json.loads(labmates("show", "last", "--json").out)["tables"]["seats"]
    assert len({row["part"] for row in seats}) == len(seats) == 3


def test_the_standings_of_a_tournament_are_shown(labmates: Labmates, recorded: Recorded) -> None:
    run = recorded.ids["tournament"]
    shown = labmates("show", run, "--store", recorded.store.url).out
    assert "Standings" in shown
    rows = json.loads(labmates("show", run, "--json", "--store", recorded.store.url).out)["tables"]["standings"]
    assert [row["points"] for row in rows] == sorted((row["points"] for row in rows), reverse=True)


def test_the_list_of_runs_names_the_task_or_the_game(labmates: Labmates, recorded: Recorded) -> None:
    listed = labmates("runs", "--store", recorded.store.url).out
    for kind in ("science", "game", "contract"):
        condition = recorded.store.run(recorded.ids[kind]).condition
        name = condition.get("task") or condition["game"]
        assert name.partition("-")[0] in listed  # a long one is wrapped
