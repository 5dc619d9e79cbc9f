"""An analysis of another package joins the reports and pages of an experiment of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import labmates
from labmates.cli.main import run_command
from labmates.pages.links import Links
from labmates.records.store import Store
from labmates.registry import PluginError
from labmates.viewer.pages.analyses import analyses_page
from labmates.workflows.protocol.analysis import ANALYSES
from tests.studies.ended import ended_run
from tests.support.plugins import install

CODE = """
from labmates.stats.tables import Table
from labmates.workflows.protocol.analysis import Analysis, Params, Result


def count(runs, params):
    "Count the runs."
    return Result([Table("spread", "Spread of runs", None, [{"runs": len(runs.records())}])], verdict=["Counted them."])


def broken(runs, params):
    "Fail."
    return {}["nowhere"]


SPREAD = Analysis("spread", "Spread", Params, count, kind="science")
BROKEN = Analysis("broken", "Broken", Params, broken, kind="science")
ELSEWHERE = Analysis("elsewhere", "Elsewhere", Params, count, kind="game")
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a science run, beside a package with three working analyses and one that can't be imported."""
    points = {name.lower(): f"lab_analyses:{name}" for name in ("SPREAD", "BROKEN", "ELSEWHERE", "ABSENT")}
    package = install(tmp_path / "site", "lab-analyses", {"labmates.analyses": points}, {"lab_analyses": CODE})
    monkeypatch.syspath_prepend(package)
    monkeypatch.delitem(sys.modules, "lab_analyses", raising=False)
    monkeypatch.setattr(ANALYSES, "_plugins", None)
    monkeypatch.setattr(ANALYSES, "_loaded", {})
    url = f"sqlite:///{tmp_path}/runs.db"
    with Store(url) as store:
        ended_run(store, study="pilot")
    return url


def test_a_report_shows_it_and_warns_of_those_that_fail(url: str, tmp_path: Path) -> None:
    page = labmates.report(kind="science", out=tmp_path / "report.html", store=url).read_text()
    assert "Counted them." in page
    assert "Elsewhere" not in page
    for name, why in (("broken", "failed: KeyError: &#39;nowhere&#39;"), ("absent", "can&#39;t be imported")):
        assert f"the analysis &#39;{name}&#39; (lab-analyses 1.0" in page
        assert why in page


def test_the_viewer_offers_it_for_the_runs_of_its_experiment(url: str) -> None:
    with Store(url) as store:
        runs = list(store.runs(study="pilot"))
        offered = analyses_page(store, "pilot", runs, Links())
        assert "analysis=spread" in offered
        assert "analysis=elsewhere" not in offered
        assert "Spread of runs" in analyses_page(store, "pilot", runs, Links(), "spread")


def test_an_error_of_its_own_is_one_line_with_its_name(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["analyze", "broken", "--store", url]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "the analysis 'broken' (lab-analyses 1.0" in line
    assert line.endswith("failed: KeyError: 'nowhere'")
    with pytest.raises(PluginError, match="the analysis 'broken'"):
        labmates.analyze("broken", store=url)
