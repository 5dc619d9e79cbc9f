"""An experiment and an analysis of one's own: what follows from them, and what the conformance check finds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markupsafe import Markup
from pydantic import Field

import labmates
from labmates.condition_types import Kind
from labmates.models.scripted import BASELINES
from labmates.pages.links import Links
from labmates.pages.section import Section
from labmates.records.reading import RunReader
from labmates.records.store import Store
from labmates.stats.figures import Drawing, new_figure
from labmates.stats.tables import Table
from labmates.viewer.pages.run import overview
from labmates.workflows.protocol.analysis import ANALYSES, Params
from labmates.workflows.protocol.experiment import EXPERIMENTS, Experiment, Metric, Outcome
from labmates_author.experiments import check_experiment
from tests.support.plugins import ROOT

SCRIPT = ROOT / "examples" / "new_experiment.py"
MODEL = "scripted:thinker"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example, registered."""
    spec = importlib.util.spec_from_file_location("new_experiment", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "new_experiment", module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(EXPERIMENTS._loaded, "contest", module.CONTEST)
    monkeypatch.setitem(ANALYSES._loaded, "guesses", module.GUESSES)
    monkeypatch.setitem(BASELINES._loaded, "thinker", module.Thinker)
    return module


def test_the_example_takes_at_most_40_lines_of_code() -> None:
    lines = SCRIPT.read_text().partition("class ContestCondition")[2].partition("class Thinker")[0].splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith(('"""', "#"))]
    assert len(code) <= 40


def test_an_experiment_without_a_page_has_one_made_from_its_events(example: ModuleType, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    [run] = labmates.run(Kind("contest"), model=MODEL, store=url)
    assert run.metrics["guess"] == pytest.approx((33 + 14 + 6 + 2) / 4)
    with Store(url) as store:
        page = overview(RunReader(store, run), Links())
    for part in ('id="metrics"', 'id="payoffs"', 'id="decisions"', "<svg", "player 2", "guess 33", "mean guess"):
        assert part in page, part
    assert "Full story" in page


def test_its_analysis_is_a_part_of_reports_and_a_function(example: ModuleType, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    labmates.run(Kind("contest"), model=MODEL, store=url)
    page = labmates.report(kind="contest", out=tmp_path / "r.html", store=url).read_text()
    assert "Mean guesses" in page
    assert "Who thinks further guesses less." in page
    assert page.count("Guesses by round") == 1
    assert labmates.analyze("guesses", store=url).frame()["guess"].tolist() == [33, 14, 6, 2]


def test_sections_are_texts_tables_and_figures_without_any_markup() -> None:
    table = Table("t", "Some table", None, [{"who": "<b>", "n": 1}], ["A note."])
    drawing = Drawing("d", "A figure", "It shows <i>nothing</i>.", lambda: new_figure(2, 2)[0])
    html = Section("a", "A", ("Less < more.", table, drawing, Markup("<hr>"))).html()
    for part in ("<p>Less &lt; more.</p>", "&lt;b&gt;", "A note.", 'src="data:image/svg+xml;base64,', "<hr>"):
        assert part in html
    assert "<i>" not in html


def test_the_example_conforms(example: ModuleType) -> None:
    assert check_experiment("contest", model=MODEL, rounds=2) == []


def registered(monkeypatch: pytest.MonkeyPatch, experiment: Experiment[Any]) -> list[str]:
    monkeypatch.setitem(EXPERIMENTS._loaded, "contest", experiment)
    return check_experiment("contest", model=MODEL, rounds=1)


class Undefaulted(Params):
    least: int = Field(description="No default.")


def test_faults_of_declarations_are_named(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = (Metric("guess"), Metric("guess", "mean guess"))
    monkeypatch.setitem(ANALYSES._loaded, "guesses", replace(example.GUESSES, params=Undefaulted))
    problems = registered(monkeypatch, replace(example.CONTEST, name="other", metrics=metrics))
    for part in (
        "called 'other'",
        "two metrics have the same name",
        "'guess' has no text",
        "the analysis 'guesses' has parameters without a default",
    ):
        assert any(part in problem for problem in problems), part


def test_faults_of_runs_are_named(example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10))

    async def drifting(*_: object) -> Outcome:
        return Outcome("completed", {"guess": 1000.0 + next(numbers), "extra": 1.0})

    def broken(*_: object) -> Iterator[Section]:
        raise KeyError("gone")

    made = Experiment.plain("contest", example.ContestCondition, drifting, example.METRICS, page=broken)
    problems = registered(monkeypatch, made)
    for part in ("outside 0 to 100", "'extra' is not declared", "two runs of one seed", "a replay differs", "KeyError"):
        assert any(part in problem for problem in problems), part
