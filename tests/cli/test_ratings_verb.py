from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from tests.support.command_line import Labmates

MATCHUPS: list[dict[str, list[Any]]] = [
    {"seats": [0, 0], "rounds": [[2, 2]]},
    {"seats": [0, 1], "rounds": [[0, 3]]},
    {"seats": [1, 0], "rounds": [[3, 0]]},
    {"seats": [1, 1], "rounds": [[1, 1]]},
]
CELL = {"run": "1", "mechanism": "none", "game": "prisoners", "matchups": MATCHUPS}
FILE = {"models": ["dove", "hawk"], "cells": [CELL], "conventions": {"normalisation": {"prisoners": [1, 2]}}}


def write(folder: Path, data: object) -> str:
    path = folder / "payoffs.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(path)


def test_recorded_payoffs_are_rated(labmates: Labmates, tmp_path: Path) -> None:
    path = write(tmp_path, FILE)
    dove, hawk = labmates("analyze", "ratings", "--payoffs", path, "--json").records
    assert (dove["mean"], hawk["mean"]) == (1.0, 2.0)
    assert (dove["deviation"], hawk["deviation"]) == pytest.approx((-1.0, 0.0))
    assert (dove["rank"], hawk["rank"]) == (2.0, 1.0)
    assert hawk["population"] == pytest.approx(1.0, abs=1e-6)
    shown = labmates("analyze", "ratings", "--payoffs", path).out
    assert re.search(r"prisoners +none +1 +\S+ +1\.0000", shown)
    assert "hawk" in shown


def test_ratings_of_several_runs_are_summed_up(labmates: Labmates, tmp_path: Path) -> None:
    path = write(tmp_path, {**FILE, "cells": [CELL, {**CELL, "run": "2"}]})
    records = labmates("analyze", "ratings", "--payoffs", path, "--summary", "--json").records
    of_all = next(one for one in records if (one["game"], one["rating"]) == ("all games", "mean, normalised"))
    average = [of_all[name] for name in ("runs", "average", "average_low", "average_n", "average_reason")]
    assert average == [2, 0.5, None, 2, "equal values"]
    done = labmates("analyze", "ratings", "--payoffs", path, "--summary", "--out", "r.csv")
    assert "2.000" in done.out
    assert "No interval: equal values (21)." in done.out
    with (labmates.folder / "r.csv").open(newline="") as file:
        means = next(row for row in csv.DictReader(file) if (row["game"], row["rating"]) == ("prisoners", "mean"))
    assert [means[name] for name in ("hawk", "hawk_low", "hawk_reason", "runs")] == ["2.0", "", "equal values", "2"]


def test_ratings_are_drawn_with_and_without_a_summary(labmates: Labmates, tmp_path: Path) -> None:
    path = write(tmp_path, FILE)
    command = ("analyze", "ratings", "--payoffs", path, "--format", "svg")
    assert labmates(*command, "--plots", "each").code == 0
    assert labmates(*command, "--plots", "mean", "--summary").code == 0
    each, mean = (
        {file.name: file.read_text(encoding="utf-8") for file in (labmates.folder / folder).iterdir()}
        for folder in ("each", "mean")
    )
    assert each == mean
    assert len(each) == 2, "of the game and of all games"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", "is not a file of payoffs"),
        ({"models": ["a"]}, "cells: this key is missing"),
        ({**FILE, "cells": []}, "cells"),
        ({**FILE, "cells": [{**CELL, "discount": 1.5}]}, "cells.0.discount"),
        ({**FILE, "cells": [{**CELL, "matchups": [{"seats": [0, 0], "rounds": [[2, 2]] * 2}]}]}, "need a discount"),
        ({**FILE, "cells": [{**CELL, "matchups": CELL["matchups"][:3]}]}, "never met"),
        ({**FILE, "models": ["dove"]}, "names unknown models"),
        (json.dumps({**FILE, "cells": [{**CELL, "matchups": [{"seats": [0, 0], "rounds": [[2]]}]}]}), "payoff of each"),
        (json.dumps(FILE).replace("3", "1e400"), "finite number"),
    ],
)
def test_a_file_that_is_none_of_payoffs_is_told(labmates: Labmates, tmp_path: Path, data: object, said: str) -> None:
    done = labmates("analyze", "ratings", "--payoffs", write(tmp_path, data), "--json")
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize("columns", ["20", "40", "70", "120"])
def test_no_number_is_cut_where_the_screen_is_narrow(labmates: Labmates, tmp_path: Path, columns: str) -> None:
    data = {**FILE, "models": ["[/dove]", "hawk-with-a-long-name-" * 3]}
    done = labmates("analyze", "ratings", "--payoffs", write(tmp_path, data), COLUMNS=columns)
    for number in ("1.0000", "0.0000", "-1.0000", "2.0000"):
        assert number in done.out
    assert "[/dove]" in done.out
    assert "…" not in done.out


def test_a_file_that_is_not_there_is_told(labmates: Labmates, tmp_path: Path) -> None:
    done = labmates("analyze", "ratings", "--payoffs", str(tmp_path / "none.json"))
    assert done.code == 2
    assert "can't be read" in done.err


BROKEN = ["run", "dilemma", "--game", "prisoners", "--mechanism", "repetition(rounds=2)"]


def test_a_model_whose_every_reply_fails_is_left_out_unless_it_is_kept(labmates: Labmates) -> None:
    done = labmates(*BROKEN, "--models", "scripted:garbage,scripted:random", "--json")
    assert (done.code, done.records[0]["valid"]) == (1, False)

    def told(*more: str) -> list[list[Any]]:
        rows = labmates("analyze", "ratings", "--json", *more).records
        return [[row["model"], row["failed"], row["validity"]] for row in rows]

    assert told() == [["scripted:random", 0, "valid"], ["scripted:garbage", 1, "left out"]]
    assert told("--keep-failed") == [["scripted:garbage", 1, "invalid"], ["scripted:random", 0, "valid"]]
    shown = labmates("analyze", "ratings", "--out", "r.csv").out
    assert "scripted:garbage is left out of prisoners under repetition: 100% of its decisions failed" in shown
    with (labmates.folder / "r.csv").open(newline="") as file:
        assert [row["validity"] for row in csv.DictReader(file)] == ["valid", "left out"]
    summary = labmates("analyze", "ratings", "--summary", "--json").records
    assert {one.get("scripted:garbage") for one in summary if one["rating"] != "failed decisions"} == {None}
    assert [one["scripted:garbage"] for one in summary if one["rating"] == "failed decisions"] == [1, 1]


def test_if_all_models_failed_none_is_rated_and_the_exit_code_is_1(labmates: Labmates) -> None:
    labmates(*BROKEN, "--models", "scripted:garbage")
    for more in ([], ["--summary"], ["--json"]):
        done = labmates("analyze", "ratings", *more)
        assert done.code == 1
        assert "no model is rated" in done.err
    assert labmates("analyze", "dilemmas", "--plots", "figures").code == 0
    assert labmates("report", "--kind", "dilemma", "--out", "r.html").code == 0


def test_files_of_payoffs_do_not_say_what_failed(labmates: Labmates, tmp_path: Path) -> None:
    path = write(tmp_path, FILE)
    rows = labmates("analyze", "ratings", "--payoffs", path, "--json").records
    assert [(row["failed"], row["validity"]) for row in rows] == [(None, "unknown")] * 2
    assert labmates("analyze", "ratings", "--payoffs", path).out.count("unknown") == 2


def test_populations_evolve_at_other_rates_in_other_steps(labmates: Labmates, tmp_path: Path) -> None:
    command = ("analyze", "ratings", "--payoffs", write(tmp_path, FILE), "--json")
    usual, still = (
        {name: [row[name] for row in labmates(*command, *more).records] for name in ("population", "fitness")}
        for more in ((), ("--steps", "0"))
    )
    assert still["population"] == pytest.approx([0.5, 0.5])
    assert still["fitness"] == pytest.approx([0.5 * 2, 0.5 * 3 + 0.5])
    _, slow = labmates(*command, "--rate", "0.001").records
    assert 0.5 < slow["population"] < usual["population"][1]


def test_a_wrong_rate_is_told(labmates: Labmates, tmp_path: Path) -> None:
    done = labmates("analyze", "ratings", "--payoffs", write(tmp_path, FILE), "--rate", "0")
    assert done.code == 2
    assert "rate" in done.err
