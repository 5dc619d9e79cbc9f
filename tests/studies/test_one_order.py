"""Tables and figures come in the order of the study's file, whichever run was started or ended first."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sqlalchemy as sa

import labmates
from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.listing import select_runs
from labmates.records.store import Store
from labmates.reports.results import by_model, cells, measures, results_plot, results_table
from labmates.workflows.analyses.matching import factor_of, observed
from labmates.workflows.protocol.analysis import Runs, shown_analyses

STUDY = """
name: order
kind: dilemma
fixed: {entrants: ["scripted:defect", "scripted:cooperate"], reasoning: none}
grid:
  game: [stag-hunt]
  mechanism: [reputation, none, contract]
replicates: 2
"""
TIMES = ("seconds", "dollars spent")


def fresh(folder: Path, seed: int) -> Store:
    """Execute the study in a store of its own, where runs started in a random order."""
    folder.mkdir()
    (folder / "order.yaml").write_text(STUDY)
    url = f"sqlite:///{folder}/runs.db"
    labmates.study(folder / "order.yaml", store=url)
    store = Store(url)
    ids = [run.id for run in select_runs(store)]
    moments = random.Random(seed).sample(range(len(ids)), len(ids))

    def write(connection: sa.Connection) -> None:
        for run_id, moment in zip(ids, moments, strict=True):
            connection.execute(sa.update(schema.runs).where(schema.runs.c.id == run_id).values(started=1e9 + moment))

    store.write(write)
    return store


def shown(store: Store) -> list[str]:
    """All tables of the study with their headings, and all figures."""
    runs = select_runs(store)
    named = [metric for metric in measures(runs) if metric not in TIMES]
    groups, models = cells(runs, named), by_model(runs, named)
    tables = [results_table("conditions", "By condition", groups, named), results_table("models", "", models, named)]
    texts = [str(results_plot(groups, metric, metric)) for metric in named]
    for analysis in shown_analyses("dilemma")[0]:
        try:
            result = analysis.shown(store, runs)
        except UsageError:  # too few runs
            continue
        tables += result.tables
        texts += [repr(drawing.picture()) for drawing in result.figures] + list(result.verdict)
    texts += [repr(([column.title for column in table.columns], list(table.cells()))) for table in tables]
    ids = {run.id: f"run {place}" for place, run in enumerate(runs)}
    for run_id, name in ids.items():
        texts = [text.replace(run_id, name) for text in texts]
    return texts


@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.slow("tests/studies/test_one_order.py"))])
def test_fresh_stores_of_a_study_give_byte_equal_tables_signs_and_colours(tmp_path: Path, number: int) -> None:
    stores = [fresh(tmp_path / str(seed), seed) for seed in range(number)]
    first, *others = map(shown, stores)
    assert len(first) > 10
    for other in others:
        assert other == first
    for store in stores:
        store.close()


def test_runs_come_as_in_the_file_and_references_first_in_tables(tmp_path: Path) -> None:
    with fresh(tmp_path / "store", 7) as store:
        runs = Runs(store.url, study="order").records()
        groups = cells(runs, ["cooperation_rate"])
        frame = labmates.load("decisions", store=store.url)
    conditions = [(run.condition["mechanism"], run.replicate) for run in runs]
    mechanisms = ["reputation", "none", "contract"]
    assert conditions == [(mechanism, replicate) for replicate in range(2) for mechanism in mechanisms]
    assert [cell.varies["mechanism"] for cell in groups] == ["none", "reputation", "contract"]
    levels = factor_of("mechanism", observed(runs, {})).levels
    assert [level.name for level in levels] == ["reputation", "contract", "none"]  # none is subtracted
    assert list(dict.fromkeys(frame["run"])) == [run.id for run in runs]


def test_tournaments_come_as_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "order.yaml").write_text("""
name: order
kind: tournament
models: ["scripted:tit-for-tat", "scripted:defect"]
fixed: {teams: 2, team_size: 1, rounds: 3, comprehension: skipped, critique_turns: 0}
grid: {structure: [sa, gc], noise: [0.1, 0]}
""")
    url = f"sqlite:///{tmp_path}/runs.db"
    labmates.study(tmp_path / "order.yaml", store=url)
    rates = labmates.analyze("tournament", study="order", store=url).frame("rates")
    cells = [
        ("scripted:tit-for-tat", 0.1),
        ("scripted:tit-for-tat", 0),
        ("scripted:defect", 0.1),
        ("scripted:defect", 0),
    ]
    assert list(dict.fromkeys(zip(rates["model"], rates["noise"], strict=True))) == cells
