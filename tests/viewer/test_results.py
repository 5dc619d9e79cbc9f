"""The results of a study in the viewer: matrices of means, and their runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.pages.links import Links
from labmates.records.store import Store
from labmates.viewer.pages.results import Results, results_section
from tests.studies.ended import fresh_run
from tests.support.site import served

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two models on two tasks with two budgets, two runs of each; accuracy says which."""
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        for place, (model, task, budget) in enumerate(
            (m, t, b) for m in ("openai:a", "openai:b") for t in ("anomaly", HOSTILE) for b in (1, 2)
        ):
            for seed in range(2):
                run = fresh_run(seed=seed)
                condition = {**run.condition, "task": task, "budget": budget}
                value = 0.1 * place + 0.01 * seed
                store.create(
                    replace(
                        run,
                        id=f"run{place}{seed}",
                        key=f"key{place}",
                        condition=condition,
                        models=[model],
                        study="pilot",
                        replicate=seed,
                        status="completed",
                        metrics={"accuracy": value, "own": 1.0},
                    )
                )
        yield store


def results(store: Store, **query: str) -> Results:
    runs = [replace(run, spent=1000 * (1 + int(run.id[3]))) for run in store.runs(study="pilot")]
    return Results(runs, query)


def test_a_matrix_has_the_mean_of_each_pair_of_values(store: Store) -> None:
    shown = results(store, metric="accuracy", rows="task", columns="models")
    [matrix] = shown.matrices()
    assert matrix.rows == ("anomaly", HOSTILE)
    assert matrix.columns == ("openai:a", "openai:b")
    cell = matrix.cells["anomaly", "openai:b"]
    assert (round(cell.estimate.value, 6), cell.estimate.n, cell.keys) == (0.455, 2, ("key4", "key5"))
    assert shown.pooled == ["budget"]
    by_budget = results(store, metric="accuracy", rows="task", columns="models", each="budget").matrices()
    assert [matrix.title for matrix in by_budget] == ["budget 1", "budget 2"]
    assert round(by_budget[1].cells["anomaly", "openai:b"].estimate.value, 6) == 0.505


def test_rows_and_columns_are_by_default_parameters_that_do_not_follow_from_each_other() -> None:
    divided = {**fresh_run(seed=0).condition, "evidence": "split:1"}
    arms = {"team": "pipeline", "mute": "pipeline", "oracle": "solo"}
    runs = [
        replace(
            fresh_run(seed=0), id=arm, key=arm, status="completed", metrics={"accuracy": 0.5},
            condition={**divided, "organisation": organisation, "arm": arm},
        )
        for arm, organisation in arms.items()
    ]  # fmt: skip
    shown = Results(runs, {})
    assert (shown.rows, shown.columns, shown.pooled) == ("arm", "", [])
    assert Results(runs, {"rows": "organisation"}).pooled == ["arm"]


def test_a_query_for_what_there_is_not_is_refused(store: Store) -> None:
    for name, message in (("metric", "unknown metric"), ("rows", "unknown rows"), ("kind", "unknown kind")):
        with pytest.raises(UsageError, match=message):
            results(store, **{name: "colour"})
    with pytest.raises(UsageError, match="unknown columns"):
        results(store, rows="task", columns="task")
    assert results(store, columns="").matrices()[0].columns == ("",)


def test_a_mean_leads_to_its_runs_and_hostile_values_are_escaped(store: Store) -> None:
    with served(store) as site:
        page = site.get("/analyses?study=pilot&metric=accuracy&rows=task&columns=models").text
        assert HOSTILE not in page
        assert "&lt;script&gt;" in page
        first = re.search(r'href="(/\?study=pilot&amp;key=key0&amp;key=key1)"', page)
        assert first is not None
        listed = site.get(unescape(first[1])).text
        assert set(re.findall(r"/runs/(run\d+)", listed)) == {"run00", "run01", "run10", "run11"}
        assert site.get("/analyses?study=pilot&metric=colour").status == 400


def test_headline_metrics_are_drawn_as_in_a_report(store: Store) -> None:
    [drawn] = results(store, metric="own").figures()
    assert "Accuracy by" in drawn
    assert HOSTILE not in drawn


def test_failed_runs_are_shown_and_counted_beside_the_others(store: Store) -> None:
    for run in [run for run in store.runs(study="pilot") if run.id.startswith(("run7", "run6"))]:
        failed = replace(run, id=f"{run.id}x", replicate=run.replicate + 5, status="failed", metrics={})
        store.create(replace(failed, models=["openai:c"]))
    shown = results(store, metric="accuracy", rows="task", columns="models")
    [matrix] = shown.matrices()
    assert matrix.columns == ("openai:a", "openai:b", "openai:c")
    assert matrix.failed[HOSTILE, "openai:c"] == 4
    assert (HOSTILE, "openai:c") not in matrix.cells
    [shares] = results(store, metric="failed runs", rows="models", columns="").matrices()
    assert [shares.cells[model, ""].estimate.value for model in matrix.columns] == [0.0, 0.0, 1.0]
    [invalid] = results(store, metric="invalid runs", rows="models", columns="").matrices()
    assert invalid.cells["openai:a", ""].estimate.value == 0.0
    with served(store) as site:
        page = site.get("/analyses?study=pilot&metric=accuracy&rows=task&columns=models").text
        assert '<span class="bad">4 failed</span>' in page


def test_a_list_names_the_parameters_in_which_its_runs_differ(store: Store) -> None:
    with served(store) as site:
        page = site.get("/?study=pilot").text
        assert '<span class="quiet">budget</span> 2</span>' in page
        assert page.count('<span class="quiet">budget</span>') == 16
        assert "16 runs in" in page


def test_a_study_says_how_far_it_is_and_whether_it_moves(store: Store) -> None:
    with served(store) as site:
        ended = site.get("/studies/live?study=pilot").data
        assert ended["ended"] is True
        assert "data-live" not in site.get("/analyses?study=pilot").text
        run = next(iter(store.runs(study="pilot")))
        store.create(replace(run, id="next", replicate=9, status="running", metrics={}))
        news = site.get("/studies/live?study=pilot").data
        assert news["ended"] is False
        assert news["last"] != ended["last"]
        assert f'data-last="{news["last"]}"' in site.get("/analyses?study=pilot").text


def test_a_study_without_ended_runs_has_no_results(store: Store) -> None:
    runs = [replace(run, status="failed") for run in store.runs(study="pilot")]
    assert results_section("pilot", runs, {}, Links()) == ""
