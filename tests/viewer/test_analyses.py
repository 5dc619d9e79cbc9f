"""The analyses of a study in the viewer: what there is, each with tables and figures, and why one can't be computed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.pages.links import Links
from labmates.records.events import ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.stats.figures import Drawing, new_figure
from labmates.stats.tables import Table
from labmates.viewer.export import export_pages
from labmates.viewer.pages.analyses import Computed, analyses_page
from labmates.workflows.protocol.analysis import ANALYSES, Analysis, Params, Result, Runs
from tests.studies.ended import fresh_run
from tests.support.site import served

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two runs of a study, scored by one judge."""
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        for seed in range(2):
            run = replace(
                fresh_run(seed=seed), study="pilot", replicate=seed, status="completed", metrics={"accuracy": 1.0}
            )
            store.create(run)
            score = ScoreEvent(judge="verified", version="1", metric="accuracy", value=0.25, reason="")
            store.add(run.id, [(0, score)], [])
        yield store


def page(store: Store, name: str = "") -> str:
    return analyses_page(store, "pilot", list(store.runs(study="pilot")), Links(), name)


def register(monkeypatch: pytest.MonkeyPatch, result: Result | Exception) -> None:
    """Put an analysis in the place of that of scores."""

    def compute(_runs: Runs, _params: Params) -> Result:
        """Compute nothing."""
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setitem(ANALYSES._loaded, "scores", Analysis("scores", "Scores", Params, compute, kind="science"))


def test_the_page_of_a_study_begins_with_its_answers(store: Store) -> None:
    for organisation, skill in (("solo", 0.1), ("pipeline", 0.6), ("hybrid", 0.6)):
        for seed in range(6):
            run = fresh_run(seed=seed, study="pilot", organisation=organisation, evidence="split:1")
            found = {"skill": skill + (seed - 2.5) * (skill - 0.4) / 100, "readable": 1.0}
            store.create(replace(run, replicate=seed, status="completed", metrics=found))
    told = page(store).partition('id="answers"')[2].partition("</section>")[0]
    # These runs have no order of time, which is that of equal levels.
    assert re.search(
        r"What makes a difference</a>: organisation: (hybrid and pipeline|pipeline and hybrid) have the best", told
    )

    assert "significantly better than solo (by 0.50)" in told
    assert 'id="answers"' not in page(store, "compare")


def test_a_study_offers_the_analyses_of_its_experiments(store: Store) -> None:
    with served(store) as site:
        assert "/analyses?study=pilot" in site.get("/studies").text
        assert "/analyses?study=pilot" in site.get("/?study=pilot").text
        offered = site.get("/analyses?study=pilot").text
        for name in ("scores", "compare", "teamwork"):
            assert f"/analyses?study=pilot&amp;analysis={name}" in offered
        shown = site.get("/analyses?study=pilot&analysis=scores").text
        assert "Scores by judge" in shown
        assert "0.250" in shown
        for query, said in (("study=nope", "unknown study"), ("study=pilot&analysis=nope", "unknown analysis")):
            refused = site.get(f"/analyses?{query}")
            assert refused.status == 400
            assert said in refused.text


def test_a_figure_is_saved_in_the_formats_of_journals(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = Drawing("means", "Means", "what it shows", lambda: new_figure(2, 1)[0])
    register(monkeypatch, Result([], figures=[drawing]))
    with served(store) as site:
        assert "figure=means&amp;format=pdf" in site.get("/analyses?study=pilot&analysis=scores").text
        address = "/analyses/figure?study=pilot&analysis=scores&figure=means&format="
        for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
            file = site.get(address + ending)
            assert file.body.startswith(start)
            assert file.headers["content-disposition"] == f"attachment; filename*=UTF-8''means.{ending}"
        for wrong, said in (
            (address + "gif", "unknown format"),
            (address.replace("means", "nope") + "png", "unknown figure"),
            (address.replace("scores", "nope") + "png", "unknown analysis"),
        ):
            refused = site.get(wrong)
            assert (refused.status, said in refused.text) == (400, True)


def test_an_analysis_without_a_result_says_why(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no seed has all three arms" in page(store, "necessity")
    for error in (UsageError(f"too odd {HOSTILE}"), KeyError(HOSTILE)):
        register(monkeypatch, error)
        told = page(store, "scores")
        assert f"{type(error).__name__}: " in told
        assert "&lt;script&gt;" in told
        assert HOSTILE not in told
    assert "No run of this study has ended" in analyses_page(store, "pilot", [unended()], Links(), "scores")


def unended() -> RunRecord:
    return replace(fresh_run(), study="pilot", status="failed")


def test_everything_that_a_result_says_is_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    table, details = (Table(name, f"Table {name}", None, [{"value": 1}]) for name in ("main", "more"))
    drawing = Drawing("line", "A line", "It goes up.", lambda: new_figure(2, 2)[0])
    result = Result([table], [drawing], ["It is so."], details=[details])
    register(monkeypatch, replace(result, remarks={"Left out": ["one model"]}, warnings=["few"]))
    told = page(store, "scores")
    for part in ("It is so.", "Warning: few", "Table main", "Table more", "It goes up.", "one model"):
        assert part in told, part
    assert 'src="data:image/svg+xml;base64,' in told


def test_an_analysis_is_computed_again_only_where_a_run_has_another_digest(store: Store) -> None:
    computed, computations = Computed(), list[list[str | None]]()

    def compute(runs: Runs, _params: Params) -> Result:
        computations.append([run.digest for run in runs.records()])
        return Result([Table("main", "Main", None, [{"value": len(computations)}])])

    analysis = Analysis("scores", "Scores", Params, compute)
    runs = [replace(run, digest=f"digest {run.seed}") for run in store.runs()]
    scored_again = [replace(runs[0], digest="another"), runs[1]]
    unknown = [replace(run, digest=None) for run in runs]
    for asked, times in (
        (runs, 1),
        (runs[::-1], 1),
        (scored_again, 2),
        (runs, 2),
        (runs[:1], 3),
        (unknown, 4),
        (unknown, 5),
    ):
        assert computed.result(store, analysis, asked).sections
        assert len(computations) == times


def test_exported_pages_have_the_analyses_too(store: Store, tmp_path: Path) -> None:
    export_pages(store, tmp_path / "pages", events=False)
    [link] = re.findall(r'href="(analyses/[^"]+)"', (tmp_path / "pages" / "studies.html").read_text())
    listed = (tmp_path / "pages" / link).read_text()
    [scores] = set(re.findall(r'href="../../(analyses/[^"]+scores.html)"', listed))
    assert "Scores by judge" in (tmp_path / "pages" / scores).read_text()


def test_exported_analyses_have_the_studys_runs_in_its_order(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[list[str]] = []

    def compute(runs: Runs, _params: Params) -> Result:
        taken.append([run.id for run in runs.records()])
        return Result([])

    monkeypatch.setitem(ANALYSES._loaded, "scores", Analysis("scores", "Scores", Params, compute, kind="science"))
    export_pages(store, tmp_path / "pages", events=False)
    assert taken == [[run.id for run in store.runs(study="pilot")]]
