"""``labmates blame`` and ``labmates analyze agreement``."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from labmates.records.store import Store
from tests.studies.ended import ended_run
from tests.support.command_line import Labmates

RUN = ["run", "science", "--task", "anomaly", "--difficulty", "easy", "--model", "scripted:silent"]


@pytest.fixture
def store(labmates: Labmates, tmp_path: Path) -> Iterator[Store]:
    """The store of the command line."""
    with Store(f"sqlite:///{tmp_path}/labmates.db") as opened:
        yield opened


def test_blame_tells_plan_price_and_answer(labmates: Labmates, store: Store) -> None:
    [record] = labmates(*RUN, "--json").records
    done = labmates("blame", record["id"], "--replicates", "1", "--cap", "1")
    assert done.code == 0
    assert done.err.startswith("8 seats (data_lead, data_engineer, ml_engineer, ")
    assert " continuations to execute, for about $0.0000." in done.err
    assert done.out.startswith("Can't tell who lost the credit: ")
    assert "Finding this out cost $" in done.out


def test_agreement_is_printed_and_given_as_json(labmates: Labmates, store: Store) -> None:
    runs = [
        ended_run(store, text, seed=seed) for seed, text in enumerate([None, "Nothing.", None, "A table.", None, "Eh."])
    ]
    assert labmates("judge", "--kind", "science", "--judge", "scripted:referee", "--judge", "heuristic").code == 0
    done = labmates("analyze", "agreement", *(run.id for run in runs), "--json")
    assert done.code == 0
    by_metric = {record["metric"]: record for record in done.records}
    assert set(by_metric) == {"accuracy", "completeness"}
    pair = by_metric["completeness"]
    assert (pair["first"], pair["second"], pair["runs"]) == ("heuristic", "rubric:scripted:referee", 6)
    assert pair["pearson"] == pytest.approx(1)
    printed = labmates("analyze", "agreement", "--kind", "science", "--task", "anomaly")
    assert "Agreement of judges" in printed.out
    assert "heuristic" in printed.out


def test_agreement_is_written_as_tables(labmates: Labmates, store: Store) -> None:
    ended_run(store, None)
    assert labmates("judge", "--kind", "science", "--judge", "scripted:referee", "--judge", "heuristic").code == 0
    done = labmates("analyze", "agreement", "--out", "tables/a.csv", "--out", "tables/a.tex")
    assert done.code == 0
    assert done.err.splitlines() == ["Written to tables/a.csv", "Written to tables/a.tex"]
    with (labmates.folder / "tables/a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["metric"], row["first"], row["second"], row["pearson"]) for row in rows] == [
        (metric, "heuristic", "rubric:scripted:referee", "") for metric in ("accuracy", "completeness")
    ]
    assert r"\begin{tabular}" in (labmates.folder / "tables/a.tex").read_text()
    refused = labmates("analyze", "agreement", "--out", "a.xls")
    assert refused.code == 2
    assert "a table's file ends in .csv" in refused.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["analyze", "agreement", "nope"], "there is no run 'nope'"),
        (["blame", "nope"], "nor a study of that name with ended runs"),
        (["blame", "last", "--cap", "much"], "the cap: 'much' is not a dollar amount"),
        (["blame", "last", "--with", "scripted:nobody"], "unknown scripted baseline 'nobody'"),
    ],
)
def test_a_wrong_request_says_what_is_wrong(labmates: Labmates, store: Store, arguments: list[str], says: str) -> None:
    assert labmates(*RUN, "--json").code == 0
    done = labmates(*arguments)
    assert done.code == 2
    assert says in " ".join(done.err.split())


def test_agreement_needs_the_scores_of_two_judges(labmates: Labmates, store: Store) -> None:
    ended_run(store)
    done = labmates("analyze", "agreement")
    assert done.code == 2
    assert "no metric of these 1 runs has scores of two judges" in " ".join(done.err.split())


@pytest.mark.parametrize("verb", [["blame"], ["analyze", "agreement"]])
def test_help_has_an_example(labmates: Labmates, verb: list[str]) -> None:
    assert f"Example: labmates {' '.join(verb)} " in labmates(*verb, "--help").out
